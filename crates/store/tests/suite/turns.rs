//! Runs cancelled, restarted, delivered.

use super::applied::{delivery, host_event};
use super::support::*;
use greenroom_protocol::RunStatus;
use greenroom_store::commands::{
    ApplyResults, CancelQueued, CancelRequest, ClaimDelivery, DeliveryOutcome, FinishDelivery,
    RestartRun, RunFence,
};
use greenroom_store::types::{DeliveryStatus, Queue, RunRow};
use greenroom_store::{Store, reads};

fn cancel(run_id: &str) -> CancelQueued {
    let (workspace_id, run_id) = (W.to_owned(), run_id.to_owned());
    CancelQueued { workspace_id, run_id, epoch_now: 4, now_ms: 3_000 }
}

pub(crate) async fn cancel_ends_a_queued_run_and_marks_a_running_one(ground: Ground) {
    let store = ground.open();
    let first = accept(&store, event("c", "a")).await;
    accept(&store, event("c", "b")).await;
    let CancelRequest::Cancelled { run: ended, next } =
        store.commit(cancel("run-b")).await.unwrap()
    else {
        panic!("it was queued")
    };
    assert_eq!((ended.status, ended.finished_at), (RunStatus::Cancelled, Some(3_000)));
    assert_eq!((ended.last_seq, ended.started_at), (1, None));
    assert_eq!(next, None);
    assert_eq!(store.commit(cancel("run-a")).await.unwrap(), CancelRequest::Running);
    assert_eq!(
        run(&store, "run-a").await,
        RunRow { cancel_requested: true, ..first.clone() },
        "its writer ends it"
    );
    apply(&store, completed(&first, 1)).await;
    let ended = CancelRequest::Ended(RunStatus::Completed);
    assert_eq!(store.commit(cancel("run-a")).await.unwrap(), ended);
    assert_eq!(store.commit(cancel("run-none")).await.unwrap(), CancelRequest::NotFound);
    let foreign = CancelQueued { workspace_id: "other".to_owned(), ..cancel("run-a") };
    assert_eq!(store.commit(foreign).await.unwrap(), CancelRequest::NotFound);
}

pub(crate) async fn cancelling_what_blocks_a_lane_starts_the_next(ground: Ground) {
    let store = ground.open();
    accept(&store, with_queue(event("c", "p"), Queue::Parallel)).await;
    accept(&store, with_queue(event("c", "r"), Queue::Replace)).await;
    let waiting = accept(&store, event("c", "s")).await;
    assert_eq!(waiting.status, RunStatus::Queued, "it waits behind the replacing run");
    let answer = store.commit(cancel("run-r")).await.unwrap();
    let CancelRequest::Cancelled { next: Some(next), .. } = answer else {
        panic!("nothing started: {answer:?}")
    };
    assert_eq!((next.run_id.as_str(), next.epoch), ("run-s", 4));
}

