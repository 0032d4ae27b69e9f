//! Accepting events: new, repeated, in conflict, unbound.

use super::support::*;
use greenroom_protocol::RunStatus;
use greenroom_store::commands::{AcceptEvent, Accepted, Displaced};
use greenroom_store::reads;
use greenroom_store::types::{OnInterrupt, Queue, RunRow};

pub(crate) async fn a_new_event_starts_its_run_at_once(ground: Ground) {
    let store = ground.open();
    let accepted = store.commit(event("c", "a")).await.unwrap();
    let Accepted::New { run: Some(started), displaced } = accepted else { panic!("{accepted:?}") };
    let expected = RunRow {
        workspace_id: "default".to_owned(),
        run_id: "run-a".to_owned(),
        event_seq: 1,
        event_id: "a".to_owned(),
        agent: "assistant".to_owned(),
        runner_id: "plugin:greenroom/echo/default".to_owned(),
        conversation_id: Some("c".to_owned()),
        conversation_seq: Some(1),
        transcript_seq: Some(1),
        queue: Queue::Serial,
        status: RunStatus::Running,
        attempt: 1,
        epoch: 1,
        grant_hash: Some("g1".to_owned()),
        on_interrupt: OnInterrupt::Retry,
        deadline_ms: 60_000,
        surface: None,
        last_seq: 0,
        reserved_seq: 64,
        effects: false,
        cancel_requested: false,
        steers: false,
        created_at: 1_000,
        started_at: started.started_at,
        finished_at: None,
        error: None,
        usage: None,
        isolation: None,
        session: String::new(),
    };
    assert_eq!((&started, displaced), (&expected, Displaced::default()));
    assert!(started.started_at >= Some(started.created_at), "{:?}", started.started_at);
    assert_eq!(run(&store, "run-a").await, expected);
    let events = store.read(|tx| reads::events::by_id(tx, W, "a")).await.unwrap();
    assert_eq!(events.len(), 1);
    assert_eq!(events[0].run_id.as_deref(), Some("run-a"));
    assert_eq!(events[0].body.as_deref(), Some(r#"{"input":{"text":"a"}}"#));
    let grant = store.read(|tx| reads::runs::grant(tx, "g1")).await.unwrap();
    assert_eq!(grant.as_deref(), Some(r#"{"grant":"g1"}"#));
}

pub(crate) async fn the_same_event_again_gives_the_first_run(ground: Ground) {
    let store = ground.open();
    let first = accept(&store, event("c", "a")).await;
    apply(&store, completed(&first, 1)).await;
    let before = rows(&store).await;
    let mut again = event("c", "a");
    again.run.as_mut().unwrap().run_id = "run-other".to_owned();
    let Accepted::Repeated { run: Some(found) } = store.commit(again).await.unwrap() else {
        panic!("not told as repeated")
    };
    assert_eq!((found.run_id.as_str(), found.status), ("run-a", RunStatus::Completed));
    assert_eq!(rows(&store).await, before);
}

pub(crate) async fn the_same_key_with_another_body_is_a_conflict(ground: Ground) {
    let store = ground.open();
    accept(&store, event("c", "a")).await;
    let before = rows(&store).await;
    let other = AcceptEvent { body_hash: [8; 32], ..event("c", "a") };
    assert_eq!(store.commit(other).await.unwrap(), Accepted::Conflict);
    assert_eq!(rows(&store).await, before);
}

pub(crate) async fn a_key_belongs_to_its_workspace_and_source(ground: Ground) {
    let store = ground.open();
    accept(&store, event("c", "a")).await;
    let mut source = AcceptEvent { source: "schedule".to_owned(), ..event("c2", "a") };
    source.run.as_mut().unwrap().run_id = "run-source".to_owned();
    accept(&store, source).await;
    let mut workspace = AcceptEvent { workspace_id: "other".to_owned(), ..event("c", "a") };
    workspace.run.as_mut().unwrap().run_id = "run-workspace".to_owned();
    let run = accept(&store, workspace).await;
    assert_eq!(run.conversation_seq, Some(1), "conversations are counted by workspace");
}

pub(crate) async fn an_unbound_event_is_kept_without_a_run(ground: Ground) {
    let store = ground.open();
    let unbound = AcceptEvent { run: None, ..event("c", "a") };
    let new = Accepted::New { run: None, displaced: Displaced::default() };
    assert_eq!(store.commit(unbound.clone()).await.unwrap(), new);
    assert_eq!(store.commit(unbound).await.unwrap(), Accepted::Repeated { run: None });
    let kept: Vec<_> = rows(&store).await.into_iter().filter(|table| table.1 > 0).collect();
    let expected = [("events", 1), ("conversations", 1), ("transcript", 1)];
    assert_eq!(kept, expected.map(|(table, count)| (table.to_owned(), count)));
}

pub(crate) async fn an_event_without_a_conversation_never_waits(ground: Ground) {
    let store = ground.open();
    for name in ["a", "b"] {
        let alone = AcceptEvent { conversation_id: None, item: None, ..event("", name) };
        let run = accept(&store, alone).await;
        assert_eq!(run.status, RunStatus::Running);
        assert_eq!((run.conversation_seq, run.transcript_seq), (None, None));
    }
}

pub(crate) async fn counters_and_items_follow_the_events(ground: Ground) {
    let store = ground.open();
    let first = accept(&store, event("c", "a")).await;
    accept(&store, AcceptEvent { item: None, ..event("c", "b") }).await;
    let mut answer = completed(&first, 1);
    answer.items = vec![item("i1", "tool", "looked"), item("i2", "assistant", "answer")];
    apply(&store, answer).await;
    let last = accept(&store, AcceptEvent { now_ms: 5_000, ..event("c", "d") }).await;
    assert_eq!((last.conversation_seq, last.transcript_seq), (Some(3), Some(4)));
    let expected = ["1 user a", "2 tool looked", "3 assistant answer", "4 user d"];
    assert_eq!(transcript(&store, "c").await, expected);
    let row = store.read(|tx| reads::conversations::get(tx, W, "c")).await.unwrap().unwrap();
    assert_eq!((row.event_seq, row.transcript_seq), (3, 4));
    assert_eq!((row.created_at, row.updated_at), (1_000, 5_000));
}

pub(crate) async fn one_event_from_many_senders_at_once_is_one_run(ground: Ground) {
    let store = ground.open();
    let tries = (0..32).map(|sender| {
        let mut same = event("c", "a");
        same.run.as_mut().unwrap().run_id = format!("run-{sender}");
        store.commit(same)
    });
    let answers = futures_util::future::try_join_all(tries).await.unwrap();
    let new = answers.iter().filter(|answer| matches!(answer, Accepted::New { .. })).count();
    assert_eq!(new, 1);
    assert!(rows(&store).await.contains(&("runs".to_owned(), 1)));
}

pub(crate) async fn a_grant_is_stored_once(ground: Ground) {
    let store = ground.open();
    for name in ["a", "b", "d"] {
        accept(&store, event(name, name)).await;
    }
    let mut other = event("e", "e");
    other.run.as_mut().unwrap().grant = Some(grant("g2"));
    accept(&store, other).await;
    assert!(rows(&store).await.contains(&("grants".to_owned(), 2)));
}

pub(crate) async fn a_plain_run_takes_eight_rows_at_most(ground: Ground) {
    let store = ground.open();
    let first = accept(&store, event("c", "a")).await;
    let mut answer = completed(&first, 2);
    answer.items = vec![item("i1", "assistant", "answer")];
    apply(&store, answer).await;
    let total: i64 = rows(&store).await.iter().map(|table| table.1).sum();
    assert!(total <= 8, "{total} rows");
}
