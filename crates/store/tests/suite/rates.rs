//! Counters over time: counted once with what they count, and removed by retention.

use crate::support::{Ground, W, accept, apply, completed, event};
use greenroom_protocol::RunStatus;
use greenroom_store::Store;
use greenroom_store::commands::{
    AcceptEvent, ApplyResults, BeginModelCall, CancelQueued, Collect, RecordModelCall, Retained,
    Terminal,
};
use greenroom_store::rates::grade;
use greenroom_store::reads::rates::{
    ModelRate, RunRate, Steps, Waiting, error_at, models, runs, waiting,
};

const MINUTE: i64 = 60_000;

async fn counted(store: &Store, steps: Steps) -> Vec<(i64, String, i64, i64)> {
    let rates = store.read(move |tx| runs(tx, W, steps)).await.unwrap();
    let tuple = |rate: RunRate| (rate.step, rate.status, rate.grade, rate.runs);
    rates.into_iter().map(tuple).collect()
}

/// A run that is accepted and ends so much later.
async fn ended(store: &Store, name: &str, at: i64, took: i64, status: RunStatus) {
    let run = accept(store, AcceptEvent { now_ms: at, ..event(name, name) }).await;
    let terminal = Some(Terminal { status, error: None, usage: None });
    let end = ApplyResults { terminal, now_ms: at + took, ..completed(&run, 1) };
    apply(store, end.clone()).await;
    // Once more: the first answer may have been lost.
    apply(store, end).await;
}

pub(crate) async fn runs_are_counted_once_when_they_end(ground: Ground) {
    let store = ground.open();
    let minutes = Steps { from_ms: 0, step_ms: MINUTE };
    ended(&store, "a", 1_000, 100, RunStatus::Completed).await;
    ended(&store, "b", 2_000, 101, RunStatus::Completed).await;
    ended(&store, "c", 3_000, 9_000, RunStatus::Failed).await;
    ended(&store, "d", 59_900, 200, RunStatus::Completed).await;
    accept(&store, event("e", "e1")).await;
    accept(&store, AcceptEvent { now_ms: MINUTE, ..event("e", "e2") }).await;
    let cancel = CancelQueued {
        workspace_id: W.to_owned(),
        run_id: "run-e2".to_owned(),
        epoch_now: 1,
        now_ms: 11 * MINUTE,
    };
    store.commit(cancel.clone()).await.unwrap();
    store.commit(cancel).await.unwrap();
    let row = |step, status: &str, took, runs| (step, status.to_owned(), grade(took), runs);
    let expected = [
        row(0, "completed", 100, 2),
        row(0, "failed", 9_000, 1),
        row(1, "completed", 200, 1),
        row(11, "cancelled", 10 * MINUTE, 1),
    ];
    assert_eq!(counted(&store, minutes).await, expected);
    let of_ten = Steps { from_ms: 0, step_ms: 10 * MINUTE };
    let expected = [
        row(0, "completed", 100, 2),
        row(0, "completed", 200, 1),
        row(0, "failed", 9_000, 1),
        row(1, "cancelled", 10 * MINUTE, 1),
    ];
    assert_eq!(counted(&store, of_ten).await, expected);
    let later = Steps { from_ms: MINUTE, step_ms: MINUTE };
    assert_eq!(counted(&store, later).await[0].0, 0, "steps are counted from the first");
    let other = store.read(move |tx| runs(tx, "other", minutes)).await.unwrap();
    assert_eq!(other, []);
    let now = store.read(|tx| waiting(tx, W)).await.unwrap();
    assert_eq!(now, Waiting { running: 1, ..Waiting::default() });
}

async fn called(store: &Store, call_id: &str, call: RecordModelCall) {
    let begun = BeginModelCall {
        workspace_id: W.to_owned(),
        call_id: call_id.to_owned(),
        run_id: "r".to_owned(),
        agent: "a".to_owned(),
        model: call.model.clone(),
        method: "models.invoke".into(),
        reserved_micro: 1,
        day: 0,
        epoch: 1,
        now_ms: call.now_ms,
    };
    assert!(store.commit(begun).await.unwrap());
    let call = RecordModelCall { call_id: call_id.to_owned(), ..call };
    assert!(store.commit(call.clone()).await.unwrap());
    assert!(!store.commit(call).await.unwrap());
}

fn call(outcome: &str, usage: Option<&str>, cost_micro: Option<i64>) -> RecordModelCall {
    RecordModelCall {
        workspace_id: W.to_owned(),
        call_id: String::new(),
        run_id: "r".to_owned(),
        agent: "a".to_owned(),
        model: "small".to_owned(),
        method: "models.invoke".into(),
        outcome: outcome.to_owned(),
        usage: usage.map(str::to_owned),
        tokens: None,
        cost_micro,
        charged_micro: 0,
        duration_ms: 5,
        day: 0,
        now_ms: 1_000,
    }
}

pub(crate) async fn calls_of_models_are_counted_with_what_is_known_of_them(ground: Ground) {
    let store = ground.open();
    let told = r#"{"input_tokens":10,"output_tokens":3}"#;
    called(&store, "1", call("stop", Some(told), Some(40))).await;
    called(&store, "2", call("stop", Some(told), None)).await;
    called(&store, "3", RecordModelCall { now_ms: 2_000, ..call("rate_limited", None, None) })
        .await;
    called(&store, "4", RecordModelCall { now_ms: 3_000, ..call("cancelled", None, None) }).await;
    let steps = Steps { from_ms: 0, step_ms: MINUTE };
    let rates = store.read(move |tx| models(tx, W, steps)).await.unwrap();
    let expected = ModelRate {
        step: 0,
        model: "small".to_owned(),
        calls: 4,
        failed: 1,
        with_usage: 2,
        input_tokens: 20,
        output_tokens: 6,
        priced: 1,
        cost_micro: 40,
        last_ok_at: Some(3_005),
        last_error_at: Some(2_005),
    };
    assert_eq!(rates, [expected]);
    let error = store.read(|tx| error_at(tx, W, "small", 2_005)).await.unwrap();
    assert_eq!(error.as_deref(), Some("rate_limited"));
}

pub(crate) async fn what_was_counted_long_ago_is_let_go_of(ground: Ground) {
    let store = ground.open();
    for (name, at) in [("a", 0), ("b", 20 * MINUTE), ("c", 40 * MINUTE)] {
        ended(&store, name, at, 10, RunStatus::Completed).await;
    }
    called(&store, "1", call("stop", None, None)).await;
    let minutes = Retained::Rates { span_ms: MINUTE };
    let step = Collect { what: minutes, before_ms: 30 * MINUTE, rows_max: 2 };
    assert!(store.commit(step).await.unwrap().has_more);
    assert!(!store.commit(step).await.unwrap().has_more);
    let by_minute = Steps { from_ms: 0, step_ms: MINUTE };
    let left: Vec<i64> = counted(&store, by_minute).await.iter().map(|rate| rate.0).collect();
    assert_eq!(left, [40]);
    assert_eq!(store.read(move |tx| models(tx, W, by_minute)).await.unwrap(), []);
    let by_ten = Steps { from_ms: 0, step_ms: 10 * MINUTE };
    assert_eq!(counted(&store, by_ten).await.len(), 3, "longer slots are kept");
}
