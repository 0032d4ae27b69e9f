//! Many commands in one transaction: each fails or succeeds alone.

use super::support::*;
use greenroom_store::StoreError;
use greenroom_store::commands::Accepted;

pub(crate) async fn one_bad_command_fails_alone(ground: Ground) {
    let store = ground.open();
    accept(&store, event("c", "taken")).await;
    // All are sent before the writer wakes up; every fourth wants a run's id that is taken.
    let commands = (0..100).map(|n| {
        let mut event = event(&format!("c{n}"), &format!("e{n}"));
        if n % 4 == 3 {
            event.run.as_mut().unwrap().run_id = "run-taken".to_owned();
        }
        store.commit(event)
    });
    let answers = futures_util::future::join_all(commands).await;
    for (n, answer) in answers.iter().enumerate() {
        match answer {
            Ok(Accepted::New { .. }) => assert_ne!(n % 4, 3, "{n}"),
            Err(StoreError::Refused(_)) => assert_eq!(n % 4, 3, "{n}"),
            other => panic!("{n}: {other:?}"),
        }
    }
    let counted = rows(&store).await;
    for table in ["runs", "events", "conversations", "transcript"] {
        assert!(counted.contains(&(table.to_owned(), 76)), "{counted:?}");
    }
}

pub(crate) async fn a_closed_store_has_kept_what_was_sent(ground: Ground) {
    let store = ground.open();
    let sent = (0..200).map(|n| accept(&store, event(&format!("c{n}"), &format!("e{n}"))));
    futures_util::future::join_all(sent).await;
    let closing = store.clone();
    tokio::task::spawn_blocking(move || closing.close()).await.unwrap();
    let error = store.commit(event("c", "late")).await.unwrap_err();
    assert!(matches!(error, StoreError::Unavailable(_)), "{error}");
    drop(store);
    let again = ground.open();
    assert!(rows(&again).await.contains(&("runs".to_owned(), 200)));
}
