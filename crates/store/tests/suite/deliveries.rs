//! Deliveries that are tried again, given up, sent again, discarded and listed.

use super::alone::close;
use super::applied::{delivery, host_event};
use super::support::*;
use greenroom_store::commands::{
    ApplyResults, ClaimDelivery, DeliveryOutcome, FinishDelivery, Resolution, ResolveDelivery,
    Resolved,
};
use greenroom_store::reads::deliveries::{self, DeliveryFilter, Lane, Unsuccessful};
use greenroom_store::types::{DeliveryRow, DeliveryStatus, NewDelivery};
use greenroom_store::{Store, reads};

async fn stored(store: &Store, deliveries: Vec<NewDelivery>) -> Vec<DeliveryRow> {
    let first = accept(store, event("c", "a")).await;
    apply(store, ApplyResults { deliveries, ..results(&first) }).await;
    of_run(store).await
}

async fn of_run(store: &Store) -> Vec<DeliveryRow> {
    store.read(|tx| deliveries::of_run(tx, W, "run-a")).await.unwrap()
}

async fn statuses(store: &Store) -> Vec<&'static str> {
    of_run(store).await.iter().map(|row| row.status.as_str()).collect()
}

/// Claims a delivery and ends its attempt.
async fn attempted(store: &Store, row: &DeliveryRow, outcome: DeliveryOutcome) {
    assert!(store.commit(ClaimDelivery { id: row.id, now_ms: 2_500 }).await.unwrap());
    let finish = FinishDelivery {
        id: row.id,
        workspace_id: W.to_owned(),
        run_id: "run-a".to_owned(),
        conversation_id: None,
        outcome,
        log: None,
        now_ms: 3_000,
    };
    assert!(store.commit(finish).await.unwrap());
}

fn failed() -> DeliveryOutcome {
    DeliveryOutcome::Failed { error: "503".to_owned() }
}

fn unknown() -> DeliveryOutcome {
    DeliveryOutcome::Unknown { error: "cut".to_owned() }
}

fn resolve(row: &DeliveryRow, resolution: Resolution, event_id: &str) -> ResolveDelivery {
    ResolveDelivery {
        id: row.id,
        workspace_id: W.to_owned(),
        run_id: "run-a".to_owned(),
        conversation_id: Some("c".to_owned()),
        resolution,
        log: host_event(event_id),
        now_ms: 4_000,
    }
}

async fn retry(store: &Store, row: &DeliveryRow, event_id: &str) -> Resolved {
    store.commit(resolve(row, Resolution::Retry, event_id)).await.unwrap()
}

async fn next_id(store: &Store) -> Option<i64> {
    let next = store.read(|tx| deliveries::next(tx, "hook:c")).await.unwrap();
    next.map(|row| row.id)
}

pub(crate) async fn an_attempt_that_failed_keeps_its_time(ground: Ground) {
    let store = ground.open();
    let rows = stored(&store, vec![delivery("d1")]).await;
    assert_eq!((rows[0].waited_ms, rows[0].next_attempt_at), (0, None));
    let again = |waited_ms| DeliveryOutcome::Again {
        error: "503".to_owned(),
        waited_ms,
        next_attempt_at: 9_000,
    };
    attempted(&store, &rows[0], again(700)).await;
    close(store).await;
    let store = ground.open();
    let row = of_run(&store).await.remove(0);
    assert_eq!((row.status, row.waited_ms), (DeliveryStatus::Pending, 700));
    assert_eq!((row.next_attempt_at, row.error.as_deref()), (Some(9_000), Some("503")));
    assert!(store.commit(ClaimDelivery { id: row.id, now_ms: 9_000 }).await.unwrap());
    let claimed = of_run(&store).await.remove(0);
    assert_eq!((claimed.next_attempt_at, claimed.waited_ms, claimed.attempts), (None, 700, 2));
}

