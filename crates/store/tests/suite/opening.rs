//! Opened again: the epoch grows, a newer schema is refused.

use super::support::*;
use greenroom_store::StoreError;

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
    set_schema(&ground, "2");
    let Err(error) = ground.try_open() else { panic!("it was opened") };
    assert!(matches!(error, StoreError::NewerSchema { found: 2, known: 1 }), "{error}");
    assert_eq!(error.to_string(), "the database has schema 2, this version knows up to 1");
    set_schema(&ground, "1");
    let print =
        "UPDATE meta SET value = replace(value, '0', 'x') || '!' WHERE name = 'schema_fingerprint'";
    ground.execute(print);
    let Err(error) = ground.try_open() else { panic!("it was opened") };
    assert!(matches!(error, StoreError::OtherSchema), "{error}");
    ground.execute("UPDATE meta SET value = replace(replace(value, '!', ''), 'x', '0') WHERE name = 'schema_fingerprint'");
    let store = ground.open();
    assert_eq!(store.epoch(), 2, "the refused start was no start");
    assert!(rows(&store).await.contains(&("runs".to_owned(), 1)));
}

async fn close(store: greenroom_store::Store) {
    tokio::task::spawn_blocking(move || store.close()).await.unwrap();
}

fn set_schema(ground: &Ground, version: &str) {
    ground.execute(&format!("UPDATE meta SET value = '{version}' WHERE name = 'schema'"));
}
