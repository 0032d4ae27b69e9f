//! Messages for a run that is under way: pulled by it, or runs of their own after it, whatever happens.

use crate::stage::{PATIENCE, Stage, event, outcome};
use greenroom_protocol::RunStatus::{Cancelled, Completed, Failed};
use greenroom_testkit::api::Failure;
use greenroom_testkit::wait::wait_for;
use serde_json::{Value, json};

const STEERED: &str = "[agents.steered]\nrunner = \"plugin:test/puppet/main\"\nevents = []\nqueue = \"steer\"\n\
    [agents.stubborn]\nrunner = \"plugin:test/puppet/main\"\nevents = []\nqueue = \"steer\"\non_interrupt = \"retry\"\n\
    [agents.deaf]\nrunner = \"plugin:greenroom/echo/default\"\nevents = []\nqueue = \"steer\"\nconfig = { mode = \"hang\" }\n";

/// A message that would say this if it became a run of its own.
fn message(agent: &str, name: &str) -> Value {
    let mut event = event(agent, "c", &json!([["message", name], ["end"]]).to_string());
    event["event_id"] = name.into();
    event
}

/// Starts a run with these steps, which has to come to the mark `waits` first.
async fn start(stage: &Stage, agent: &str, steps: &[Value]) -> String {
    let mark = json!(["mark", "waits"]);
    let steps: Vec<&Value> = std::iter::once(&mark).chain(steps).collect();
    let run_id = stage.send(&event(agent, "c", &json!(steps).to_string())).await;
    stage.marked("waits").await;
    run_id
}

/// Sends a message that has to go to this run.
async fn steer(stage: &Stage, agent: &str, name: &str, run_id: &str) {
    let (status, answer) = stage.api.post_event(&message(agent, name)).await.unwrap();
    assert_eq!((status, answer.status.as_str()), (202, "steered"));
    assert_eq!(answer.run_id.as_deref(), Some(run_id));
}

fn pull(name: &str) -> Value {
    json!(["call", "steering.pull", {}, name])
}

async fn pulled(stage: &Stage, name: &str) -> Vec<String> {
    let told = stage.told(name).await;
    let items = told["result"]["items"].as_array().unwrap_or_else(|| panic!("{told}"));
    items.iter().map(|item| item["event_id"].as_str().unwrap().to_owned()).collect()
}

