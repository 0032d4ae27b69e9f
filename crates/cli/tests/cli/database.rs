//! PostgreSQL that is down before the start, or goes down while the host runs.

use crate::serving::{PATIENCE, serve, until_told};
use crate::told;
use greenroom_testkit::http::{self, Request};
use greenroom_testkit::postgres::{Server, Stop};
use greenroom_testkit::wait::wait_for;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::path::Path;

/// A server, and the name of a database on it; its clients block, which a test's runtime forbids.
fn server() -> (Server, String) {
    let start = || {
        let server = Server::start();
        let url = server.fresh_database();
        let name = url.rsplit('/').next().unwrap().to_owned();
        (server, name)
    };
    std::thread::spawn(start).join().unwrap()
}

fn configure(dir: &Path, server: &Server, name: &str) {
    let port = server.port();
    let url = format!("postgres://postgres:hunter2@127.0.0.1:{port}/{name}");
    std::fs::write(dir.join("greenroom.toml"), format!("[store]\nurl = \"{url}\"\n")).unwrap();
}

async fn readiness(dir: &Path) -> (u16, Value) {
    let file = std::fs::read_to_string(dir.join("greenroom-data/host.json")).unwrap();
    let file: Value = serde_json::from_str(&file).unwrap();
    let address: SocketAddr =
        file["url"].as_str().unwrap().strip_prefix("http://").unwrap().parse().unwrap();
    let answer = http::send(address, &Request::get("/readyz")).await.unwrap();
    (answer.status, serde_json::from_slice(&answer.body().await.unwrap()).unwrap())
}

#[test]
fn a_start_without_the_database_says_which_one_is_down_and_not_its_password() {
    let dir = tempfile::tempdir().unwrap();
    let (server, name) = server();
    server.stop(Stop::Fast);
    configure(dir.path(), &server, &name);
    let port = server.port();
    let place = format!("PostgreSQL database `{name}` on `127.0.0.1:{port}`");
    let started = told(dir.path(), &["serve", "--listen", "127.0.0.1:0"]);
    assert!(started.starts_with("exit 1"), "{started}");
    assert!(started.contains(&format!("error: cannot open the {place}")), "{started}");
    assert!(started.contains("Connection refused"), "{started}");
    let hint = "hint: is it running? its address is `store.url` in the configuration";
    assert!(started.contains(hint), "{started}");
    let doctor = told(dir.path(), &["doctor"]);
    assert!(doctor.contains(&format!("{place}: ")), "{doctor}");
    assert!(!started.contains("hunter2") && !doctor.contains("hunter2"), "{started}{doctor}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_goes_down_is_named_everywhere_and_work_goes_on_when_it_is_back() {
    let dir = tempfile::tempdir().unwrap();
    let (server, name) = server();
    configure(dir.path(), &server, &name);
    let _host = serve(dir.path()).await;
    until_told(dir.path(), &["send", "hello", "--agent", "echo"], "exit 0").await;
    let doctor = told(dir.path(), &["doctor"]);
    let place = format!("PostgreSQL database `{name}` on `127.0.0.1:{}`", server.port());
    assert!(doctor.contains(&format!("{place}, version ")), "{doctor}");
    server.stop(Stop::Fast);
    let down = format!("error: the PostgreSQL database `{name}` does not answer");
    let hint = "hint: start the database: the host reconnects by itself";
    for args in [&["send", "hello again", "--agent", "echo"][..], &["runs", "list"]] {
        let said = told(dir.path(), args);
        assert!(said.starts_with("exit 1"), "{args:?}: {said}");
        assert!(said.contains(&down) && said.contains(hint), "{args:?}: {said}");
    }
    let (status, body) = readiness(dir.path()).await;
    assert_eq!(status, 503);
    let message = format!("the PostgreSQL database `{name}` does not answer");
    let details = json!({"not_ready": "database", "reason": "database_unavailable"});
    let expected = json!({"error": {"code": "runtime_error", "message": message, "retryable": true,
        "details": details}});
    assert_eq!(body, expected);
    let doctor = told(dir.path(), &["doctor"]);
    assert!(doctor.starts_with("exit 1") && doctor.contains(&format!("{place}: ")), "{doctor}");
    assert!(!doctor.contains("hunter2"), "{doctor}");
    let server = std::thread::spawn(move || {
        server.launch();
        server
    });
    let _server = server.join().unwrap();
    wait_for("a host that is ready again", PATIENCE, async || {
        (readiness(dir.path()).await.0 == 200).then_some(())
    })
    .await;
    until_told(dir.path(), &["send", "back", "--agent", "echo", "--follow"], "exit 0").await;
    // What was refused was not kept.
    let events = told(dir.path(), &["events", "list", "--json"]);
    assert!(!events.contains("hello again"), "{events}");
}
