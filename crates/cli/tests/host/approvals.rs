//! Actions that somebody is asked about: allowed, denied, expired, given up, and the power going out.

#[cfg(feature = "faults")]
mod killed;
mod recorded;
mod refused;

use crate::stage::{PATIENCE, Stage, event, outcome};
use greenroom_protocol::RunStatus::{Cancelled, Completed, Failed};
use greenroom_testkit::api::Failure;
use greenroom_testkit::http::Request;
use greenroom_testkit::receiver::{Reaction, Receiver};
use greenroom_testkit::wait::wait_for;
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::sync::Semaphore;

/// An agent that has to ask before it sends a message, and a receiver of what it does.
async fn open(receiver: &Receiver, more: &str) -> Stage {
    Stage::open(&config(receiver, more)).await
}

fn config(receiver: &Receiver, more: &str) -> String {
    format!(
        r#"
[agents.asking]
runner = "plugin:test/puppet/main"
events = []
delivery = "hook"
deadline_s = 60
grant = {{ actions = {{ "message.send" = "ask", "message.react" = "always", "message.delete" = "ask" }} }}
[surfaces.hook]
kind = "webhook"
url = "{}"
allow_private = true
actions = ["message.send", "message.react"]
{more}
"#,
        receiver.url()
    )
}

fn asks(text: &str) -> Value {
    json!({"action": "message.send", "payload": {"text": text}})
}

/// Sends steps to the agent that asks.
async fn start(stage: &Stage, conversation: &str, steps: Value) -> String {
    stage.send(&event("asking", conversation, &steps.to_string())).await
}

/// A run that asks, tells what came of it in the file `told`, and ends.
async fn start_asking(stage: &Stage) -> (String, Value) {
    let steps = json!([["call", "platform.request_action", asks("hi"), "told"], ["end"]]);
    let run_id = start(stage, "c", steps).await;
    let approval = pending(stage, 1).await.remove(0);
    (run_id, approval)
}

async fn pending(stage: &Stage, count: usize) -> Vec<Value> {
    wait_for("pending approvals", PATIENCE, async || {
        let page = stage.api.get("/v1/approvals?status=pending&limit=200").await;
        let items = page["items"].as_array().unwrap().clone();
        (items.len() == count).then_some(items)
    })
    .await
}

async fn answer(stage: &Stage, approval: &Value, decision: &str) -> (u16, Value) {
    let body = json!({"decision": decision, "nonce": approval["nonce"]});
    answer_with(stage, approval, &body).await
}

async fn answer_with(stage: &Stage, approval: &Value, body: &Value) -> (u16, Value) {
    let id = approval["approval_id"].as_str().unwrap();
    let request = Request::post(format!("/v1/approvals/{id}"), body.to_string());
    match stage.api.json(request).await {
        Ok(answer) => answer,
        Err(Failure::Refused { status, body }) => (status, body),
        Err(lost) => panic!("{lost:?}"),
    }
}

async fn shown(stage: &Stage, approval: &Value) -> Value {
    stage.api.get(&format!("/v1/approvals/{}", approval["approval_id"].as_str().unwrap())).await
}

/// Waits until what was allowed has come to this end.
async fn came_to(stage: &Stage, approval: &Value, status: &str) -> Value {
    wait_for(&format!("the outcome {status}"), PATIENCE, async || {
        Some(shown(stage, approval).await).filter(|shown| shown["outcome"]["status"] == status)
    })
    .await
}

