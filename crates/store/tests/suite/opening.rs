//! Opened again: the epoch grows, a schema that cannot be read is refused; closed, an SQLite file is whole.

use super::support::*;
use greenroom_store::{Store, StoreError, Sync};
use greenroom_testkit::wait::wait_for;
use std::time::Duration;

pub(crate) async fn every_open_is_a_new_epoch_with_the_same_key(ground: Ground) {
    let mut keys = Vec::new();
    for epoch in 1..=4 {
        let store = ground.open();
        assert_eq!(store.epoch(), epoch);
        keys.push(store.cursor_key().to_owned());
        close(store).await;
    }
    assert_eq!(keys[0].len(), 64);
    assert!(keys.iter().all(|key| *key == keys[0]));
}

pub(crate) async fn a_newer_schema_is_refused_and_left_alone(ground: Ground) {
    let store = ground.open();
    accept(&store, event("c", "a")).await;
    close(store).await;
    let known = ground.version().unwrap().unwrap().known;
    set_schema(&ground, known + 1);
    let Err(error) = ground.try_open() else { panic!("it was opened") };
    let expected = format!(
        "the database was written by a newer version of greenroom: it has schema {}, this version knows schemas \
         up to {known}",
        known + 1
    );
    assert_eq!(error.to_string(), expected);
    assert_eq!(ground.version().unwrap_err().to_string(), expected);
    set_schema(&ground, known);
    let store = ground.open();
    assert_eq!(store.epoch(), 2, "the refused start was no start");
    assert!(rows(&store).await.contains(&("runs".to_owned(), 1)));
}

pub(crate) async fn a_database_of_an_unreleased_build_is_refused_and_left_alone(ground: Ground) {
    close(ground.open()).await;
    ground.execute("INSERT INTO meta (name, value) VALUES ('schema_fingerprint', 'another')");
    let Err(error) = ground.try_open() else { panic!("it was opened") };
    assert!(matches!(error, StoreError::UnreleasedSchema), "{error}");
    ground.execute("DELETE FROM meta WHERE name = 'schema_fingerprint'");
    assert_eq!(ground.open().epoch(), 2, "the refused start was no start");
}

async fn close(store: greenroom_store::Store) {
    tokio::task::spawn_blocking(move || store.close()).await.unwrap();
}

fn set_schema(ground: &Ground, version: i64) {
    ground.execute(&format!("UPDATE meta SET value = '{version}' WHERE name = 'schema'"));
}

/// Whoever copies the one file has everything.
#[tokio::test(flavor = "multi_thread")]
async fn a_clean_stop_leaves_nothing_in_the_log_of_sqlite() {
    let ground = Ground::sqlite();
    let store = ground.open();
    for number in 0..20 {
        accept(&store, event("c", &format!("e{number}"))).await;
    }
    let log = ground.path().with_extension("db-wal");
    assert!(log.metadata().unwrap().len() > 0);
    close(store).await;
    let left = log.metadata().map(|file| file.len()).unwrap_or_default();
    assert_eq!(left, 0);
    let copy = ground.path().with_file_name("copy.db");
    std::fs::copy(ground.path(), &copy).unwrap();
    let options = sqlite_options(&copy, Sync::Full);
    let version = Store::version(&options).unwrap().unwrap();
    assert!(!version.needs_migration(), "{version:?}");
    let copy = Store::open(&options).unwrap();
    assert!(rows(&copy).await.contains(&("events".to_owned(), 20)));
}

/// A reader that is open for long must not hold the stop up, and nothing is lost by it.
#[tokio::test(flavor = "multi_thread")]
async fn a_foreign_reader_does_not_hold_up_a_stop() {
    let ground = Ground::sqlite();
    let store = ground.open();
    accept(&store, event("c", "first")).await;
    let foreign = rusqlite::Connection::open(ground.path()).unwrap();
    foreign.execute_batch("BEGIN; SELECT * FROM events").unwrap();
    let count: i64 =
        foreign.query_row("SELECT count(*) FROM events", [], |row| row.get(0)).unwrap();
    assert_eq!(count, 1);
    accept(&store, event("c", "second")).await;
    close(store).await;
    drop(foreign);
    let store = ground.open();
    assert!(rows(&store).await.contains(&("events".to_owned(), 2)));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_is_emptied_once_nobody_has_written_for_a_while() {
    let ground = Ground::sqlite();
    let store = ground.open();
    accept(&store, event("c", "a")).await;
    let log = ground.path().with_extension("db-wal");
    assert!(log.metadata().unwrap().len() > 0);
    let is_empty = async || log.metadata().is_ok_and(|file| file.len() == 0).then_some(());
    wait_for("the log is empty", Duration::from_secs(60), is_empty).await;
    accept(&store, event("c", "b")).await;
    assert!(rows(&store).await.contains(&("events".to_owned(), 2)));
}
