//! The same event again: one run, whoever sends it and however often (DESIGN §3, "nothing twice").

use crate::stage::{Stage, event, outcome};
use greenroom_protocol::RunStatus::Completed;
use greenroom_testkit::api::Failure;
use greenroom_testkit::http::Request;
use serde_json::{Value, json};
use tokio::task::JoinSet;

fn numbered(agent: &str, conversation: &str, text: &str, id: &str) -> Value {
    let mut event = event(agent, conversation, text);
    event["event_id"] = id.into();
    event
}

/// Status and body of a refusal.
async fn refused(stage: &Stage, event: &Value) -> (u16, Value) {
    match stage.api.post_event(event).await {
        Err(Failure::Refused { status, body }) => (status, body),
        other => panic!("it was taken: {other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_event_from_32_senders_at_once_is_one_run() {
    let stage = Stage::open("").await;
    let event = numbered("echo", "c", "hello", "e-1");
    let mut senders = JoinSet::new();
    for _ in 0..32 {
        let (api, event) = (stage.api.clone(), event.clone());
        senders.spawn(async move { api.post_event(&event).await.unwrap() });
    }
    let answers = senders.join_all().await;
    let first: Vec<_> = answers.iter().filter(|(status, _)| *status == 202).collect();
    assert_eq!(first.len(), 1, "{answers:?}");
    let run_id = first[0].1.run_id.clone();
    for (status, answer) in &answers {
        assert!([200, 202].contains(status), "{answers:?}");
        assert_eq!((answer.event_id.as_str(), &answer.run_id), ("e-1", &run_id));
    }
    let run = stage.api.ended_run(&run_id.clone().unwrap()).await;
    assert_eq!(outcome(&run), (Completed, ""));
    assert_eq!(stage.api.runs().await.len(), 1);
    assert_eq!(stage.api.events().await.len(), 1);
    assert_eq!(stage.api.history("c").await.len(), 2);
    // Long after, with the status of then.
    let (status, again) = stage.api.post_event(&event).await.unwrap();
    assert_eq!((status, again.run_id, again.status.as_str()), (200, run_id, "completed"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_key_with_another_body_is_a_conflict_and_changes_nothing() {
    let stage = Stage::open("").await;
    let run_id = stage.send(&numbered("echo", "c", "hello", "e-1")).await;
    stage.api.ended_run(&run_id).await;
    let (status, body) = refused(&stage, &numbered("echo", "c", "goodbye", "e-1")).await;
    assert_eq!((status, &body["error"]["code"]), (409, &json!("invalid_argument")));
    assert_eq!(stage.api.answers("c").await, ["hello"]);
    assert_eq!(stage.api.runs().await.len(), 1);
    // Another source has keys of its own.
    let mut other = numbered("echo", "c", "goodbye", "e-1");
    other["source"] = "elsewhere".into();
    let (status, answer) = stage.api.post_event(&other).await.unwrap();
    assert_eq!(status, 202);
    assert_ne!(answer.run_id.unwrap(), run_id);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_json_laid_out_differently_is_the_same_body() {
    let stage = Stage::open("").await;
    let one = r#"{"event_type":"message.received","event_id":"e","agent":"echo","conversation_id":"c","input":{"text":"hi"}}"#;
    let other = r#"{ "input": { "text": "h\u0069" }, "conversation_id": "c", "agent": "echo", "event_id": "e", "event_type": "message.received" }"#;
    let (status, first) = stage.api.json(Request::post("/v1/events", one)).await.unwrap();
    assert_eq!(status, 202);
    let (status, second) = stage.api.json(Request::post("/v1/events", other)).await.unwrap();
    assert_eq!((status, &second["run_id"]), (200, &first["run_id"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_full_lane_refuses_is_not_stored_and_accepted_when_sent_again() {
    let stage = Stage::open_with("lane_length = 2\ncancel_grace_s = 1", "").await;
    let waiting = stage.start_waiting().await;
    let quick = json!([["message", "quick"], ["end"]]).to_string();
    for number in 1..=2 {
        let event = numbered("puppet", "bystander", &quick, &format!("e-{number}"));
        let (status, answer) = stage.api.post_event(&event).await.unwrap();
        assert_eq!((status, answer.status.as_str()), (202, "queued"));
    }
    let event = numbered("puppet", "bystander", &quick, "e-3");
    let request = Request::post("/v1/events", event.to_string());
    let answer = stage.api.send(request).await.unwrap();
    assert_eq!(answer.status, 429);
    let pause: u64 = answer.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=60).contains(&pause), "{pause}");
    let body: Value = serde_json::from_slice(&answer.body().await.unwrap()).unwrap();
    assert_eq!(body["error"]["code"], "rate_limited");
    assert_eq!(body["error"]["retryable"], true);
    assert_eq!(stage.api.events().await.len(), 3);
    assert_eq!(stage.api.history("bystander").await.len(), 3);
    // Repeating one that was taken is no new work.
    let taken = numbered("puppet", "bystander", &quick, "e-1");
    assert_eq!(stage.api.post_event(&taken).await.unwrap().0, 200);
    // Another conversation has a lane of its own.
    let elsewhere = numbered("puppet", "elsewhere", &quick, "e-4");
    assert_eq!(stage.api.post_event(&elsewhere).await.unwrap().0, 202);
    stage.pass("go");
    assert_eq!(outcome(&stage.api.ended_run(&waiting).await), (Completed, ""));
    greenroom_testkit::wait::wait_for("room", crate::stage::PATIENCE, async || {
        let status = stage.api.post_event(&event).await.ok()?.0;
        assert_eq!(status, 202);
        Some(())
    })
    .await;
    let ids: Vec<String> = stage.api.runs().await.into_iter().map(|run| run.run_id).collect();
    assert_eq!(ids.len(), 5);
    for run_id in ids {
        assert_eq!(outcome(&stage.api.ended_run(&run_id).await), (Completed, ""));
    }
    assert_eq!(stage.api.answers("bystander").await, ["waiting done", "quick", "quick", "quick"]);
}
