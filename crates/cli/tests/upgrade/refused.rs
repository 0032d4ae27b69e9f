//! An upgrade that the operator did not ask for, and the copy that an upgrade leaves.

use crate::PROGRAM;
use crate::folder::{self, Kind, Opened, Recorded};
use std::process::{Command, Output};

/// Starts a host that must not upgrade anything; it ends by itself.
#[expect(clippy::disallowed_methods, reason = "the program under test is started here")]
fn refuse_to_migrate(opened: &Opened) -> Output {
    let mut command = Command::new(PROGRAM);
    command.args(["serve", "--migrate=no", "--listen", "127.0.0.1:0", "--data"]);
    command
        .arg(opened.host.data())
        .arg("--config")
        .arg(opened.host.folder().join("greenroom.toml"));
    command.output().unwrap()
}

/// What `doctor` prints about a folder that no host uses.
#[expect(clippy::disallowed_methods, reason = "the program under test is started here")]
fn doctor(opened: &Opened) -> String {
    let mut command = Command::new(PROGRAM);
    command.args(["doctor", "--data"]).arg(opened.host.data());
    command.arg("--config").arg(opened.host.folder().join("greenroom.toml"));
    String::from_utf8(command.output().unwrap().stdout).unwrap()
}

/// Schema 1: it needs an upgrade for ever.
fn first_version(kind: Kind) -> Recorded {
    folder::all(kind).into_iter().find(|recorded| recorded.path.ends_with("0.1.0")).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn sqlite_is_not_upgraded_unasked() {
    refuse_then_upgrade(Kind::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_is_not_upgraded_unasked() {
    refuse_then_upgrade(Kind::Postgres).await;
}

async fn refuse_then_upgrade(kind: Kind) {
    let mut opened = first_version(kind).prepare().await;
    for _ in 0..2 {
        let output = refuse_to_migrate(&opened);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        let message = "error: the database has schema 1, this version needs schema ";
        assert!(said.contains(message), "{said}");
        assert!(said.contains("hint: create a backup with `greenroom backup create`"), "{said}");
    }
    let looked = doctor(&opened);
    assert!(looked.contains("; the next start upgrades it from schema 1 to "), "{looked}");
    opened.host.start_again().await;
    crate::facts::check_all(&opened).await;
}

/// The copy is the database as it was: one file that holds everything, also what stood in the log.
#[tokio::test(flavor = "multi_thread")]
async fn an_upgrade_of_sqlite_leaves_a_copy_of_the_old_version() {
    let opened = first_version(Kind::Sqlite).open().await;
    let copy =
        rusqlite::Connection::open(opened.host.data().join("greenroom.db.schema-1")).unwrap();
    let one = |sql: &str| copy.query_row(sql, [], |row| row.get::<_, String>(0)).unwrap();
    assert_eq!(one("SELECT value FROM meta WHERE name = 'schema'"), "1");
    assert_eq!(one("PRAGMA integrity_check"), "ok");
    let events = one("SELECT CAST(count(*) AS TEXT) FROM events");
    assert_eq!(events, opened.expected["tables"]["events"].to_string());
}
