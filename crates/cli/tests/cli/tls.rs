//! TLS of the host's own: who trusts it, and certificates that come and go.

use crate::serving::{Serving, until_logged};
use crate::{greenroom, told};
use greenroom_testkit::wait::wait_for;
use reqwest::{Certificate, Client};
use serde_json::{Value, json};
use std::fs::File;
use std::io::Read;
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(30);
const ONE: [&str; 2] = [
    include_str!("../http/certificates/one-cert.pem"),
    include_str!("../http/certificates/one-key.pem"),
];
const TWO: [&str; 2] = [
    include_str!("../http/certificates/two-cert.pem"),
    include_str!("../http/certificates/two-key.pem"),
];
const CONFIG: &str = "[server]\ntls = { cert = \"cert.pem\", key = \"key.pem\" }\n\
    base_path = \"/greenroom\"\n[limits]\nconnections_open = 8\nrequest_timeout_s = 2\n";

fn install(dir: &Path, [cert, key]: [&str; 2]) {
    std::fs::write(dir.join("cert.pem"), cert).unwrap();
    std::fs::write(dir.join("key.pem"), key).unwrap();
}

/// A browser that trusts one certificate and no other.
fn trusting(certificate: &str) -> Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let builder = Client::builder().no_proxy().pool_max_idle_per_host(0);
    let builder = builder.tls_built_in_root_certs(false);
    let certificate = Certificate::from_pem(certificate.as_bytes()).unwrap();
    builder.add_root_certificate(certificate).build().unwrap()
}

fn host_file(dir: &Path) -> Option<Value> {
    let text = std::fs::read_to_string(dir.join("greenroom-data/host.json")).ok()?;
    serde_json::from_str(&text).ok()
}

fn address(dir: &Path) -> SocketAddr {
    host_file(dir).unwrap()["address"].as_str().unwrap().parse().unwrap()
}

async fn serve(dir: &Path) -> Serving {
    std::fs::write(dir.join("greenroom.toml"), CONFIG).unwrap();
    let log = File::create(dir.join("log")).unwrap();
    let mut command = greenroom(dir, &["serve", "--listen", "127.0.0.1:0"]);
    let child = Serving(command.stdout(Stdio::null()).stderr(log).spawn().unwrap());
    wait_for("the host", PATIENCE, async || host_file(dir)).await;
    child
}

async fn health(dir: &Path, client: &Client) -> Result<u16, String> {
    let url = format!("https://{}/greenroom/healthz", address(dir));
    let answer = client.get(url).send().await;
    answer.map(|answer| answer.status().as_u16()).map_err(|error| format!("{error:?}"))
}

