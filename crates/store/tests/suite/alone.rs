//! Commands that come one after another, each in a commit of its own, and in turns with crowds.

use super::support::*;
use greenroom_store::commands::{Accepted, BeginModelCall};
use greenroom_store::sql::Tx;
use greenroom_store::{Postponed, Store, StoreError, Sync, reads};
use std::time::Duration;
use tokio::task::JoinSet;

const MANY: usize = 30;

pub(crate) async fn close(store: Store) {
    tokio::task::spawn_blocking(move || store.close()).await.unwrap();
}

async fn accept_one_by_one(store: &Store, prefix: &str) {
    for n in 0..MANY {
        let name = format!("{prefix}{n}");
        let run_id = accept(store, event(&name, &name)).await.run_id;
        let found = store.read(move |tx| reads::runs::get(tx, W, &run_id)).await.unwrap();
        assert!(found.is_some(), "{name} was acknowledged and is not to be found");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_is_there_once_it_is_acknowledged() {
    let ground = Ground::sqlite_with(Sync::Normal);
    let store = ground.open();
    accept_one_by_one(&store, "a").await;
    // The same once more, a bad one, and good ones again.
    let mut again = event("a0", "a0");
    again.run.as_mut().unwrap().run_id = "run-again".to_owned();
    let again = store.commit(again).await.unwrap();
    assert!(matches!(again, Accepted::Repeated { run: Some(_) }), "{again:?}");
    let mut taken = event("b", "b");
    taken.run.as_mut().unwrap().run_id = "run-a0".to_owned();
    let error = store.commit(taken).await.unwrap_err();
    assert!(matches!(error, StoreError::Refused(_)), "{error}");
    accept_one_by_one(&store, "c").await;
    assert!(rows(&store).await.contains(&("runs".to_owned(), 2 * MANY as i64)));
    close(store).await;
    let store = ground.open();
    assert!(rows(&store).await.contains(&("runs".to_owned(), 2 * MANY as i64)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn crowds_and_single_ones_take_turns() {
    let ground = Ground::sqlite_with(Sync::Normal);
    let store = ground.open();
    for round in 0..5 {
        accept_one_by_one(&store, &format!("one-{round}-")).await;
        let mut crowd = JoinSet::new();
        for n in 0..100 {
            let (store, name) = (store.clone(), format!("many-{round}-{n}"));
            crowd.spawn(async move { store.commit(event(&name, &name)).await });
        }
        for answer in crowd.join_all().await {
            assert!(matches!(answer.unwrap(), Accepted::New { .. }));
        }
    }
    let kept = 5 * (MANY as i64 + 100);
    for table in ["runs", "events", "conversations", "transcript"] {
        assert!(rows(&store).await.contains(&(table.to_owned(), kept)), "{table}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_postponed_goes_first() {
    let ground = Ground::sqlite_with(Sync::Normal);
    let store = ground.open();
    accept_one_by_one(&store, "a").await;
    for n in 0..MANY {
        assert_eq!(store.postpone(call(n)), Postponed::First, "{n} was left behind");
        accept(&store, event(&format!("b{n}"), &format!("b{n}"))).await;
        let count = |tx: &mut dyn Tx| tx.query_opt("SELECT count(*) FROM model_calls_open", &[]);
        let open = store.read(count).await.unwrap().unwrap().int().unwrap();
        assert_eq!(open, n as i64 + 1);
    }
}

fn call(n: usize) -> BeginModelCall {
    BeginModelCall {
        workspace_id: W.to_owned(),
        call_id: format!("call-{n}"),
        run_id: "run-a0".to_owned(),
        agent: "assistant".to_owned(),
        model: "model".to_owned(),
        method: "models.invoke".into(),
        reserved_micro: 0,
        day: 1,
        epoch: 1,
        now_ms: 1_000,
    }
}

#[tokio::test]
async fn a_database_that_somebody_else_holds_keeps_nobody_from_other_work() {
    let ground = Ground::sqlite_with(Sync::Normal);
    let store = ground.open();
    accept_one_by_one(&store, "a").await;
    let other = rusqlite::Connection::open(ground.path()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    // There is one thread for all: whoever waited for the database on it would hold up the rest.
    let (mut waits, asks) = (JoinSet::new(), store.clone());
    waits.spawn(async move { asks.commit(event("b", "b")).await });
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(waits.try_join_next().is_none());
    other.execute_batch("ROLLBACK").unwrap();
    let answer = waits.join_next().await.unwrap().unwrap().unwrap();
    assert!(matches!(answer, Accepted::New { .. }), "{answer:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_closed_store_takes_nothing_more() {
    let ground = Ground::sqlite_with(Sync::Normal);
    let store = ground.open();
    accept_one_by_one(&store, "a").await;
    close(store.clone()).await;
    let error = store.commit(event("c", "late")).await.unwrap_err();
    assert!(matches!(error, StoreError::Unavailable(_)), "{error}");
    // Nobody writes to it any more: another host may.
    assert!(rows(&ground.open()).await.contains(&("runs".to_owned(), MANY as i64)));
}
