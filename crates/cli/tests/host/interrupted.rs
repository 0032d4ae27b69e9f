//! Runs whose host was killed, one moment at a time: which are tried again and which are not.

use crate::stage::{PATIENCE, Stage, event, outcome};
use greenroom_protocol::RunStatus::{Completed, Failed};
use greenroom_testkit::fold::Fold;
use greenroom_testkit::wait::wait_for;
use serde_json::{Value, json};

const RETRYING: &str = "[agents.retrying]\nrunner = \"plugin:test/puppet/main\"\nevents = []\non_interrupt = \"retry\"\n";

async fn start_retrying(stage: &Stage, conversation: &str, steps: Value) -> String {
    stage.send(&event("retrying", conversation, &steps.to_string())).await
}

/// Waits until a result of this type is stored.
async fn stored(stage: &Stage, run_id: &str, kind: &str) {
    wait_for(&format!("a stored {kind}"), PATIENCE, async || {
        let results = stage.api.results(run_id).await;
        results.iter().any(|result| result.kind == kind).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_run_that_has_had_an_effect_is_not_tried_again() {
    let mut stage = Stage::open(RETRYING).await;
    let effects = [
        ("message.completed", json!({"message": {"role": "assistant", "content": "answer"}})),
        ("tool.call.started", json!({"tool_call_id": "t1", "tool_name": "send", "parameters": {}})),
        ("action.requested", json!({"action": "message.send"})),
    ];
    let mut runs = Vec::new();
    for (kind, data) in effects {
        let steps = json!([["result", kind, data], ["gate", "never"]]);
        let run_id = start_retrying(&stage, kind, steps).await;
        stored(&stage, &run_id, kind).await;
        runs.push(run_id);
    }
    stage.host.kill();
    stage.host.start_again().await;
    for run_id in runs {
        let run = stage.api.ended_run(&run_id).await;
        assert_eq!((outcome(&run), run.attempt), ((Failed, "host.interrupted"), 1));
        assert!(run.error.unwrap().retryable);
    }
    assert_eq!(stage.api.answers("message.completed").await, ["answer"]);
}

#[tokio::test]
async fn a_run_without_effects_is_tried_three_times_at_most() {
    let mut stage = Stage::open(RETRYING).await;
    let run_id = start_retrying(&stage, "c1", json!([["say", "half"], ["gate", "never"]])).await;
    let next_id = start_retrying(&stage, "c1", json!([["message", "next"], ["end"]])).await;
    for attempt in 1..=3 {
        wait_for("the text of this attempt", PATIENCE, async || {
            let fold = Fold::of(&stage.api.results(&run_id).await);
            (fold.unfinished == "half" && fold.restarts.len() + 1 == attempt).then_some(())
        })
        .await;
        stage.host.kill();
        stage.host.start_again().await;
    }
    let run = stage.api.ended_run(&run_id).await;
    assert_eq!((outcome(&run), run.attempt), ((Failed, "host.interrupted"), 3));
    let fold = Fold::of(&stage.api.results(&run_id).await);
    assert_eq!((fold.restarts, fold.messages), (vec![2, 3], vec!["half".to_owned()]));
    let next = stage.api.ended_run(&next_id).await;
    assert_eq!((outcome(&next), next.attempt), ((Completed, ""), 1));
    assert_eq!(stage.api.answers("c1").await, ["half", "next"]);
}

#[tokio::test]
async fn a_run_that_is_tried_again_says_so_and_answers_once() {
    let mut stage = Stage::open(RETRYING).await;
    let steps = json!([["say", "half "], ["gate", "go"], ["say", "whole"], ["end"]]);
    let run_id = start_retrying(&stage, "c1", steps).await;
    stored(&stage, &run_id, "message.delta").await;
    stage.host.kill();
    stage.pass("go");
    stage.host.start_again().await;
    let run = stage.api.ended_run(&run_id).await;
    assert_eq!((outcome(&run), run.attempt), ((Completed, ""), 2));
    let fold = Fold::of(&stage.api.results(&run_id).await);
    assert_eq!((fold.restarts, fold.messages), (vec![2], vec!["half whole".to_owned()]));
    assert_eq!(stage.api.answers("c1").await, ["half whole"]);
}