#[tokio::test]
async fn the_host_serves_tls_itself_and_its_own_commands_trust_it() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    install(dir, ONE);
    let _host = serve(dir).await;
    let (client, other) = (trusting(ONE[0]), trusting(TWO[0]));
    assert_eq!(health(dir, &client).await, Ok(200));
    assert!(health(dir, &other).await.is_err());
    let url = format!("https://{}/greenroom", address(dir));
    assert_eq!(host_file(dir).unwrap()["url"], json!(url));
    // What others write in the clear is not understood.
    let clear = format!("http://{}/healthz", address(dir));
    assert!(client.get(clear).send().await.is_err());
    // Commands of this folder know the certificate by its hash.
    let sent = told(dir, &["send", "hello", "--agent", "echo", "--follow"]);
    assert!(sent.starts_with("exit 0") && sent.contains("hello"), "{sent}");
    let link = told(dir, &["open"]);
    assert!(link.contains(&format!("{url}/#code=")), "{link}");
    let created = told(dir, &["tool", "memory", "update", "--input", r#"{"set":{"likes":"tea"}}"#]);
    assert!(created.starts_with("exit 0"), "{created}");
    // A page signs in with a cookie that is sent encrypted alone.
    let token = std::fs::read_to_string(dir.join("greenroom-data/admin-token")).unwrap();
    let signed_in = client
        .post(format!("{url}/v1/session"))
        .header("origin", format!("https://{}", address(dir)))
        .header("x-greenroom", "1")
        .json(&json!({"token": token.trim()}));
    let signed_in = signed_in.send().await.unwrap();
    let cookie = signed_in.headers()["set-cookie"].to_str().unwrap();
    assert!(cookie.contains("; Path=/greenroom;") && cookie.ends_with("; Secure"), "{cookie}");
    // Another certificate than the one that was announced is trusted by nobody.
    let mut file = host_file(dir).unwrap();
    file["certificate_sha256"] = "0".repeat(64).into();
    std::fs::write(dir.join("greenroom-data/host.json"), file.to_string()).unwrap();
    let refused = told(dir, &["runs", "list"]);
    assert!(
        refused.contains("cannot reach the host") && !refused.starts_with("exit 0"),
        "{refused}"
    );
}

#[tokio::test]
async fn tools_of_a_run_reach_a_host_with_tls() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    install(dir, ONE);
    let _host = serve(dir).await;
    let sent = told(dir, &["send", "/memory.update {\"set\":{\"likes\":\"tea\"}}", "--follow"]);
    assert!(sent.starts_with("exit 0"), "{sent}");
    let kept = told(dir, &["send", "/memory.read {}", "--follow"]);
    assert!(kept.contains("tea"), "{sent}\n{kept}");
}

#[tokio::test]
async fn another_certificate_is_taken_over_while_it_runs_and_a_broken_one_is_not() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    install(dir, ONE);
    let _host = serve(dir).await;
    let (one, two) = (trusting(ONE[0]), trusting(TWO[0]));
    // The key alone does not belong to the certificate that is there.
    std::fs::write(dir.join("key.pem"), TWO[1]).unwrap();
    until_logged(dir, "the certificate in use is unchanged").await;
    assert_eq!(health(dir, &one).await, Ok(200));
    std::fs::write(dir.join("cert.pem"), TWO[0]).unwrap();
    wait_for("the other certificate", PATIENCE, async || health(dir, &two).await.ok()).await;
    assert!(health(dir, &one).await.is_err());
    wait_for("a command that trusts it", PATIENCE, async || {
        told(dir, &["runs", "list"]).starts_with("exit 0").then_some(())
    })
    .await;
    std::fs::write(dir.join("cert.pem"), "nonsense").unwrap();
    until_logged(dir, "contains no PEM certificate").await;
    assert_eq!(health(dir, &two).await, Ok(200));
    let checked = told(dir, &["check"]);
    assert!(checked.contains("warning: ") && checked.contains("no PEM certificate"), "{checked}");
}

#[tokio::test]
async fn whoever_says_nothing_holds_nobody_up() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    install(dir, ONE);
    let _host = serve(dir).await;
    let client = trusting(ONE[0]);
    let connect = || TcpStream::connect(address(dir)).unwrap();
    let mut silent: Vec<TcpStream> = (0..5).map(|_| connect()).collect();
    assert_eq!(health(dir, &client).await, Ok(200), "beside those who say nothing");
    // All places are taken now, until the time of a request is over.
    silent.extend((0..3).map(|_| connect()));
    assert_eq!(health(dir, &client).await, Ok(200), "once they are gone");
    for mut stream in silent {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        assert_eq!(stream.read(&mut [0; 8]).ok(), Some(0), "it was closed");
    }
}

#[test]
fn a_certificate_that_cannot_be_used_keeps_the_host_from_starting() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    install(dir, [ONE[0], TWO[1]]);
    std::fs::write(dir.join("greenroom.toml"), CONFIG).unwrap();
    let started = told(dir, &["serve", "--listen", "127.0.0.1:0"]);
    assert!(started.starts_with("exit 2"), "{started}");
    assert!(started.contains("error: cannot use the certificate of `server.tls`"), "{started}");
    assert!(started.contains("hint: `cert` is a PEM file"), "{started}");
}
