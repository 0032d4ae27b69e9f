//! Ids and sizes of calls that somebody chose badly: each call keeps its own record, and harms no other.

use crate::stage::{PATIENCE, Stage, event};
use crate::{AGENT, approvals, call, data, play};
use greenroom_protocol::TranscriptRole;
use greenroom_testkit::wait::wait_for;
use serde_json::{Value, json};

#[tokio::test]
async fn a_read_with_the_id_of_a_write_takes_nothing_over() {
    let stage = Stage::open(AGENT).await;
    let write = call("one", "memory", "update", json!({"set": {"a": 1}}));
    let mut read = call("one", "memory", "read", json!({}));
    read[3] = "two".into();
    let mut again = write.clone();
    again[3] = "three".into();
    play(&stage, "ann", "c1", vec![write, read, again]).await;
    data(&stage, "one").await;
    let refused = stage.told("two").await;
    assert_eq!(refused["error"]["data"]["details"]["reason"], "repeated_id");
    assert_eq!(stage.told("three").await, stage.told("one").await);
    let items = stage.api.history("c1").await;
    let tools: Vec<_> = items.iter().filter(|item| item.role == TranscriptRole::Tool).collect();
    assert_eq!(tools.len(), 1);
    assert_eq!(tools[0].metadata["tool_agent_output"]["tool_call_args"]["method"], "update");
}

#[tokio::test]
async fn the_same_read_again_is_answered_as_before() {
    let stage = Stage::open(AGENT).await;
    let read = call("one", "memory", "read", json!({}));
    let mut again = read.clone();
    again[3] = "two".into();
    play(&stage, "ann", "c1", vec![read, again]).await;
    data(&stage, "one").await;
    assert_eq!(stage.told("two").await, stage.told("one").await);
}

#[tokio::test]
async fn an_id_or_a_name_with_odd_characters_costs_nobody_a_record() {
    let stage = Stage::open(AGENT).await;
    let mut odd = call("x", "memory", "update", json!({"set": {"a": 1}}));
    odd[2]["tool_call_id"] = "z\u{0}".into();
    odd[3] = "odd".into();
    let mut strange = call("strange", "mem\u{0}ory", "up\u{0}date", json!({}));
    strange[2]["tool_call_id"] = Value::Null;
    let fine = call("fine", "memory", "read", json!({}));
    let run = play(&stage, "ann", "c1", vec![odd, strange, fine]).await;
    assert_eq!(stage.told("odd").await["error"]["data"]["code"], "invalid_argument");
    assert_eq!(stage.told("strange").await["result"]["error"]["code"], "METHOD_NOT_ALLOWED");
    data(&stage, "fine").await;
    wait_for("three records", PATIENCE, async || {
        let audit = stage.api.get(&format!("/v1/audit?run_id={}", run.run_id)).await;
        (audit["items"].as_array().unwrap().len() == 3).then_some(())
    })
    .await;
}

#[tokio::test]
async fn parameters_that_are_too_large_are_refused_before_they_are_kept() {
    let limits = "cancel_grace_s = 1\nevent_bytes = 8_388_608";
    let agent = AGENT.replace("grant = {", "grant = { risk = { write = \"ask\" },");
    let stage = Stage::open_with(limits, &agent).await;
    let large = call("large", "memory", "update", json!({"set": {"a": "x".repeat(2_000_000)}}));
    // Each value is as long as it may be; together they are more than anybody is asked about.
    let values = (0..40).map(|n| (format!("k{n}"), "x".repeat(3_000).into()));
    let values: serde_json::Map<String, Value> = values.collect();
    let asked = call("asked", "memory", "update", json!({"set": values}));
    play(&stage, "ann", "c1", vec![large, asked]).await;
    for name in ["large", "asked"] {
        assert_eq!(stage.told(name).await["error"]["data"]["code"], "payload_too_large", "{name}");
    }
}

/// The runner's own word about a call.
fn tells(kind: &str, id: &str) -> Value {
    let data = json!({"tool_call_id": id, "tool_name": "project_cli", "parameters": {},
        "result": "as the runner has it", "error": null});
    json!(["result", format!("tool.call.{kind}"), data])
}

#[tokio::test]
async fn a_call_has_one_item_whenever_the_runner_tells_of_it() {
    let stage = Stage::open(AGENT).await;
    let mut early = call("during", "calendar", "delete", json!({"event_id": "e"}));
    early[0] = "start_call".into();
    let steps = vec![
        tells("started", "after"),
        call("after", "memory", "update", json!({"set": {"a": 1}})),
        tells("completed", "after"),
        tells("completed", "before"),
        call("before", "memory", "update", json!({"set": {"b": 1}})),
        tells("completed", "alone"),
        tells("completed", "alone"),
        early,
        json!(["gate", "asked"]),
        tells("completed", "during"),
        json!(["mark", "told"]),
        json!(["gate", "end"]),
        json!(["end"]),
    ];
    let run_id = stage.send(&event("clerk", "c1", &Value::Array(steps).to_string())).await;
    let question = approvals::asked(&stage).await;
    stage.pass("asked");
    stage.marked("told").await;
    approvals::answer(&stage, &question, "allow").await;
    stage.told("during").await;
    stage.pass("end");
    stage.api.ended_run(&run_id).await;
    data(&stage, "after").await;
    // What the runner has told of as over is not begun under the same id.
    let refused = stage.told("before").await;
    assert_eq!(refused["error"]["data"]["details"]["reason"], "repeated_id");
    let items = approvals::tool_items(&stage, "c1").await;
    let shown: Vec<(&Value, bool)> = items
        .iter()
        .map(|item| {
            let output = &item.metadata["tool_agent_output"];
            (&output["tool_call_id"], output["result"] == "as the runner has it")
        })
        .collect();
    let expected = [("after", false), ("before", true), ("alone", true), ("during", false)];
    let expected = expected.map(|(id, by_runner)| (json!(id), by_runner));
    let expected: Vec<(&Value, bool)> = expected.iter().map(|(id, own)| (id, *own)).collect();
    assert_eq!(shown, expected);
}
