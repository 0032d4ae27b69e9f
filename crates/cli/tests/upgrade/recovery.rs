//! What an earlier version had under way when it was killed: this one brings it to its one end.

use crate::folder::{Opened, Recorded};
use greenroom_protocol::{RunStatus, TranscriptRole};
use greenroom_testkit::api::{Api, PATIENCE};
use greenroom_testkit::fold::Fold;
use greenroom_testkit::http::Request;
use greenroom_testkit::wait::wait_for;
use serde_json::{Value, json};

/// Status and code of a run of this name, once it is over.
async fn end(opened: &Opened, name: &str) -> (RunStatus, String, i64) {
    end_of(&opened.api, opened.run_id(name)).await
}

async fn end_of(api: &Api, run_id: &str) -> (RunStatus, String, i64) {
    let run = api.ended_run(run_id).await;
    (run.status, run.error.map(|error| error.code).unwrap_or_default(), run.attempt)
}

pub(crate) async fn runs(recorded: Recorded) {
    let opened = recorded.open().await;
    let interrupted = (RunStatus::Failed, "host.interrupted".to_owned(), 1);
    for name in ["open-running", "open-steered", "open-tool", "open-model", "open-asking"] {
        assert_eq!(end(&opened, name).await, interrupted, "{name}");
    }
    let completed = |attempt| (RunStatus::Completed, String::new(), attempt);
    for name in ["open-queued-1", "open-queued-2", "open-wish", "open-stuck-1", "open-stuck-2"] {
        assert_eq!(end(&opened, name).await, completed(1), "{name}");
    }
    assert_eq!(end(&opened, "open-retrying").await, completed(2));
    let api = &opened.api;
    assert_eq!(api.answers("open-lane").await, ["under way 还没", "queued 1", "queued 2"]);
    assert_eq!(api.answers("open-retry").await, ["half whole"]);
    let retried = Fold::of(&api.results(opened.run_id("open-retrying")).await);
    assert_eq!((retried.restarts, retried.messages), (vec![2], vec!["half whole".to_owned()]));
    requeued(&opened).await;
    calls(&opened).await;
    // Whatever it was before, every run has exactly one end, and nothing behind it.
    for run in api.runs().await {
        api.ended_run(&run.run_id).await;
        let kinds: Vec<String> =
            api.results(&run.run_id).await.into_iter().map(|one| one.kind).collect();
        let ends =
            kinds.iter().filter(|kind| ["run.completed", "run.failed"].contains(&kind.as_str()));
        assert_eq!(ends.count(), 1, "{}: {kinds:?}", run.run_id);
        assert!(["run.completed", "run.failed"].contains(&kinds.last().unwrap().as_str()));
    }
}

/// Messages that waited for a run to pull them have runs of their own, in order.
async fn requeued(opened: &Opened) {
    let api = &opened.api;
    for number in 1..=2 {
        let message = opened.name(&format!("open-waiting-{number}"));
        let (status, answer) = api.post_event(&message["event"]).await.unwrap();
        assert_eq!(status, 200, "it was taken before");
        let run_id = answer.run_id.unwrap();
        assert_ne!(run_id, opened.run_id("open-steered"));
        let completed = (RunStatus::Completed, String::new(), 1);
        assert_eq!(end_of(api, &run_id).await, completed);
    }
    assert_eq!(api.answers("open-steering").await, ["busy", "requeued 1", "requeued 2"]);
    let log = api.get("/v1/events?conversation_id=open-steering&limit=200").await;
    let log = log["items"].as_array().unwrap().iter();
    assert_eq!(log.filter(|event| event["event_type"] == "steering.requeued").count(), 2);
}

/// Calls that were under way have one output and one record, and are counted.
async fn calls(opened: &Opened) {
    let items = opened.api.history("open-tool").await;
    let outputs: Vec<&Value> = items
        .iter()
        .filter(|item| item.role == TranscriptRole::Tool)
        .map(|item| &item.metadata["tool_agent_output"]["error"]["code"])
        .collect();
    assert_eq!(outputs, ["INTERRUPTED"]);
    for (name, method) in [("open-tool", "tools.call"), ("open-asking", "platform.request_action")]
    {
        let audit = opened.api.get(&format!("/v1/audit?run_id={}", opened.run_id(name))).await;
        let records = audit["items"].as_array().unwrap();
        assert_eq!(records.len(), 1, "{audit}");
        assert_eq!(
            (&records[0]["method"], &records[0]["code"]),
            (&json!(method), &json!("runtime_error"))
        );
    }
    let run = opened.api.run(opened.run_id("open-model")).await;
    // It counts, and what it cost is not known.
    let calls = run.model_calls.unwrap();
    assert_eq!((calls.calls, calls.unpriced, calls.cost_usd), (1, 1, None));
}

pub(crate) async fn deliveries(recorded: Recorded) {
    let opened = recorded.open().await;
    let settled = async |name: &str| {
        wait_for("the outcome of a delivery", PATIENCE, async || {
            let run = opened.api.run(opened.run_id(name)).await;
            let deliveries = run.extra["deliveries"].as_array().unwrap().clone();
            let is_open =
                |one: &Value| ["pending", "claimed"].contains(&one["status"].as_str().unwrap());
            (!deliveries.iter().any(is_open)).then_some(deliveries)
        })
        .await
    };
    // Nobody knows whether the first arrived, so it is not sent again; the second never went out.
    assert_eq!(settled("open-stuck-1").await[0]["status"], "unknown");
    assert_eq!(settled("open-stuck-2").await[0]["status"], "done");
    let received = opened.receiver.received();
    let texts: Vec<&Value> = received
        .iter()
        .filter(|one| one.payload["conversation_id"] == "open-delivery")
        .map(|one| &one.payload["message"]["content"])
        .collect();
    assert_eq!(texts, ["stuck 2"]);
}

pub(crate) async fn approvals(recorded: Recorded) {
    let opened = recorded.open().await;
    let shown = async |name: &str| {
        let id = opened.name(name)["approval_id"].as_str().unwrap();
        opened.api.get(&format!("/v1/approvals/{id}")).await
    };
    // The call that asked is over with its run; a result's question stands until somebody answers.
    assert_eq!(shown("asked").await["status"], "cancelled");
    let wished = shown("wished").await;
    assert_eq!(
        (&wished["status"], &wished["payload"]["text"]),
        (&json!("pending"), &json!("an old wish"))
    );
    let pending = opened.api.get("/v1/approvals?status=pending").await;
    assert_eq!(pending["items"].as_array().unwrap().len(), 1);
    let answer = json!({"decision": "allow", "nonce": wished["nonce"]}).to_string();
    let target = format!("/v1/approvals/{}", wished["approval_id"].as_str().unwrap());
    opened.api.json(Request::post(target, answer)).await.unwrap();
    wait_for("the wish to arrive", PATIENCE, async || {
        (shown("wished").await["outcome"]["status"] == "done").then_some(())
    })
    .await;
    let received = opened.receiver.received().into_iter().map(|one| one.payload);
    let wishes: Vec<Value> = received.filter(|one| one["type"] == "message.send").collect();
    assert_eq!(wishes.len(), 1);
    assert_eq!(wishes[0]["payload"]["text"], "an old wish");
}
