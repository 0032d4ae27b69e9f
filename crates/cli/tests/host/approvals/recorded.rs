//! Every call that asks leaves exactly one record, which tells how it ended, whatever became of it.

use super::*;

/// An action that is allowed beforehand, and that a receiver may keep waiting.
fn reacts() -> Value {
    json!({"action": "message.react", "target": {"message_id": "m"}, "payload": {"reaction": "+1"}})
}

/// The codes of a run's calls for actions, once the host that kept them has stopped.
async fn codes(stage: &Stage, run_id: &str) -> Vec<String> {
    let target = format!("/v1/audit?run_id={run_id}&method=platform.request_action");
    let page = stage.api.get(&target).await;
    let records = page["items"].as_array().unwrap().iter();
    let codes = records.map(|record| {
        assert_eq!((&record["attempt"], &record["agent"]), (&json!(1), &json!("asking")));
        assert!(record["duration_us"].as_i64().unwrap() > 0, "{record}");
        record["code"].as_str().unwrap().to_owned()
    });
    codes.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_asks_leaves_one_record_however_it_ends() {
    let receiver = Receiver::start().await;
    let mut stage = open(&receiver, "").await;
    let steps = json!([
        ["start_call", "platform.request_action", asks("hi"), "told"],
        ["gate", "go"],
        ["give_up", "told"],
        ["gate", "end"],
        ["end"]
    ]);
    let (mut runs, mut asked) = (Vec::new(), Vec::new());
    for conversation in ["allowed", "denied", "cancelled", "given-up", "waits"] {
        let name = format!("told-{conversation}");
        let waits = json!([["call", "platform.request_action", asks("hi"), name], ["end"]]);
        let steps = if conversation == "given-up" { steps.clone() } else { waits };
        runs.push(start(&stage, conversation, steps).await);
        let questions = pending(&stage, runs.len()).await;
        let mut of_run =
            questions.into_iter().filter(|asked| asked["run_id"] == *runs.last().unwrap());
        asked.push(of_run.next().unwrap());
    }
    assert_eq!(codes(&stage, &runs[0]).await, [""; 0], "the call is not over");
    assert_eq!(answer(&stage, &asked[0], "allow").await.0, 200);
    assert_eq!(answer(&stage, &asked[1], "deny").await.0, 200);
    stage.told("told-allowed").await;
    assert_eq!(codes(&stage, &runs[0]).await, ["ok"], "stored before it is told");
    stage.told("told-denied").await;
    assert_eq!(codes(&stage, &runs[1]).await, ["unauthorized"], "stored before it is told");
    assert_eq!(outcome(&stage.cancel(&runs[2]).await), (Cancelled, "cancelled"));
    stage.pass("go");
    wait_for("the question to be taken back", PATIENCE, async || {
        (shown(&stage, &asked[3]).await["status"] == "cancelled").then_some(())
    })
    .await;
    let record = format!("/v1/audit?run_id={}", runs[3]);
    wait_for("the record of the call", PATIENCE, async || {
        let page = stage.api.get(&record).await;
        (page["items"].as_array().unwrap().len() == 1).then_some(())
    })
    .await;
    // Twice: what the first start has recorded is not recorded again.
    for _ in 0..2 {
        stage.host.kill();
        stage.host.start_again().await;
        let mut found = Vec::new();
        for run_id in &runs {
            found.push(codes(&stage, run_id).await);
        }
        let expected = ["ok", "unauthorized", "unauthorized", "cancelled", "runtime_error"];
        assert_eq!(found, expected.map(|code| vec![code.to_owned()]));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_acts_at_once_is_recorded_when_the_host_is_killed_before_its_outcome() {
    let never = Arc::new(Semaphore::new(0));
    let receiver = Receiver::reacting(move |_, _| Reaction::Held(Arc::clone(&never))).await;
    let mut stage = open(&receiver, "").await;
    let steps = json!([["call", "platform.request_action", reacts(), "told"], ["end"]]);
    let run_id = start(&stage, "c", steps).await;
    wait_for("the action to go out", PATIENCE, async || {
        (!receiver.received().is_empty()).then_some(())
    })
    .await;
    stage.host.kill();
    stage.host.start_again().await;
    assert_eq!(codes(&stage, &run_id).await, ["runtime_error"]);
}
