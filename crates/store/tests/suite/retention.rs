//! Retention removes expired rows in small steps and keeps what is needed.

use crate::applied::{delivery, diagnostic};
use crate::audit::{keep, record};
use crate::support::{
    Ground, W, accept, all_state, apply, completed, event, fence, result_chunk, results, rows, run,
    transcript,
};
use greenroom_store::commands::{
    Accepted, ApplyResults, Collect, Collected, Retained, StateWritten, WriteState,
};
use greenroom_store::reads::audit::AuditFilter;
use greenroom_store::reads::search::{SearchQuery, search};
use greenroom_store::reads::sizes::{Precision, TableSize};
use greenroom_store::{Store, reads};

async fn step(store: &Store, what: Retained, before_ms: i64, rows_max: i64) -> Collected {
    store.commit(Collect { what, before_ms, rows_max }).await.unwrap()
}

/// Steps of so many rows until nothing is left to do.
async fn all(store: &Store, what: Retained, before_ms: i64, rows_max: i64) -> u64 {
    let mut rows = 0;
    for _ in 0..100 {
        let collected = step(store, what, before_ms, rows_max).await;
        rows += collected.rows;
        if !collected.has_more {
            return rows;
        }
    }
    panic!("no end of {what:?}");
}

/// The bodies of events by their position in the log.
async fn bodies(store: &Store) -> Vec<(String, bool)> {
    let page = store.read(|tx| reads::events::page(tx, W, None, i64::MAX, 100)).await.unwrap();
    page.into_iter().rev().map(|row| (row.event_id, row.body.is_some())).collect()
}

async fn count(store: &Store, table: &str) -> i64 {
    rows(store).await.into_iter().find(|(name, _)| name == table).unwrap().1
}

/// A run that has ended at 2,000.
async fn ended(store: &Store, conversation: &str, name: &str) {
    let run = accept(store, event(conversation, name)).await;
    apply(store, completed(&run, 1)).await;
}

pub(crate) async fn the_body_of_an_old_event_goes_and_its_key_stays(ground: Ground) {
    let store = ground.open();
    for name in ["a", "b", "c"] {
        ended(&store, name, name).await;
    }
    let mut young = event("d", "d");
    young.now_ms = 5_000;
    accept(&store, young).await;
    assert_eq!(step(&store, Retained::Events, 2_000, 9).await.rows, 0, "a run ended just then");
    let first = step(&store, Retained::Events, 4_000, 2).await;
    assert_eq!(first, Collected { rows: 2, has_more: true });
    let second = step(&store, Retained::Events, 4_000, 2).await;
    assert_eq!(second, Collected { rows: 1, has_more: false });
    assert_eq!(step(&store, Retained::Events, 4_000, 2).await.rows, 0);
    let kept = [("a", false), ("b", false), ("c", false), ("d", true)];
    assert_eq!(bodies(&store).await, kept.map(|(name, body)| (name.to_owned(), body)));
    let mut second = event("a", "a");
    second.run.as_mut().unwrap().run_id = "run-second".to_owned();
    let again = store.commit(second).await.unwrap();
    assert!(matches!(again, Accepted::Repeated { run: Some(_) }), "{again:?}");
    let mut other = event("a", "a");
    other.body_hash = [8; 32];
    let conflict = store.commit(other).await.unwrap();
    assert!(matches!(conflict, Accepted::Conflict), "{conflict:?}");
}

pub(crate) async fn an_open_run_keeps_what_it_needs(ground: Ground) {
    let store = ground.open();
    ended(&store, "a", "a").await;
    let open = accept(&store, event("b", "b")).await;
    apply(&store, ApplyResults { chunk: Some(result_chunk(1, "x", "{}")), ..results(&open) }).await;
    accept(&store, event("b", "queued")).await;
    ended(&store, "c", "c").await;
    for what in [Retained::Events, Retained::Ledger] {
        all(&store, what, 9_000, 10).await;
    }
    let kept = [("a", false), ("b", true), ("queued", true), ("c", true)];
    assert_eq!(bodies(&store).await, kept.map(|(name, body)| (name.to_owned(), body)));
    assert_eq!(count(&store, "results").await, 2, "of `b`, and of `c` behind it");
    apply(&store, completed(&open, 2)).await;
    apply(&store, completed(&run(&store, "run-queued").await, 1)).await;
    for what in [Retained::Events, Retained::Ledger] {
        all(&store, what, 9_000, 10).await;
    }
    assert!(bodies(&store).await.iter().all(|(_, body)| !body));
    assert_eq!(count(&store, "results").await, 0);
    assert_eq!(count(&store, "runs").await, 4);
}