pub(crate) async fn a_retry_goes_before_later_deliveries_with_fresh_time(ground: Ground) {
    let store = ground.open();
    let rows = stored(&store, vec![delivery("d1"), delivery("d2"), delivery("d3")]).await;
    let again = DeliveryOutcome::Again {
        error: "503".to_owned(),
        waited_ms: 86_400_000,
        next_attempt_at: 9_000,
    };
    attempted(&store, &rows[0], again).await;
    attempted(&store, &rows[0], failed()).await;
    attempted(&store, &rows[1], unknown()).await;
    assert_eq!(next_id(&store).await, Some(rows[2].id));
    assert_eq!(retry(&store, &rows[1], "r2").await, Resolved::Done);
    assert_eq!(next_id(&store).await, Some(rows[1].id));
    assert_eq!(retry(&store, &rows[0], "r1").await, Resolved::Done);
    assert_eq!(next_id(&store).await, Some(rows[0].id));
    let row = of_run(&store).await.remove(0);
    assert_eq!((row.status, row.waited_ms, row.attempts), (DeliveryStatus::Pending, 0, 2));
    let log = store.read(|tx| reads::events::by_id(tx, W, "r1")).await.unwrap();
    assert_eq!(log.len(), 1, "it is a fact");
    assert_eq!(log[0].run_id.as_deref(), Some("run-a"));
}

pub(crate) async fn a_delivery_is_retried_once_per_failure(ground: Ground) {
    let store = &ground.open();
    let rows = stored(store, vec![delivery("d1"), delivery("d2")]).await;
    let pending = Resolved::Conflict(DeliveryStatus::Pending);
    assert_eq!(retry(store, &rows[0], "early").await, pending);
    attempted(store, &rows[0], failed()).await;
    let row = &rows[0];
    let ask = |number: usize| async move { retry(store, row, &format!("retry-{number}")).await };
    let outcomes = futures_util::future::join_all((0..16).map(ask)).await;
    assert_eq!(outcomes.iter().filter(|outcome| **outcome == Resolved::Done).count(), 1);
    assert_eq!(outcomes.iter().filter(|outcome| **outcome == pending).count(), 15);
    // The same command once more, as after a lost connection, is the first one.
    attempted(store, &rows[0], failed()).await;
    for _ in 0..2 {
        assert_eq!(retry(store, &rows[0], "again").await, Resolved::Done);
    }
    assert!(store.commit(ClaimDelivery { id: rows[0].id, now_ms: 5_000 }).await.unwrap());
    let claimed = Resolved::Conflict(DeliveryStatus::Claimed);
    assert_eq!(retry(store, &rows[0], "late").await, claimed);
    attempted(store, &rows[0], DeliveryOutcome::Done).await;
    let done = Resolved::Conflict(DeliveryStatus::Done);
    assert_eq!(retry(store, &rows[0], "done").await, done);
    let gone = DeliveryRow { id: 999, ..rows[0].clone() };
    assert_eq!(retry(store, &gone, "gone").await, Resolved::NotFound);
}

pub(crate) async fn what_is_discarded_is_not_sent_and_keeps_nothing_waiting(ground: Ground) {
    let store = ground.open();
    let names = ["pending", "failed", "unknown", "done", "claimed", "last"];
    let rows = stored(&store, names.map(delivery).to_vec()).await;
    attempted(&store, &rows[1], failed()).await;
    attempted(&store, &rows[2], unknown()).await;
    attempted(&store, &rows[3], DeliveryOutcome::Done).await;
    assert!(store.commit(ClaimDelivery { id: rows[4].id, now_ms: 2_500 }).await.unwrap());
    let mut outcomes = Vec::new();
    for row in &rows[..5] {
        let discard = resolve(row, Resolution::Discard, &format!("x-{}", row.delivery_id));
        outcomes.push(store.commit(discard).await.unwrap());
    }
    let refused = [DeliveryStatus::Done, DeliveryStatus::Claimed].map(Resolved::Conflict);
    assert_eq!(outcomes[..3], [Resolved::Done; 3]);
    assert_eq!(outcomes[3..], refused);
    let expected = ["discarded", "discarded", "discarded", "done", "claimed", "pending"];
    assert_eq!(statuses(&store).await, expected);
    assert_eq!(next_id(&store).await, Some(rows[4].id), "what is being sent is left alone");
    let settled = ClaimDelivery { id: rows[0].id, now_ms: 5_000 };
    assert!(!store.commit(settled).await.unwrap(), "nobody sends it any more");
    let discarded = Resolved::Conflict(DeliveryStatus::Discarded);
    assert_eq!(retry(&store, &rows[0], "r").await, discarded);
}

