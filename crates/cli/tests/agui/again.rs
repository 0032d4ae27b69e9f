//! A client that comes back sees what it saw of finished runs: reasoning, activities, sub-agents, steps.

use crate::reader::{Reader, find, input, kinds, steps, talk};
use crate::stage::Stage;
use greenroom_testkit::http::Request;
use serde_json::{Value, json};

async fn connect(stage: &Stage, thread: &str) -> Vec<Value> {
    let mut sent = input(thread, "connecting", "");
    sent["messages"] = json!([]);
    let request = Request::post("/v1/agui/agent/puppet/connect", sent.to_string());
    Reader::open(stage, request).await.rest().await
}

fn messages(events: &[Value]) -> Vec<Value> {
    find(events, "MESSAGES_SNAPSHOT")["messages"].as_array().unwrap().clone()
}

/// A message without its id and, for tools, its metadata.
fn seen(message: &Value) -> Value {
    let mut seen = message.clone();
    let fields = seen.as_object_mut().unwrap();
    fields.retain(|name, _| name != "id" && name != "metadata");
    seen
}

fn shown(kind: &str, data: Value) -> Value {
    json!(["result", kind, data])
}

fn message(content: &str, metadata: Value) -> Value {
    let message = json!({"role": "assistant", "content": content, "metadata": metadata});
    shown("message.completed", json!({"message": message}))
}

#[tokio::test]
async fn what_runs_showed_is_in_the_stored_thread_where_it_was() {
    let stage = Stage::open("").await;
    let about = |id: &str| json!({"message_id": id, "activity_type": "progress"});
    let with = |mut about: Value, key: &str, value: Value| {
        about[key] = value;
        about
    };
    let patch = json!([{"op": "replace", "path": "/done", "value": 7}]);
    let call = json!({"tool_call_id": "c1", "tool_name": "look", "parameters": {"a": 1}});
    let played = json!([
        shown("reasoning.delta", json!({"text": "let me "})),
        shown("reasoning.delta", json!({"text": "think"})),
        message("one", json!({})),
        shown("activity.snapshot", with(about("a"), "content", json!({"done": 0}))),
        shown("tool.call.started", call.clone()),
        shown("tool.call.completed", with(call.clone(), "result", json!("seen"))),
        shown("activity.delta", with(about("a"), "patch", patch)),
        shown("activity.snapshot", with(about("b"), "content", json!({"x": 1}))),
        message("two", json!({})),
        shown("activity.snapshot", with(about("c"), "content", json!({"last": true}))),
        ["end"]
    ]);
    let live = talk(&stage, "puppet", &steps("t", "r1", played)).await;
    let ids = |kind: &str, events: &[Value]| {
        let own = events.iter().filter(|event| event["type"] == kind);
        own.map(|event| event["messageId"].clone()).collect::<Vec<_>>()
    };
    talk(&stage, "puppet", &steps("t", "r2", json!([message("three", json!({})), ["end"]]))).await;
    let stored = messages(&connect(&stage, "t").await);
    let activity = |content: Value| json!({"role": "activity", "activityType": "progress", "content": content});
    let text = |text: &str| json!({"role": "assistant", "content": text});
    let roles: Vec<&Value> = stored.iter().map(|message| &message["role"]).collect();
    assert_eq!(roles[0], "user");
    assert_eq!(
        stored[1..9].iter().map(seen).collect::<Vec<_>>(),
        [
            json!({"role": "reasoning", "content": "let me think"}),
            text("one"),
            activity(json!({"done": 7})),
            json!({"role": "assistant", "toolCalls": [{"id": "c1", "type": "function",
                "function": {"name": "look", "arguments": "{}"}}]}),
            json!({"role": "tool", "toolCallId": "c1", "content": "seen"}),
            activity(json!({"x": 1})),
            text("two"),
            activity(json!({"last": true})),
        ]
    );
    assert_eq!((&stored[9]["role"], seen(&stored[10])), (&json!("user"), text("three")));
    assert_eq!(stored.len(), 11);
    // The ids are those of the stream.
    assert_eq!([stored[1]["id"].clone()], ids("REASONING_START", &live)[..]);
    let activities = [3, 6, 8].map(|index| stored[index]["id"].clone());
    assert_eq!(activities[..], ids("ACTIVITY_SNAPSHOT", &live)[..]);
}

/// Steps and sub-agents.
fn progress(events: &[Value]) -> Vec<Value> {
    let own = events.iter().filter(|event| {
        let kind = event["type"].as_str().unwrap();
        kind.starts_with("STEP") || kind.starts_with("SUBAGENT")
    });
    own.cloned().collect()
}

