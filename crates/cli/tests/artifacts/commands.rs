//! `greenroom artifacts put|get|show`.

use crate::PROGRAM;
use crate::stage::{PNG, Stage};
use serde_json::Value;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

#[expect(clippy::disallowed_methods, reason = "the program under test is started here")]
fn greenroom(data: &Path, args: &[&str], stdin: &[u8]) -> Output {
    let mut child = Command::new(PROGRAM)
        .arg("artifacts")
        .args(args)
        .arg("--data")
        .arg(data)
        .env_remove("GREENROOM_URL")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(stdin).unwrap();
    child.wait_with_output().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_goes_in_is_shown_and_comes_out() {
    let stage = Stage::open("").await;
    let data = stage.host.data();
    let file = stage.host.folder().join("a picture.png");
    std::fs::write(&file, PNG).unwrap();
    let put = greenroom(&data, &["put", file.to_str().unwrap(), "--conversation", "c1"], b"");
    assert!(put.status.success(), "{put:?}");
    let id = String::from_utf8(put.stdout).unwrap().trim().to_owned();
    let shown = greenroom(&data, &["show", &id, "--json"], b"");
    let shown: Value = serde_json::from_slice(&shown.stdout).unwrap();
    assert_eq!(
        (&shown["name"], &shown["mime_type"], &shown["conversation_id"]),
        (&"a picture.png".into(), &"image/png".into(), &"c1".into())
    );
    let got = greenroom(&data, &["get", &id], b"");
    assert_eq!(got.stdout, PNG);
    let out = stage.host.folder().join("out.png");
    let got = greenroom(&data, &["get", &id, "--output", out.to_str().unwrap()], b"");
    assert!(got.status.success(), "{got:?}");
    assert_eq!(std::fs::read(&out).unwrap(), PNG);
    let again = greenroom(&data, &["get", &id, "--output", out.to_str().unwrap()], b"");
    assert_eq!(again.status.code(), Some(1));
    let large = vec![9; 3_000_000];
    let put = greenroom(&data, &["put", "-", "--name", "piped", "--json"], &large);
    let put: Value = serde_json::from_slice(&put.stdout).unwrap();
    let got = greenroom(&data, &["get", put["artifact_id"].as_str().unwrap()], b"");
    assert_eq!(got.stdout, large);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_does_not_work_is_told() {
    let stage = Stage::open("").await;
    let data = stage.host.data();
    for args in [["show", "art_none"], ["get", "art_none"], ["put", "no-such-file"]] {
        assert_eq!(greenroom(&data, &args, b"").status.code(), Some(3), "{args:?}");
    }
    let refused = greenroom(&data, &["put", "-", "--type", "image/png"], b"text");
    assert_eq!(refused.status.code(), Some(1));
    let told = String::from_utf8_lossy(&refused.stderr);
    assert!(told.contains("the bytes are not `image/png`, they look like `text/plain`"), "{told}");
}
