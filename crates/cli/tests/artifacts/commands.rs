//! `greenroom artifacts put|get|show`, and `greenroom send --attach`.

use crate::PROGRAM;
use crate::stage::{PNG, Stage};
use serde_json::{Value, json};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

#[expect(clippy::disallowed_methods, reason = "the program under test is started here")]
fn program(data: &Path, command: &str, args: &[&str], stdin: &[u8]) -> Output {
    let mut child = Command::new(PROGRAM)
        .arg(command)
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

fn greenroom(data: &Path, args: &[&str], stdin: &[u8]) -> Output {
    program(data, "artifacts", args, stdin)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_is_sent_with_files() {
    let stage = Stage::open("").await;
    let (data, file) = (stage.host.data(), stage.host.folder().join("cat.png"));
    std::fs::write(&file, PNG).unwrap();
    let file = file.to_str().unwrap();
    let steps = json!([["context", "", {}]]).to_string();
    let args = [&steps, "--agent", "artist", "--conversation", "c1", "--follow"];
    let args = args.iter().copied().chain(["--attach", file, "--attach", "-"]).collect::<Vec<_>>();
    let sent = program(&data, "send", &args, b"a,b\n");
    assert!(sent.status.success(), "{sent:?}");
    let answer: Value = serde_json::from_slice(&sent.stdout).unwrap();
    let attached = answer[0]["ok"]["input"]["attachments"].clone();
    let ids = [0, 1].map(|index| attached[index]["artifact_id"].as_str().unwrap().to_owned());
    let expected = json!([
        {"artifact_id": ids[0], "name": "cat.png", "mime_type": "image/png", "size_bytes": PNG.len(),
            "sha256": attached[0]["sha256"]},
        {"artifact_id": ids[1], "mime_type": "text/plain", "size_bytes": 4,
            "sha256": "5be08c9684a1d25efcee09318204824278b08bbfb4aef973ffefd0b9d7478313"},
    ]);
    assert_eq!(attached, expected);
    assert_eq!(stage.download(&ids[0]).await.body, PNG);
    let twice = program(&data, "send", &["-", "--attach", "-"], b"x");
    assert_eq!(twice.status.code(), Some(2), "{twice:?}");
    let missing = program(&data, "send", &["look", "--attach", "no-such-file"], b"");
    assert_eq!(missing.status.code(), Some(3), "{missing:?}");
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