/// Two sub-agents are named and one is known; its step is never finished, and its text comes around a call.
fn travel() -> Value {
    let started = |id: &str| shown("subagent.started", json!({"subagent_id": id, "name": id}));
    let ended = |id: &str| shown("subagent.finished", json!({"subagent_id": id}));
    let delta = |id: &str, text: &str| {
        let chunk = json!({"role": "assistant", "content": text, "message_id": id});
        shown("message.delta", json!({"chunk": chunk, "subagent_id": "flights"}))
    };
    let done = |id: &str, text: &str| {
        let message = json!({"role": "assistant", "content": text, "message_id": id});
        shown("message.completed", json!({"message": message}))
    };
    let by = |mut data: Value| {
        data["subagent_id"] = "flights".into();
        data
    };
    let call = json!({"tool_call_id": "c1", "tool_name": "look", "parameters": {}});
    let mut result = call.clone();
    result["result"] = "KL1".into();
    json!([
        shown("step.started", json!({"step_name": "travel"})),
        started("flights"),
        shown("step.started", by(json!({"step_name": "search"}))),
        shown("reasoning.delta", by(json!({"text": "hm"}))),
        delta("m1", "found "),
        shown("tool.call.started", by(call)),
        shown("tool.call.completed", by(result)),
        delta("m1", "one"),
        done("m1", "found one"),
        message("by its metadata", json!({"subagent_id": "flights"})),
        message("of nobody known", json!({"subagent_id": "hotels"})),
        ended("flights"),
        shown("step.finished", json!({"step_name": "travel"})),
        message("all done", json!({})),
        ["end"]
    ])
}

#[tokio::test]
async fn steps_and_sub_agents_of_the_newest_run_are_repeated_and_texts_keep_their_sub_agent() {
    let stage = Stage::open("").await;
    let live = talk(&stage, "puppet", &steps("t", "r1", travel())).await;
    let by_flights = "flights";
    assert_eq!(
        progress(&live),
        [
            json!({"type": "STEP_STARTED", "stepName": "travel"}),
            json!({"type": "SUBAGENT_STARTED", "subagentRunId": by_flights, "name": by_flights}),
            json!({"type": "STEP_STARTED", "stepName": "search", "subagentRunId": by_flights}),
            // Its own step is finished before it is.
            json!({"type": "STEP_FINISHED", "stepName": "search", "subagentRunId": by_flights}),
            json!({"type": "SUBAGENT_FINISHED", "subagentRunId": by_flights}),
            json!({"type": "STEP_FINISHED", "stepName": "travel"}),
        ]
    );
    let opened: Vec<_> = live
        .iter()
        .filter(|event| event["type"].as_str().unwrap().ends_with("_START"))
        .map(|event| (event["type"].as_str().unwrap(), event["subagentRunId"].as_str()))
        .collect();
    let own = Some(by_flights);
    assert_eq!(
        opened,
        [
            ("REASONING_START", own),
            ("REASONING_MESSAGE_START", own),
            ("TEXT_MESSAGE_START", own),
            ("TOOL_CALL_START", own),
            ("TEXT_MESSAGE_START", own),
            ("TEXT_MESSAGE_START", own),
            ("TEXT_MESSAGE_START", None),
            ("TEXT_MESSAGE_START", None),
        ]
    );
    let back = connect(&stage, "t").await;
    assert_eq!(progress(&back), progress(&live));
    assert_eq!((&kinds(&back)[0], kinds(&back).last().unwrap()), (&"RUN_STARTED", &"RUN_FINISHED"));
    let stored: Vec<_> = messages(&back)
        .iter()
        .map(|message| {
            let text = message["content"].as_str().unwrap_or("(call)").to_owned();
            (text, message["subagentRunId"].as_str().map(str::to_owned))
        })
        .skip(1)
        .collect();
    let expected = [
        ("hm", own),
        ("(call)", own),
        ("KL1", own),
        ("found one", own),
        ("by its metadata", own),
        ("of nobody known", None),
        ("all done", None),
    ];
    let expected = expected.map(|(text, by)| (text.to_owned(), by.map(str::to_owned)));
    assert_eq!(stored, expected);
    // They are of the newest run only.
    talk(&stage, "puppet", &steps("t", "r2", json!([["message", "more"], ["end"]]))).await;
    assert_eq!(progress(&connect(&stage, "t").await), [Value::Null; 0]);
}

#[tokio::test]
async fn the_newest_plan_of_a_run_is_in_the_stored_thread() {
    let stage = Stage::open("").await;
    let plan = |status: &str| json!({"entries": [{"content": "look", "status": status}]});
    let played = json!([
        shown("plan.updated", plan("pending")),
        shown("plan.updated", plan("completed")),
        message("done", json!({})),
        ["end"]
    ]);
    talk(&stage, "puppet", &steps("t", "r1", played)).await;
    let stored = messages(&connect(&stage, "t").await);
    let shown: Vec<Value> = stored[1..].iter().map(seen).collect();
    let activity =
        json!({"role": "activity", "activityType": "PLAN", "content": plan("completed")});
    assert_eq!(shown, [activity, json!({"role": "assistant", "content": "done"})]);
}
