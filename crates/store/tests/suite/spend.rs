//! What models took: kept per call, summed per run and per day, unknown where nobody told.

use crate::support::{Ground, W};
use greenroom_store::commands::RecordModelCall;
use greenroom_store::reads::spend::{RunSpend, SpendRow, of_day, of_run, sum_of_run};

fn call(run_id: &str, tokens: Option<i64>, cost_micro: Option<i64>) -> RecordModelCall {
    RecordModelCall {
        workspace_id: W.to_owned(),
        run_id: run_id.to_owned(),
        agent: "assistant".to_owned(),
        model: "small".to_owned(),
        method: "models.invoke",
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

pub(crate) async fn calls_are_summed_per_run_and_per_day_and_unknown_is_not_nothing(
    ground: Ground,
) {
    let store = ground.open();
    for call in [
        call("r", Some(100), Some(6_000)),
        call("r", Some(50), None),
        call("r", None, None),
        call("r", Some(10), Some(400)),
        call("s", None, None),
    ] {
        store.record_model_call(call).await.unwrap();
    }
    let sum = async |workspace: &'static str, run_id: &'static str| {
        store.read(move |tx| sum_of_run(tx, workspace, run_id)).await.unwrap()
    };
    let expected = RunSpend { calls: 4, unpriced: 2, tokens: Some(160), cost_micro: Some(6_400) };
    assert_eq!(sum(W, "r").await, expected);
    let unknown = RunSpend { calls: 1, unpriced: 1, tokens: None, cost_micro: None };
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