fn restart(run: &RunRow) -> RestartRun {
    RestartRun {
        fence: run.fence(),
        epoch_now: 5,
        chunk: result_chunk(run.reserved_seq + 1, "run.restarted", r#"{"attempt":2}"#),
        reserved_seq: run.reserved_seq + 64,
        now_ms: 4_000,
    }
}

pub(crate) async fn a_restarted_run_has_a_new_attempt_and_new_numbers(ground: Ground) {
    let store = ground.open();
    let first = accept(&store, event("c", "a")).await;
    let delta = ApplyResults { chunk: Some(delta_chunk(1, &["x"])), ..results(&first) };
    apply(&store, delta).await;
    assert!(store.commit(restart(&first)).await.unwrap());
    let after = run(&store, "run-a").await;
    let expected = RunRow {
        attempt: 2,
        epoch: 5,
        started_at: Some(4_000),
        last_seq: 65,
        reserved_seq: 128,
        ..first.clone()
    };
    assert_eq!(after, expected);
    assert!(store.commit(restart(&first)).await.unwrap(), "the same command again");
    assert_eq!(run(&store, "run-a").await, expected);
    let late = ApplyResults { chunk: Some(delta_chunk(66, &["late"])), ..results(&first) };
    let stale = store.commit(late).await.unwrap();
    assert_eq!(stale, greenroom_store::commands::Applied::Stale);
    apply(&store, completed(&after, 66)).await;
    let kinds = store.read(|tx| reads::results::page(tx, "run-a", 0, 10)).await.unwrap();
    let kinds: Vec<_> = kinds.iter().map(|r| (r.sequence, r.kind.as_ref())).collect();
    assert_eq!(kinds, [(1, "message.delta"), (65, "run.restarted"), (66, "run.completed")]);
}

pub(crate) async fn a_run_is_not_restarted_when_it_must_not_be(ground: Ground) {
    let store = ground.open();
    let acted = accept(&store, event("a", "a")).await;
    apply(&store, ApplyResults { effects: true, ..results(&acted) }).await;
    assert!(!store.commit(restart(&acted)).await.unwrap(), "it has had an effect");
    let cancelled = accept(&store, event("b", "b")).await;
    store.commit(cancel("run-b")).await.unwrap();
    assert!(!store.commit(restart(&cancelled)).await.unwrap(), "it was to be cancelled");
    let seen = accept(&store, event("c", "c")).await;
    let chunk = result_chunk(64, "run.restarted", "{}");
    let reused = RestartRun { chunk, ..restart(&seen) };
    assert!(!store.commit(reused).await.unwrap(), "number 64 may have been seen");
    let fence = RunFence { epoch: 3, ..seen.fence() };
    let other = RestartRun { fence, ..restart(&seen) };
    assert!(!store.commit(other).await.unwrap(), "another epoch");
    apply(&store, completed(&seen, 1)).await;
    assert!(!store.commit(restart(&seen)).await.unwrap(), "it has ended");
    assert!(rows(&store).await.contains(&("results".to_owned(), 1)));
}

async fn with_deliveries(store: &Store, ids: &[&str]) -> Vec<i64> {
    let first = accept(store, event("c", "a")).await;
    let deliveries = ids.iter().map(|id| delivery(id)).collect();
    apply(store, ApplyResults { deliveries, ..results(&first) }).await;
    open(store).await
}

async fn open(store: &Store) -> Vec<i64> {
    let all = store.read(|tx| reads::deliveries::of_run(tx, W, "run-a")).await.unwrap();
    let is_open = |status| matches!(status, DeliveryStatus::Pending | DeliveryStatus::Claimed);
    all.iter().filter(|delivery| is_open(delivery.status)).map(|delivery| delivery.id).collect()
}

fn finish(id: i64, outcome: DeliveryOutcome) -> FinishDelivery {
    FinishDelivery {
        id,
        workspace_id: W.to_owned(),
        run_id: "run-a".to_owned(),
        conversation_id: Some("c".to_owned()),
        outcome,
        log: Some(host_event(&format!("delivered-{id}"))),
        now_ms: 3_000,
    }
}

pub(crate) async fn deliveries_are_claimed_and_settled(ground: Ground) {
    let store = ground.open();
    let ids = with_deliveries(&store, &["d1", "d2", "d3", "d4"]).await;
    assert!(ids.is_sorted() && ids.len() == 4);
    let early = finish(ids[0], DeliveryOutcome::Done);
    assert!(!store.commit(early).await.unwrap(), "it was not claimed");
    let error = || "503".to_owned();
    let outcomes = [
        DeliveryOutcome::Done,
        DeliveryOutcome::Failed { error: error() },
        DeliveryOutcome::Unknown { error: error() },
        DeliveryOutcome::Again { error: error(), waited_ms: 500, next_attempt_at: 3_500 },
    ];
    for (id, outcome) in ids.iter().zip(outcomes) {
        assert!(store.commit(ClaimDelivery { id: *id, now_ms: 2_500 }).await.unwrap());
        assert!(store.commit(finish(*id, outcome)).await.unwrap());
    }
    assert_eq!(open(&store).await, [ids[3]], "only what is tried again is open");
    let lanes = store.read(|tx| reads::deliveries::lanes(tx, "", 10)).await.unwrap();
    assert_eq!(lanes.len(), 1, "one target waits");
    let target = lanes[0].target.clone();
    let next = store.read(move |tx| reads::deliveries::next(tx, &target)).await.unwrap();
    assert_eq!(next.map(|delivery| delivery.id), Some(ids[3]));
    let none = store.read(|tx| reads::deliveries::next(tx, "nobody")).await.unwrap();
    assert!(none.is_none());
    let all = store.read(|tx| reads::deliveries::of_run(tx, W, "run-a")).await.unwrap();
    let all: Vec<_> = all.iter().map(|d| (d.status, d.error.as_deref(), d.attempts)).collect();
    let expected = [
        (DeliveryStatus::Done, None, 1),
        (DeliveryStatus::Failed, Some("503"), 1),
        (DeliveryStatus::Unknown, Some("503"), 1),
        (DeliveryStatus::Pending, Some("503"), 1),
    ];
    assert_eq!(all, expected);
    let settled = ClaimDelivery { id: ids[0], now_ms: 3_500 };
    assert!(!store.commit(settled).await.unwrap(), "it is settled");
    assert!(store.commit(ClaimDelivery { id: ids[3], now_ms: 3_500 }).await.unwrap());
    let foreign = store.read(|tx| reads::deliveries::of_run(tx, "other", "run-a")).await.unwrap();
    assert!(foreign.is_empty());
}

pub(crate) async fn a_repeated_claim_or_settlement_has_no_second_effect(ground: Ground) {
    let store = ground.open();
    let ids = with_deliveries(&store, &["d1"]).await;
    for _ in 0..2 {
        let claim = ClaimDelivery { id: ids[0], now_ms: 2_500 };
        assert!(store.commit(claim).await.unwrap());
    }
    let outcome = DeliveryOutcome::Unknown { error: "cut".to_owned() };
    for _ in 0..2 {
        assert!(store.commit(finish(ids[0], outcome.clone())).await.unwrap());
    }
    let other = FinishDelivery { now_ms: 3_001, ..finish(ids[0], DeliveryOutcome::Done) };
    assert!(!store.commit(other).await.unwrap());
    let found = store.read(|tx| reads::deliveries::of_run(tx, W, "run-a")).await.unwrap();
    assert_eq!((found[0].attempts, found[0].status), (1, DeliveryStatus::Unknown));
    assert!(rows(&store).await.contains(&("events".to_owned(), 2)), "logged once");
}

pub(crate) async fn a_repeated_command_changes_nothing_the_second_time(ground: Ground) {
    use super::applied::everything;
    let store = ground.open();
    let first = accept(&store, event("c", "a")).await;
    accept(&store, event("c", "b")).await;
    accept(&store, event("c", "d")).await;
    assert_eq!(accept(&store, event("c", "a")).await, first, "its own commit is told as new");
    apply(&store, everything(&first)).await;
    let (counted, stored) = (rows(&store).await, run(&store, "run-a").await);
    apply(&store, everything(&first)).await;
    assert_eq!((rows(&store).await, run(&store, "run-a").await), (counted, stored));
    store.commit(cancel("run-b")).await.unwrap();
    let (counted, stored) = (rows(&store).await, run(&store, "run-b").await);
    let again = store.commit(cancel("run-b")).await.unwrap();
    assert_eq!(again, CancelRequest::Ended(RunStatus::Cancelled));
    assert_eq!((rows(&store).await, run(&store, "run-b").await), (counted, stored));
    let end = completed(&first, 3);
    let next = apply(&store, end.clone()).await;
    assert_eq!(next.as_deref(), Some("run-d"));
    let counted = rows(&store).await;
    assert_eq!(apply(&store, end).await, next);
    assert_eq!(rows(&store).await, counted);
}