/// What was said in the conversation, in the order of its history.
async fn said(stage: &Stage) -> Vec<String> {
    let page = stage.api.get("/v1/conversations/c/history?limit=200").await;
    let items = page["items"].as_array().unwrap().iter();
    items
        .map(|item| {
            format!("{} {}", item["role"].as_str().unwrap(), item["event_id"].as_str().unwrap())
        })
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_pulls_what_came_while_it_was_under_way() {
    let stage = Stage::open(STEERED).await;
    let steps = [
        json!(["tell", "context"]),
        json!(["gate", "go"]),
        pull("first"),
        pull("second"),
        json!(["message", "to all"]),
        json!(["end"]),
    ];
    let run_id = start(&stage, "steered", &steps).await;
    for name in ["m1", "m2"] {
        steer(&stage, "steered", name, &run_id).await;
    }
    let (status, again) = stage.api.post_event(&message("steered", "m1")).await.unwrap();
    assert_eq!((status, again.status.as_str()), (200, "steered"));
    assert_eq!(again.run_id.as_deref(), Some(run_id.as_str()));
    stage.pass("go");
    let run = stage.api.ended_run(&run_id).await;
    assert_eq!(outcome(&run), (Completed, ""));
    assert_eq!(pulled(&stage, "first").await, ["m1", "m2"]);
    assert_eq!(pulled(&stage, "second").await, [""; 0]);
    let item = stage.told("first").await["result"]["items"][0].clone();
    assert_eq!(item["event_type"], "message.received");
    assert_eq!((&item["conversation_id"], &item["actor"]["actor_id"]), (&json!("c"), &json!("u1")));
    assert!(item["input"]["text"].as_str().unwrap().contains("m1"));
    assert_eq!(stage.api.runs().await.len(), 1, "no message has a run of its own");
    assert_eq!(stage.log("steering.").await, ["steering.injected"; 2]);
    let (_, after) = stage.api.post_event(&message("steered", "m2")).await.unwrap();
    assert_eq!(
        (after.status.as_str(), after.run_id.as_deref()),
        ("steered", Some(run_id.as_str()))
    );
    // The answer that was given after the pull stands behind what it answers.
    let said = said(&stage).await;
    let first = run.event_id;
    let expected = [
        format!("user {first}"),
        format!("assistant {first}"),
        "user m1".to_owned(),
        "user m2".to_owned(),
        format!("assistant {first}"),
    ];
    assert_eq!(said, expected);
    let told: Value = serde_json::from_str(&stage.api.answers("c").await[0]).unwrap();
    assert_eq!(told["available_apis"]["steering_pull"], true);
}

/// Waits until every item of the transcript is in the search index, and returns how many there are.
async fn indexed(stage: &Stage) -> i64 {
    let database = rusqlite::Connection::open(stage.host.data().join("greenroom.db")).unwrap();
    let items = "SELECT MAX(id) FROM transcript";
    let upto = "SELECT CAST(value AS INTEGER) FROM meta WHERE name = 'search_upto'";
    let number = |query: &str| database.query_row(query, [], |row| row.get::<_, i64>(0)).unwrap();
    wait_for("the search index", PATIENCE, async || {
        let items = number(items);
        (number(upto) == items).then_some(items)
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_for_a_run_is_indexed_while_the_run_waits() {
    let stage = Stage::open(STEERED).await;
    let run_id = start(&stage, "steered", &[json!(["gate", "go"]), json!(["end"])]).await;
    assert_eq!(indexed(&stage).await, 1);
    steer(&stage, "steered", "m1", &run_id).await;
    assert_eq!(indexed(&stage).await, 2);
    stage.pass("go");
    stage.api.ended_run(&run_id).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_never_pulled_becomes_runs_in_order() {
    let stage = Stage::open(STEERED).await;
    let run_id = start(&stage, "steered", &[json!(["gate", "go"]), json!(["end"])]).await;
    for name in ["m1", "m2", "m3"] {
        steer(&stage, "steered", name, &run_id).await;
    }
    stage.pass("go");
    let answer = wait_for("the last message's run", PATIENCE, async || {
        let (_, answer) = stage.api.post_event(&message("steered", "m3")).await.ok()?;
        (answer.status == "completed").then_some(answer)
    })
    .await;
    assert_ne!(answer.run_id.as_deref(), Some(run_id.as_str()));
    assert_eq!(stage.api.answers("c").await, ["m1", "m2", "m3"]);
    assert_eq!(stage.log("steering.").await, ["steering.requeued"; 3]);
    let history = stage.api.history("c").await;
    let item = history.iter().find(|item| item.event_id.as_deref() == Some("m3")).unwrap();
    assert_eq!(item.run_id, answer.run_id);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_so_many_messages_wait_for_a_run() {
    let stage = Stage::open_with("steering_length = 2", STEERED).await;
    let steps = [
        json!(["gate", "go"]),
        pull("told"),
        json!(["mark", "pulled"]),
        json!(["gate", "end"]),
        json!(["end"]),
    ];
    let run_id = start(&stage, "steered", &steps).await;
    for name in ["m1", "m2"] {
        steer(&stage, "steered", name, &run_id).await;
    }
    let full = stage.api.post_event(&message("steered", "m3")).await;
    assert!(matches!(full, Err(Failure::Refused { status: 429, .. })), "{full:?}");
    stage.pass("go");
    stage.marked("pulled").await;
    steer(&stage, "steered", "m3", &run_id).await;
    stage.pass("end");
    stage.api.ended_run(&run_id).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_run_hands_back_what_it_has_not_pulled() {
    let stage = Stage::open(STEERED).await;
    let steps = [
        json!(["gate", "go"]),
        json!(["call", "steering.pull", {"limit": 1}, "told"]),
        json!(["mark", "pulled"]),
        json!(["gate", "never"]),
    ];
    let run_id = start(&stage, "steered", &steps).await;
    for name in ["m1", "m2"] {
        steer(&stage, "steered", name, &run_id).await;
    }
    stage.pass("go");
    stage.marked("pulled").await;
    assert_eq!(outcome(&stage.cancel(&run_id).await), (Cancelled, "cancelled"));
    wait_for("the other message's answer", PATIENCE, async || {
        (stage.api.answers("c").await == ["m2"]).then_some(())
    })
    .await;
    let (_, first) = stage.api.post_event(&message("steered", "m1")).await.unwrap();
    assert_eq!(
        (first.status.as_str(), first.run_id.as_deref()),
        ("steered", Some(run_id.as_str()))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_was_killed_loses_no_message_and_answers_none_twice() {
    let mut stage = Stage::open(STEERED).await;
    let steps = [
        json!(["gate", "go"]),
        json!(["call", "steering.pull", {"limit": 1}, "told"]),
        json!(["mark", "pulled"]),
        json!(["gate", "never"]),
    ];
    let run_id = start(&stage, "steered", &steps).await;
    for name in ["m1", "m2", "m3"] {
        steer(&stage, "steered", name, &run_id).await;
    }
    stage.pass("go");
    stage.marked("pulled").await;
    stage.host.kill();
    stage.host.start_again().await;
    assert_eq!(outcome(&stage.api.ended_run(&run_id).await), (Failed, "host.interrupted"));
    wait_for("the answers of the others", PATIENCE, async || {
        (stage.api.answers("c").await == ["m2", "m3"]).then_some(())
    })
    .await;
    let (_, first) = stage.api.post_event(&message("steered", "m1")).await.unwrap();
    assert_eq!(
        (first.status.as_str(), first.run_id.as_deref()),
        ("steered", Some(run_id.as_str()))
    );
    let log = stage.log("steering.").await;
    assert_eq!(log, ["steering.injected", "steering.requeued", "steering.requeued"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_is_tried_again_pulls_again() {
    let mut stage = Stage::open(STEERED).await;
    let steps = [
        json!(["gate", "go"]),
        pull("told"),
        json!(["mark", "pulled"]),
        json!(["gate", "end"]),
        json!(["message", "to both"]),
        json!(["end"]),
    ];
    let run_id = start(&stage, "stubborn", &steps).await;
    steer(&stage, "stubborn", "m1", &run_id).await;
    stage.pass("go");
    stage.marked("pulled").await;
    let folder = stage.host.folder().join("puppet");
    stage.host.kill();
    for mark in ["told", "pulled"] {
        std::fs::remove_file(folder.join(mark)).unwrap();
    }
    stage.host.start_again().await;
    stage.marked("pulled").await;
    assert_eq!(pulled(&stage, "told").await, ["m1"]);
    stage.pass("end");
    let run = stage.api.ended_run(&run_id).await;
    assert_eq!((outcome(&run), run.attempt), ((Completed, ""), 2));
    assert_eq!(stage.api.answers("c").await, ["to both"]);
    assert_eq!(stage.api.runs().await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_that_takes_no_messages_is_not_steered() {
    let stage = Stage::open(STEERED).await;
    let run_id = stage.send(&event("deaf", "c", "x")).await;
    let (_, second) = stage.api.post_event(&message("deaf", "m1")).await.unwrap();
    assert_eq!(second.status, "queued");
    assert_ne!(second.run_id.as_deref(), Some(run_id.as_str()));
    let other = json!({"event_type": "member.joined", "agent": "steered", "conversation_id": "d",
        "input": {"text": json!([["gate", "go"], ["end"]]).to_string()}});
    let first = stage.send(&other).await;
    let (_, behind) = stage.api.post_event(&other).await.unwrap();
    assert_eq!(behind.status, "queued", "what is no message waits its turn");
    stage.pass("go");
    stage.api.ended_run(&first).await;
    stage.cancel(&run_id).await;
}
