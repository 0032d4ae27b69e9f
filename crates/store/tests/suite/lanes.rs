//! The order of runs in a conversation.

use super::support::*;
use greenroom_protocol::RunStatus;
use greenroom_store::commands::{
    AcceptEvent, Accepted, Applied, ApplyResults, Displaced, Terminal,
};
use greenroom_store::types::Queue;
use greenroom_store::{Store, reads};
use std::time::UNIX_EPOCH;

pub(crate) async fn a_serial_run_starts_with_its_predecessors_terminal(ground: Ground) {
    let store = ground.open();
    let first = accept(&store, event("c", "a")).await;
    for name in ["b", "d"] {
        assert_eq!(accept(&store, event("c", name)).await.status, RunStatus::Queued);
    }
    assert_eq!(accept(&store, event("elsewhere", "e")).await.status, RunStatus::Running);
    let end = ApplyResults { epoch_now: 9, ..completed(&first, 1) };
    let Applied::Done { next: Some(next), .. } = store.commit(end).await.unwrap() else {
        panic!("nothing started")
    };
    assert_eq!((next.run_id.as_str(), next.status), ("run-b", RunStatus::Running));
    assert_eq!((next.started_at, next.epoch, next.attempt), (Some(2_000), 9, 1));
    assert_eq!(*next, run(&store, "run-b").await);
    assert_eq!(status(&store, "run-d").await, RunStatus::Queued);
    assert_eq!(apply(&store, completed(&next, 1)).await.as_deref(), Some("run-d"));
    let last = run(&store, "run-d").await;
    assert_eq!(apply(&store, completed(&last, 1)).await, None);
}

pub(crate) async fn a_run_starts_after_the_end_of_its_predecessor(ground: Ground) {
    let store = ground.open();
    let now_ms = now_ms();
    let first = accept(&store, AcceptEvent { now_ms: now_ms - 20, ..event("c", "a") }).await;
    apply(&store, ApplyResults { now_ms, ..completed(&first, 1) }).await;
    // Prepared while the first one ran, committed after its end.
    let next = accept(&store, AcceptEvent { now_ms: now_ms - 10, ..event("c", "b") }).await;
    assert_eq!((next.status, next.created_at), (RunStatus::Running, now_ms - 10));
    assert!(next.started_at >= Some(now_ms), "{:?} is before {now_ms}", next.started_at);
}

pub(crate) async fn a_repeated_terminal_returns_the_run_that_it_started(ground: Ground) {
    let store = ground.open();
    let first = accept(&store, event("c", "a")).await;
    accept(&store, AcceptEvent { now_ms: 5_000, ..event("c", "b") }).await;
    for attempt in ["the first time", "again"] {
        let outcome = store.commit(completed(&first, 1)).await.unwrap();
        let Applied::Done { next: Some(next), .. } = outcome else {
            panic!("{attempt}: {outcome:?}")
        };
        assert_eq!((next.run_id.as_str(), next.started_at), ("run-b", Some(5_000)), "{attempt}");
    }
}

pub(crate) async fn results_without_a_terminal_start_nothing(ground: Ground) {
    let store = ground.open();
    let first = accept(&store, event("c", "a")).await;
    accept(&store, event("c", "b")).await;
    let delta = ApplyResults { chunk: Some(delta_chunk(1, &["x"])), ..results(&first) };
    assert_eq!(apply(&store, delta).await, None);
    assert_eq!(status(&store, "run-b").await, RunStatus::Queued);
}

pub(crate) async fn a_full_lane_writes_nothing_and_a_retry_is_a_first_try(ground: Ground) {
    let store = ground.open();
    let first = accept(&store, with_lane_max(event("c", "a"), 1)).await;
    accept(&store, with_lane_max(event("c", "b"), 1)).await;
    let before = rows(&store).await;
    let refused = with_lane_max(event("c", "d"), 1);
    assert_eq!(store.commit(refused.clone()).await.unwrap(), Accepted::LaneFull);
    assert_eq!(rows(&store).await, before);
    apply(&store, completed(&first, 1)).await;
    let retried = accept(&store, refused).await;
    assert_eq!((retried.status, retried.conversation_seq), (RunStatus::Queued, Some(3)));
}