pub(crate) async fn deliveries_are_paged_and_filtered(ground: Ground) {
    let store = ground.open();
    let mut wanted: Vec<NewDelivery> = (0..6).map(|n| delivery(&format!("d{n}"))).collect();
    wanted[4].surface = "other".to_owned();
    wanted[5].surface = "other".to_owned();
    let rows = stored(&store, wanted).await;
    attempted(&store, &rows[0], failed()).await;
    attempted(&store, &rows[1], unknown()).await;
    attempted(&store, &rows[2], DeliveryOutcome::Done).await;
    attempted(&store, &rows[4], failed()).await;
    let page = async |filter: &DeliveryFilter, before: i64, bounds: (usize, i64)| {
        let filter = filter.clone();
        let read = move |tx: &mut dyn greenroom_store::sql::Tx| {
            deliveries::page(tx, W, &filter, before, bounds)
        };
        let page = store.read(read).await.unwrap();
        assert!(page.rows.iter().all(|row| row.payload.is_empty()), "payloads are large");
        let ids: Vec<String> = page.rows.into_iter().map(|row| row.delivery_id).collect();
        (ids.join(" "), page.next)
    };
    let all = DeliveryFilter::default();
    assert_eq!(page(&all, i64::MAX, (4, 99)).await, ("d5 d4 d3 d2".to_owned(), Some(rows[2].id)));
    assert_eq!(page(&all, rows[2].id, (4, 99)).await, ("d1 d0".to_owned(), None));
    let with = |status| DeliveryFilter { status: Some(status), ..all.clone() };
    let found = [
        (DeliveryStatus::Failed, "d4 d0"),
        (DeliveryStatus::Unknown, "d1"),
        (DeliveryStatus::Done, "d2"),
        (DeliveryStatus::Pending, "d5 d3"),
        (DeliveryStatus::Discarded, ""),
    ];
    for (status, expected) in found {
        assert_eq!(page(&with(status), i64::MAX, (9, 99)).await, (expected.to_owned(), None));
        let of_run = DeliveryFilter { run_id: Some("run-a".to_owned()), ..with(status) };
        assert_eq!(page(&of_run, i64::MAX, (9, 99)).await, (expected.to_owned(), None));
    }
    let surface = Some("other".to_owned());
    let other = DeliveryFilter { surface, ..with(DeliveryStatus::Failed) };
    assert_eq!(page(&other, i64::MAX, (9, 99)).await.0, "d4");
    let nobody = DeliveryFilter { run_id: Some("run-b".to_owned()), ..all.clone() };
    assert_eq!(page(&nobody, i64::MAX, (9, 99)).await.0, "");
    // A page that looks at two rows at most says where to go on.
    let done = with(DeliveryStatus::Done);
    assert_eq!(page(&done, i64::MAX, (9, 2)).await, (String::new(), Some(rows[4].id)));
    assert_eq!(page(&done, rows[4].id, (9, 2)).await, ("d2".to_owned(), Some(rows[2].id)));
    let counted = store.read(|tx| deliveries::unsuccessful(tx, W)).await.unwrap();
    assert_eq!(counted, Unsuccessful { failed: 2, unknown: 1 });
    let foreign = store.read(|tx| deliveries::unsuccessful(tx, "other")).await.unwrap();
    assert_eq!(foreign, Unsuccessful::default());
}

pub(crate) async fn lanes_with_work_are_found_once_each(ground: Ground) {
    let store = ground.open();
    let to = |id: &str, target: &str| NewDelivery { target: target.to_owned(), ..delivery(id) };
    let wanted = [("1", "t2"), ("2", "t1"), ("3", "t1"), ("4", "t3"), ("5", "t1"), ("6", "t4")];
    let rows = stored(&store, wanted.map(|(id, target)| to(id, target)).to_vec()).await;
    attempted(&store, &rows[3], DeliveryOutcome::Done).await;
    let lane = |target: &str| Lane { surface: "hook".to_owned(), target: target.to_owned() };
    let lanes = async |after: &'static str, limit: i64| {
        store.read(move |tx| deliveries::lanes(tx, after, limit)).await.unwrap()
    };
    assert_eq!(lanes("", 9).await, [lane("t1"), lane("t2"), lane("t4")], "t3 has no work");
    assert_eq!(lanes("", 2).await, [lane("t1"), lane("t2")]);
    assert_eq!(lanes("t2", 2).await, [lane("t4")]);
    assert_eq!(lanes("t4", 2).await, []);
}
