//! Cost of models: stored per call, summed per run and per day, unknown where a provider gave no usage.

use crate::support::{Ground, W};
use greenroom_store::commands::{BeginModelCall, ChargeInterrupted, RecordModelCall};
use greenroom_store::reads::spend::{RunSpend, SpendRow, of_day, of_run, sum_of_run};
use greenroom_store::{Postponed, Store};

fn call(run_id: &str, tokens: Option<i64>, cost_micro: Option<i64>) -> RecordModelCall {
    RecordModelCall {
        workspace_id: W.to_owned(),
        call_id: String::new(),
        run_id: run_id.to_owned(),
        agent: "assistant".to_owned(),
        model: "small".to_owned(),
        method: "models.invoke".into(),
        outcome: "stop".to_owned(),
        usage: tokens.map(|tokens| format!("{{\"total_tokens\":{tokens}}}")),
        tokens,
        cost_micro,
        charged_micro: cost_micro.unwrap_or(0),
        duration_ms: 5,
        day: 7,
        now_ms: 1,
    }
}

fn begins(run_id: &str, call_id: &str, epoch: i64) -> BeginModelCall {
    BeginModelCall {
        workspace_id: W.to_owned(),
        call_id: call_id.to_owned(),
        run_id: run_id.to_owned(),
        agent: "assistant".to_owned(),
        model: "small".to_owned(),
        method: "models.invoke".into(),
        reserved_micro: 700,
        day: 7,
        epoch,
        now_ms: 1,
    }
}

pub(crate) async fn a_call_that_nobody_saw_the_end_of_is_charged_with_what_was_reserved(
    ground: Ground,
) {
    let store = ground.open();
    let ended = RecordModelCall { call_id: "a".to_owned(), ..call("r", Some(10), Some(400)) };
    // A call that was never begun is not recorded, one that was is recorded once.
    assert!(!store.commit(ended.clone()).await.unwrap());
    for (call_id, epoch) in [("a", 1), ("b", 1), ("c", 2)] {
        assert!(store.commit(begins("r", call_id, epoch)).await.unwrap());
    }
    assert!(!store.commit(begins("r", "b", 1)).await.unwrap());
    assert!(store.commit(ended.clone()).await.unwrap());
    assert!(!store.commit(ended).await.unwrap());
    let charge = ChargeInterrupted { epoch: 2, calls_max: 10 };
    assert!(store.commit(charge.clone()).await.unwrap());
    // The call of this very start goes on.
    assert!(!store.commit(charge).await.unwrap());
    let rows = store.read(|tx| of_run(tx, W, "r", 10)).await.unwrap();
    let told: Vec<_> = rows.iter().map(|row| (row.outcome.as_str(), row.cost_micro)).collect();
    assert_eq!(told, [("stop", Some(400)), ("interrupted", None)]);
    let sum = RunSpend {
        calls: 2,
        unpriced: 1,
        tokens: Some(10),
        cost_micro: Some(400),
        charged_micro: 1_100,
    };
    assert_eq!(store.read(|tx| sum_of_run(tx, W, "r")).await.unwrap(), sum);
    let day = store.read(|tx| of_day(tx, 7)).await.unwrap();
    assert_eq!((day[0].calls, day[0].unpriced, day[0].cost_micro), (2, 1, 1_100));
}

pub(crate) async fn what_is_postponed_goes_with_the_next_command_and_at_the_latest_with_the_close(
    ground: Ground,
) {
    let store = ground.open();
    let ends = |id: &str| RecordModelCall { call_id: id.to_owned(), ..call("r", None, None) };
    assert_eq!(store.postpone(begins("r", "a", 1)), Postponed::First);
    assert_eq!(store.postpone(ends("a")), Postponed::Behind);
    let count = async |store: &Store| store.read(|tx| of_run(tx, W, "r", 10)).await.unwrap().len();
    assert_eq!(count(&store).await, 0);
    // In their order, and before it: the call has its row by now.
    assert!(!store.commit(ends("a")).await.unwrap());
    assert_eq!(count(&store).await, 1);
    assert_eq!(store.postpone(begins("r", "b", 1)), Postponed::First);
    assert_eq!(store.postpone(ends("b")), Postponed::Behind);
    store.flush().await.unwrap();
    assert!(!store.commit(ends("b")).await.unwrap());
    store.postpone(begins("r", "c", 1));
    store.postpone(ends("c"));
    tokio::task::spawn_blocking(move || store.close()).await.unwrap();
    assert_eq!(count(&ground.open()).await, 3);
}

pub(crate) async fn calls_are_summed_per_run_and_per_day_and_unknown_is_not_nothing(
    ground: Ground,
) {
    let store = ground.open();
    let calls = [
        call("r", Some(100), Some(6_000)),
        call("r", Some(50), None),
        call("r", None, None),
        call("r", Some(10), Some(400)),
        call("s", None, None),
    ];
    for (number, call) in calls.into_iter().enumerate() {
        let call_id = number.to_string();
        store.commit(begins(&call.run_id, &call_id, 1)).await.unwrap();
        store.commit(RecordModelCall { call_id, ..call }).await.unwrap();
    }
    let sum = async |workspace: &'static str, run_id: &'static str| {
        store.read(move |tx| sum_of_run(tx, workspace, run_id)).await.unwrap()
    };
    let expected = RunSpend {
        calls: 4,
        unpriced: 2,
        tokens: Some(160),
        cost_micro: Some(6_400),
        charged_micro: 6_400,
    };
    assert_eq!(sum(W, "r").await, expected);
    let unknown =
        RunSpend { calls: 1, unpriced: 1, tokens: None, cost_micro: None, charged_micro: 0 };
    assert_eq!(sum(W, "s").await, unknown);
    assert_eq!(sum(W, "none").await, RunSpend::default());
    assert_eq!(sum("elsewhere", "r").await, RunSpend::default());
    let rows = store.read(|tx| of_run(tx, W, "r", 10)).await.unwrap();
    let costs: Vec<Option<i64>> = rows.iter().map(|row| row.cost_micro).collect();
    assert_eq!(costs, [Some(6_000), None, None, Some(400)]);
    let day = SpendRow {
        workspace_id: W.to_owned(),
        agent: "assistant".to_owned(),
        model: "small".to_owned(),
        calls: 5,
        unpriced: 3,
        tokens: 160,
        cost_micro: 6_400,
    };
    assert_eq!(store.read(|tx| of_day(tx, 7)).await.unwrap(), [day]);
    assert_eq!(store.read(|tx| of_day(tx, 8)).await.unwrap(), []);
}