pub(crate) async fn parallel_runs_never_wait_and_are_not_waited_for(ground: Ground) {
    let store = ground.open();
    accept(&store, event("c", "a")).await;
    accept(&store, event("c", "b")).await;
    for name in ["p", "q"] {
        let beside = accept(&store, with_queue(event("c", name), Queue::Parallel)).await;
        assert_eq!(beside.status, RunStatus::Running);
    }
    let beside = run(&store, "run-p").await;
    assert_eq!(apply(&store, completed(&beside, 1)).await, None, "the serial run still runs");
    accept(&store, with_queue(event("d", "r"), Queue::Parallel)).await;
    assert_eq!(accept(&store, event("d", "s")).await.status, RunStatus::Running);
}

pub(crate) async fn replace_ends_the_queued_and_marks_the_running(ground: Ground) {
    let store = ground.open();
    accept(&store, event("c", "a")).await;
    accept(&store, event("c", "b")).await;
    accept(&store, event("c", "d")).await;
    let newest = with_queue(event("c", "z"), Queue::Replace);
    let Accepted::New {
        run: Some(newest),
        displaced: Displaced { cancelled, replaced, requeued: 0 },
    } = store.commit(newest).await.unwrap()
    else {
        panic!("not accepted")
    };
    assert_eq!(newest.status, RunStatus::Queued);
    assert_eq!(replaced, ["run-a"]);
    let ids: Vec<_> = cancelled.iter().map(|run| run.run_id.as_str()).collect();
    assert_eq!(ids, ["run-b", "run-d"]);
    for ended in &cancelled {
        assert_eq!(ended.status, RunStatus::Cancelled);
        assert_eq!(ended.error.as_ref().unwrap().code, "cancelled");
        let id = ended.run_id.clone();
        let results = store.read(move |tx| reads::results::page(tx, &id, 0, 10)).await.unwrap();
        assert_eq!(results.len(), 1);
        assert_eq!((results[0].sequence, results[0].kind.as_ref()), (1, "run.failed"));
    }
    assert!(run(&store, "run-a").await.cancel_requested);
    let active = run(&store, "run-a").await;
    let terminal = Terminal { status: RunStatus::Cancelled, error: None, usage: None };
    let end = ApplyResults { terminal: Some(terminal), ..completed(&active, 1) };
    assert_eq!(apply(&store, end).await.as_deref(), Some("run-z"));
}

pub(crate) async fn replace_starts_at_once_when_nothing_runs(ground: Ground) {
    let store = ground.open();
    let first = accept(&store, with_queue(event("c", "a"), Queue::Replace)).await;
    assert_eq!(first.status, RunStatus::Running);
}

pub(crate) async fn a_replacing_run_waits_for_parallel_ones_before_it_only(ground: Ground) {
    let store = ground.open();
    let before = accept(&store, with_queue(event("c", "a"), Queue::Parallel)).await;
    let replacing = accept(&store, with_queue(event("c", "b"), Queue::Replace)).await;
    assert_eq!(replacing.status, RunStatus::Queued);
    let later = accept(&store, with_queue(event("c", "d"), Queue::Parallel)).await;
    assert_eq!(later.status, RunStatus::Running);
    assert_eq!(apply(&store, completed(&before, 1)).await.as_deref(), Some("run-b"));
}

pub(crate) async fn a_thousand_conversations_do_not_wait_for_each_other(ground: Ground) {
    let store = ground.open();
    let events = (0..1_000).map(|n| accept_running(&store, n));
    futures_util::future::join_all(events).await;
}

async fn accept_running(store: &Store, n: usize) {
    let run = accept(store, event(&format!("c{n}"), &format!("e{n}"))).await;
    assert_eq!(run.status, RunStatus::Running);
}

fn now_ms() -> i64 {
    UNIX_EPOCH.elapsed().unwrap().as_millis().try_into().unwrap()
}