pub(crate) async fn the_ledger_of_an_ended_run_goes_in_small_steps(ground: Ground) {
    let store = ground.open();
    let first = accept(&store, event("a", "a")).await;
    for sequence in 1..=25 {
        let chunk = Some(result_chunk(sequence, "x", "{}"));
        apply(&store, ApplyResults { chunk, ..results(&first) }).await;
    }
    let end = ApplyResults {
        diagnostics: vec![diagnostic("d")],
        deliveries: vec![delivery("settled"), delivery("open")],
        ..completed(&first, 26)
    };
    apply(&store, end).await;
    ground.execute("UPDATE outbox SET status = 'done' WHERE delivery_id = 'settled'");
    let mut steps = Vec::new();
    loop {
        let collected = step(&store, Retained::Ledger, 9_000, 10).await;
        steps.push(collected.rows);
        if !collected.has_more {
            break;
        }
    }
    assert_eq!(steps, [10, 10, 6 + 1 + 1], "the last with its diagnostic and its delivery");
    let left = store.read(|tx| reads::deliveries::of_run(tx, W, "run-a")).await.unwrap();
    assert_eq!(left.iter().map(|row| row.delivery_id.as_str()).collect::<Vec<_>>(), ["open"]);
    let kept = run(&store, "run-a").await;
    assert_eq!((kept.last_seq, kept.finished_at), (26, Some(2_000)));
    let read = store.read(|tx| reads::results::page(tx, "run-a", 0, 9)).await.unwrap();
    assert!(read.is_empty());
}

pub(crate) async fn old_items_go_from_the_transcript_and_from_search(ground: Ground) {
    let store = ground.open();
    for name in ["apple", "apfel", "pomme"] {
        accept(&store, event("c", name)).await;
    }
    let mut young = event("c", "mela");
    young.now_ms = 5_000;
    accept(&store, young).await;
    while store.index_some(100).await.unwrap() > 0 {}
    assert_eq!(all(&store, Retained::Transcript, 4_000, 2).await, 3);
    assert_eq!(transcript(&store, "c").await, ["4 user mela"]);
    // The newest may go too: what comes later is found all the same.
    assert_eq!(all(&store, Retained::Transcript, 9_000, 2).await, 1);
    assert_eq!(transcript(&store, "c").await, Vec::<String>::new());
    accept(&store, event("c", "manzana")).await;
    while store.index_some(100).await.unwrap() > 0 {}
    for (query, found) in [("apple", 0), ("mela", 0), ("manzana", 1)] {
        let query = SearchQuery {
            workspace: W.to_owned(),
            text: query.to_owned(),
            top_k: 9,
            ..SearchQuery::default()
        };
        let hits = store.read(move |tx| search(tx, &query)).await.unwrap();
        assert_eq!(hits.len(), found);
    }
}

pub(crate) async fn old_audit_records_go(ground: Ground) {
    let store = ground.open();
    for at in 0..25 {
        keep(&store, Some("r"), vec![record("state.get", "ok", at)]).await;
    }
    keep(&store, Some("r"), vec![record("a", "ok", 3), record("b", "ok", 100)]).await;
    assert_eq!(step(&store, Retained::Audit, 20, 10).await, Collected { rows: 10, has_more: true });
    assert_eq!(all(&store, Retained::Audit, 20, 10).await, 10);
    let filter = AuditFilter::default();
    let page = store.read(move |tx| reads::audit::page(tx, W, &filter, None, 99)).await.unwrap();
    let times: Vec<_> = page.entries.iter().map(|entry| entry.record.at_ms).collect();
    assert_eq!(times, [100, 3, 24, 23, 22, 21, 20], "a row goes with its youngest record");
}

pub(crate) async fn expired_state_gives_its_space_back(ground: Ground) {
    let store = ground.open();
    accept(&store, event("c", "a")).await;
    let write = |owner: &str, name: &str, expires_at| WriteState {
        fence: fence("run-a"),
        owner: owner.to_owned(),
        name: name.to_owned(),
        value: Some("1234".to_owned()),
        if_version: None,
        expires_at,
        owner_bytes_max: Some(10),
        audit: None,
        now_ms: 2_000,
    };
    for (owner, name, expires_at) in [
        ("o", "a", Some(3_000)),
        ("o", "b", Some(3_001)),
        ("p", "a", Some(2_500)),
        ("p", "b", None),
    ] {
        store.commit(write(owner, name, expires_at)).await.unwrap();
    }
    let full = store.commit(write("o", "c", None)).await.unwrap();
    assert_eq!(full, StateWritten::OverQuota { used: 10, max: 10 });
    assert_eq!(all(&store, Retained::ExpiredState, 3_000, 1).await, 2);
    let (o, p) = (write("o", "c", None), write("p", "c", None));
    assert_eq!(store.commit(o).await.unwrap(), StateWritten::Set(1));
    assert_eq!(store.commit(p).await.unwrap(), StateWritten::Set(1));
    let span = all_state();
    let left = store.read(move |tx| reads::state::list(tx, W, "o", &span, 0)).await.unwrap();
    assert_eq!(left.0.iter().map(|row| row.name.as_str()).collect::<Vec<_>>(), ["b", "c"]);
}

pub(crate) async fn sizes_tell_what_is_kept(ground: Ground) {
    let store = ground.open();
    let before = store.read(|tx| reads::sizes::sizes(tx)).await.unwrap();
    assert!(before.tables.iter().all(|table| table.rows == 0), "{before:?}");
    ended(&store, "c", "a").await;
    accept(&store, event("c", "b")).await;
    keep(&store, None, vec![record("state.get", "ok", 1)]).await;
    let sizes = store.read(|tx| reads::sizes::sizes(tx)).await.unwrap();
    assert!(sizes.database_bytes > 10_000);
    for (name, rows) in
        [("events", 2), ("runs", 2), ("results", 1), ("transcript", 2), ("audit", 1), ("state", 0)]
    {
        let expected = TableSize { name, rows, precision: Precision::Exact };
        assert!(sizes.tables.contains(&expected), "{expected:?} in {sizes:?}");
    }
}