/// What the receiver got, without the messages of runs.
fn actions(receiver: &Receiver) -> Vec<Value> {
    let payloads = receiver.received().into_iter().map(|received| received.payload);
    payloads.filter(|payload| payload["type"] == "message.send").collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_asked_and_allowed_is_done_once_and_told_to_the_run() {
    let receiver = Receiver::start().await;
    let stage = open(&receiver, "").await;
    let (run_id, approval) = start_asking(&stage).await;
    for (field, expected) in [
        ("status", json!("pending")),
        ("action", json!("message.send")),
        ("target", json!({"surface": "hook", "conversation_id": "c"})),
        ("payload", json!({"text": "hi"})),
        ("agent", json!("asking")),
        ("runner_id", json!("plugin:test/puppet/main")),
        ("run_id", json!(run_id)),
        ("conversation_id", json!("c")),
        ("answered_at", Value::Null),
        ("outcome", Value::Null),
    ] {
        assert_eq!(approval[field], expected, "{field}");
    }
    assert_eq!(approval["actor"]["actor_id"], "u1");
    assert_eq!(actions(&receiver), [Value::Null; 0]);
    let wrong = json!({"decision": "allow", "nonce": "0"});
    assert_eq!(answer_with(&stage, &approval, &wrong).await.0, 409);
    for (times, status) in [(1, 200), (2, 200)] {
        let (found, body) = answer(&stage, &approval, "allow").await;
        assert_eq!((found, &body["status"]), (status, &json!("allowed")), "answer {times}");
        assert_eq!(body["answered_by"], "admin");
    }
    assert_eq!(answer(&stage, &approval, "deny").await.0, 409);
    let told = stage.told("told").await;
    let result = &told["result"];
    assert_eq!((&result["status"], &result["action"]), (&json!("done"), &json!("message.send")));
    assert_eq!(result["approval_id"], approval["approval_id"]);
    assert_eq!(outcome(&stage.api.ended_run(&run_id).await), (Completed, ""));
    let outcome = came_to(&stage, &approval, "done").await["outcome"].clone();
    assert_eq!(outcome["delivery_id"], result["delivery_id"]);
    let done = actions(&receiver);
    assert_eq!(done.len(), 1, "{done:?}");
    assert_eq!(done[0]["payload"], json!({"text": "hi"}));
    assert_eq!((&done[0]["run_id"], &done[0]["agent"]), (&json!(run_id), &json!("asking")));
    assert_eq!(stage.log("approval.").await, ["approval.requested", "approval.allowed"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_denied_is_not_done() {
    let receiver = Receiver::start().await;
    let stage = open(&receiver, "").await;
    let (run_id, approval) = start_asking(&stage).await;
    let (status, body) = answer(&stage, &approval, "deny").await;
    assert_eq!((status, &body["status"]), (200, &json!("denied")));
    let error = &stage.told("told").await["error"]["data"];
    assert_eq!(
        (&error["code"], &error["details"]["reason"]),
        (&json!("unauthorized"), &json!("denied"))
    );
    assert_eq!(outcome(&stage.api.ended_run(&run_id).await), (Completed, ""), "it may go on");
    assert_eq!(answer(&stage, &approval, "allow").await.0, 409);
    assert_eq!(actions(&receiver), [Value::Null; 0]);
    assert_eq!(stage.log("approval.").await, ["approval.requested", "approval.denied"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_nobody_answers_expires_and_costs_the_run_no_time() {
    let receiver = Receiver::start().await;
    // The run's own time is over before the approval's is, but does not pass while it waits.
    let more = "[approvals]\nexpires_s = 5\n[agents.hasty]\nrunner = \"plugin:test/puppet/main\"\n\
        events = []\ndelivery = \"hook\"\ndeadline_s = 3\n\
        grant = { actions = { \"message.send\" = \"ask\" } }";
    let stage = open(&receiver, more).await;
    stage.api.ready_runner("puppet").await;
    let steps = json!([["call", "platform.request_action", asks("hi"), "told"], ["end"]]);
    let run_id = stage.send(&event("hasty", "c", &steps.to_string())).await;
    let approval = pending(&stage, 1).await.remove(0);
    let error = &stage.told("told").await["error"]["data"];
    assert_eq!(
        (&error["code"], &error["details"]["reason"]),
        (&json!("unauthorized"), &json!("expired"))
    );
    assert_eq!(outcome(&stage.api.ended_run(&run_id).await), (Completed, ""));
    assert_eq!(shown(&stage, &approval).await["status"], "expired");
    let (status, body) = answer(&stage, &approval, "allow").await;
    assert_eq!(status, 409);
    assert!(body["error"]["message"].as_str().unwrap().contains("expired"), "{body}");
    assert_eq!(actions(&receiver), [Value::Null; 0]);
    assert_eq!(stage.log("approval.").await, ["approval.requested", "approval.expired"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_of_a_run_that_ended_cannot_act() {
    let receiver = Receiver::start().await;
    let stage = open(&receiver, "").await;
    let (run_id, approval) = start_asking(&stage).await;
    assert_eq!(outcome(&stage.cancel(&run_id).await), (Cancelled, "cancelled"));
    assert_eq!(shown(&stage, &approval).await["status"], "cancelled");
    let (status, body) = answer(&stage, &approval, "allow").await;
    assert_eq!(status, 409);
    assert!(body["error"]["message"].as_str().unwrap().contains("run"), "{body}");
    assert_eq!(actions(&receiver), [Value::Null; 0]);
    assert_eq!(stage.log("approval.").await, ["approval.requested", "approval.cancelled"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_is_given_up_takes_its_question_back() {
    let receiver = Receiver::start().await;
    let stage = open(&receiver, "").await;
    let steps = json!([
        ["start_call", "platform.request_action", asks("hi"), "told"],
        ["gate", "go"],
        ["give_up", "told"],
        ["gate", "end"],
        ["end"]
    ]);
    let run_id = start(&stage, "c", steps).await;
    let approval = pending(&stage, 1).await.remove(0);
    stage.pass("go");
    wait_for("the question to be taken back", PATIENCE, async || {
        (shown(&stage, &approval).await["status"] == "cancelled").then_some(())
    })
    .await;
    assert_eq!(answer(&stage, &approval, "allow").await.0, 409);
    stage.pass("end");
    assert_eq!(outcome(&stage.api.ended_run(&run_id).await), (Completed, ""));
    assert_eq!(actions(&receiver), [Value::Null; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_was_killed_while_a_call_waits_does_nothing_afterwards() {
    let receiver = Receiver::start().await;
    let mut stage = open(&receiver, "").await;
    let (run_id, approval) = start_asking(&stage).await;
    stage.host.kill();
    stage.host.start_again().await;
    let run = stage.api.ended_run(&run_id).await;
    assert_eq!(outcome(&run), (Failed, "host.interrupted"));
    assert_eq!(shown(&stage, &approval).await["status"], "cancelled");
    assert_eq!(answer(&stage, &approval, "allow").await.0, 409);
    assert_eq!(actions(&receiver), [Value::Null; 0]);
    assert_eq!(stage.log("approval.").await, ["approval.requested", "approval.cancelled"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_result_asked_is_answered_after_its_run_and_after_a_restart() {
    let receiver = Receiver::start().await;
    let mut stage = open(&receiver, "").await;
    let steps = json!([["result", "action.requested", asks("later")],
        ["result", "action.requested", {"action": "message.react", "target": {"message_id": "m"},
            "payload": {"reaction": "+1"}}],
        ["result", "action.requested", {"action": "message.edit", "target": {"message_id": "m"},
            "payload": {"text": "x"}}],
        ["end"]]);
    let run_id = start(&stage, "c", steps).await;
    assert_eq!(outcome(&stage.api.ended_run(&run_id).await), (Completed, ""));
    let approval = pending(&stage, 1).await.remove(0);
    assert_eq!(approval["payload"], json!({"text": "later"}));
    // An action that a kill interrupts is not done again.
    wait_for("what needs no approval to go out", PATIENCE, async || {
        (receiver.received().len() == 1).then_some(())
    })
    .await;
    stage.host.kill();
    stage.host.start_again().await;
    for _ in 0..2 {
        let (status, body) = answer(&stage, &approval, "allow").await;
        assert_eq!((status, &body["status"]), (200, &json!("allowed")));
    }
    came_to(&stage, &approval, "done").await;
    assert_eq!(actions(&receiver).len(), 1);
    let kinds: Vec<Value> =
        receiver.received().into_iter().map(|received| received.payload["type"].clone()).collect();
    assert_eq!(kinds, ["message.react", "message.send"], "what was not granted is recorded alone");
    let mut events = stage.api.events().await;
    events.retain(|event| event["event_type"] == "action.requested");
    let executed: Vec<_> = events.iter().rev().map(|event| &event["event"]["executed"]).collect();
    assert_eq!(executed, [false, true, false]);
    assert_eq!(events[0]["event"]["reason"], "not_granted");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_was_killed_while_an_action_goes_out_does_not_do_it_again() {
    let never = Arc::new(Semaphore::new(0));
    let gate = Arc::clone(&never);
    let receiver = Receiver::reacting(move |_, _| Reaction::Held(Arc::clone(&gate))).await;
    let mut stage = open(&receiver, "").await;
    let (_, approval) = start_asking(&stage).await;
    assert_eq!(answer(&stage, &approval, "allow").await.0, 200);
    wait_for("the action to go out", PATIENCE, async || {
        (actions(&receiver).len() == 1).then_some(())
    })
    .await;
    stage.host.kill();
    stage.host.start_again().await;
    came_to(&stage, &approval, "unknown").await;
    assert_eq!(answer(&stage, &approval, "allow").await.0, 200, "what was decided stays so");
    assert_eq!(actions(&receiver).len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_allowed_goes_out_after_a_restart_if_it_had_not() {
    // A port that nobody listens at, for now.
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let receiver = Receiver::serving(listener, |_, _| Reaction::Answer(204));
    let config = config(&receiver, "");
    drop(receiver);
    let mut stage = Stage::open(&config).await;
    let (_, approval) = start_asking(&stage).await;
    assert_eq!(answer(&stage, &approval, "allow").await.0, 200);
    stage.host.kill();
    let listener = tokio::net::TcpListener::bind(address).await.unwrap();
    let receiver = Receiver::serving(listener, |_, _| Reaction::Answer(204));
    stage.host.start_again().await;
    let shown = wait_for("an outcome", PATIENCE, async || {
        Some(shown(&stage, &approval).await).filter(|shown| shown["outcome"]["status"] != "queued")
    })
    .await;
    // Claimed or not when the power went out: done once, or said to be unknown and not sent.
    let sent = actions(&receiver).len();
    let told = shown["outcome"]["status"].as_str().unwrap();
    assert!(matches!((told, sent), ("done", 1) | ("unknown", 0)), "{told}, sent {sent} times");
}

#[tokio::test(flavor = "multi_thread")]
async fn many_questions_at_once_are_each_answered_once() {
    const CALLS: usize = 200;
    let receiver = Receiver::start().await;
    let stage = open(&receiver, "").await;
    let steps = (0..CALLS).map(|number| {
        json!([
            "start_call",
            "platform.request_action",
            asks(&number.to_string()),
            format!("told-{number}")
        ])
    });
    let steps: Vec<Value> = steps.chain([json!(["gate", "go"]), json!(["end"])]).collect();
    let run_id = start(&stage, "c", json!(steps)).await;
    let approvals = pending(&stage, CALLS).await;
    let answers = approvals.iter().map(|approval| {
        let number: usize = approval["payload"]["text"].as_str().unwrap().parse().unwrap();
        answer(&stage, approval, if number.is_multiple_of(2) { "allow" } else { "deny" })
    });
    for (status, _) in futures_util::future::join_all(answers).await {
        assert_eq!(status, 200);
    }
    for number in 0..CALLS {
        let told = stage.told(&format!("told-{number}")).await;
        assert_eq!(told.get("result").is_some(), number.is_multiple_of(2), "{number}: {told}");
    }
    assert_eq!(actions(&receiver).len(), CALLS / 2);
    stage.pass("go");
    assert_eq!(outcome(&stage.api.ended_run(&run_id).await), (Completed, ""));
}
