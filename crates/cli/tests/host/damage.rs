//! A damaged, moved or removed database, as operators and senders see it.

use crate::PROGRAM;
use greenroom_testkit::api::Failure;
use greenroom_testkit::host::{Started, TestHost};
use greenroom_testkit::http::Request;
use greenroom_testkit::postgres::{self, Database};
use greenroom_testkit::wait::wait_for;
use serde_json::{Value, json};
use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(20);

/// An event that no agent takes.
fn event(id: &str) -> Value {
    json!({"event_type": "noted", "event_id": id, "data": {"text": "x".repeat(300)}})
}

fn overwrite(path: &Path, at: u64, bytes: &[u8]) {
    let file = OpenOptions::new().write(true).open(path).unwrap();
    file.write_all_at(bytes, at).unwrap();
}

/// The answer of `/readyz` once it is 503.
async fn not_ready(host: &TestHost) -> Value {
    wait_for("a host that is not ready", PATIENCE, async || {
        match host.api().json(Request::get("/readyz")).await {
            Err(Failure::Refused { status: 503, body }) => Some(body["error"].clone()),
            _ => None,
        }
    })
    .await
}

/// The error of an event that is answered with 503.
async fn refused_event(host: &TestHost) -> Value {
    let sent = Request::post("/v1/events", event("after").to_string());
    let sent = sent.header("content-type", "application/json");
    match host.api().json(sent).await {
        Err(Failure::Refused { status: 503, body }) => body["error"].clone(),
        other => panic!("{other:?}"),
    }
}

/// The database as `doctor` sees it.
async fn database_check(host: &TestHost) -> Value {
    let checks = host.api().get("/v1/checks").await;
    let mut items = checks["items"].as_array().unwrap().iter();
    items.find(|check| check["kind"] == "database").unwrap().clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_damaged_log_refuses_the_start_and_an_accepted_loss_is_an_event() {
    let mut host = TestHost::start(PROGRAM, "").await;
    for number in 0..60 {
        host.api().send_event(&event(&format!("e{number}"))).await;
    }
    host.kill();
    let log = host.data().join("greenroom.db-wal");
    let middle = log.metadata().unwrap().len() / 2;
    overwrite(&log, middle, b"flip");
    let Started::Died(status) = host.try_start().await else { panic!("it started") };
    assert_eq!(status.code(), Some(1));
    let said = host.log();
    assert!(said.contains("commits are missing: the write-ahead log is damaged"), "{said}");
    assert!(said.contains("hint: keep a copy of the data folder"), "{said}");
    host.set_args(&["--accept-loss"]);
    host.start_again().await;
    let events = host.api().events().await;
    let found: Vec<&Value> =
        events.iter().filter(|event| event["event_type"] == "store.loss_accepted").collect();
    assert_eq!(found.len(), 1, "{events:?}");
    assert!(found[0].to_string().contains("commits are missing"), "{found:?}");
    host.api().send_event(&event("after")).await;
    host.set_args(&[]);
    host.kill();
    host.start_again().await;
    assert!(host.stop().await.success());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_young_database_that_lost_its_whole_log_goes_on_when_the_loss_is_accepted() {
    let mut host = TestHost::start(PROGRAM, "").await;
    for number in 0..20 {
        host.api().send_event(&event(&format!("e{number}"))).await;
    }
    host.kill();
    std::fs::remove_file(host.data().join("greenroom.db-wal")).unwrap();
    let Started::Died(_) = host.try_start().await else { panic!("it started") };
    assert!(host.log().contains("the write-ahead log is gone"), "{}", host.log());
    host.set_args(&["--accept-loss"]);
    host.start_again().await;
    host.api().send_event(&event("after")).await;
    let kept = std::fs::read_dir(host.data()).unwrap();
    let names: Vec<String> =
        kept.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    assert!(names.iter().any(|name| name.starts_with("artifacts.lost-")), "{names:?}");
    host.set_args(&[]);
    assert!(host.stop().await.success());
    host.start_again().await;
}

/// Of a host that does not run.
#[expect(clippy::disallowed_methods, reason = "the program under test is started here")]
fn doctor(host: &TestHost) -> std::process::Output {
    let mut doctor = std::process::Command::new(PROGRAM);
    doctor.args(["doctor", "--data"]).arg(host.data()).output().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_damaged_page_makes_the_host_not_ready_and_doctor_says_so() {
    let mut host = TestHost::start(PROGRAM, "").await;
    for number in 0..60 {
        host.api().send_event(&event(&format!("e{number}"))).await;
    }
    assert!(host.stop().await.success());
    let file = host.data().join("greenroom.db");
    let bytes = std::fs::read(&file).unwrap();
    let at = bytes.windows(20).rposition(|window| window == [b'x'; 20]).unwrap();
    overwrite(&file, at as u64, b"y");
    let doctor = doctor(&host);
    let said = String::from_utf8_lossy(&doctor.stdout).into_owned();
    assert_eq!(doctor.status.code(), Some(1), "{said}");
    assert!(said.contains("of the database file differs from its checksum"), "{said}");
    // The check may end before the first look at `/readyz`.
    host.spawn();
    assert_eq!(host.alive().await, Started::Ready);
    let error = not_ready(&host).await;
    assert_eq!(error["message"], "the database is damaged");
    assert_eq!(error["details"], json!({"reason": "database_damaged", "not_ready": "database"}));
    let check = database_check(&host).await;
    assert_eq!(check["ok"], false);
    let message = check["message"].as_str().unwrap();
    assert!(message.contains("of the database file differs from its checksum"), "{message}");
    assert!(host.stop().await.success());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_file_that_is_removed_is_noticed_and_nothing_more_is_acknowledged() {
    let mut host = TestHost::start(PROGRAM, "").await;
    host.api().send_event(&event("before")).await;
    std::fs::remove_file(host.data().join("greenroom.db")).unwrap();
    let error = refused_event(&host).await;
    assert_eq!(error["message"], "the database is gone");
    assert_eq!(not_ready(&host).await["details"]["reason"], "database_gone");
    let check = database_check(&host).await;
    let message = check["message"].as_str().unwrap();
    assert!(message.contains("its files were removed, replaced, cut or moved"), "{message}");
    assert!(host.stop().await.success());
    assert!(!host.data().join("greenroom.db").exists());
    let Started::Died(_) = host.try_start().await else { panic!("it started") };
    assert!(host.log().contains("the database file is missing"), "{}", host.log());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dropped_tables_of_postgresql_are_noticed() {
    let database = tokio::task::spawn_blocking(Database::fresh).await.unwrap();
    let mut host = TestHost::start(PROGRAM, &format!("store.url = \"{}\"", database.url)).await;
    host.api().send_event(&event("before")).await;
    let url = database.url.clone();
    let drop = move || postgres::execute(&url, "DROP SCHEMA public CASCADE; CREATE SCHEMA public");
    tokio::task::spawn_blocking(drop).await.unwrap();
    let error = refused_event(&host).await;
    assert_eq!(error["message"], "the database is gone");
    assert_eq!(not_ready(&host).await["details"]["reason"], "database_gone");
    host.kill();
}
