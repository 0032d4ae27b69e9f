//! What a run shows while it works: reasoning, arguments, steps, activities, sub-agents; and a run whose reader leaves.

use crate::reader::{Reader, find, input, kinds, refused, steps, talk};
use crate::stage::{Stage, TOKEN, outcome};
use greenroom_protocol::RunStatus;
use greenroom_testkit::http::Request;
use serde_json::{Value, json};

#[tokio::test]
async fn reasoning_comes_before_the_text_that_it_leads_to() {
    let stage = Stage::open("").await;
    let message = json!({"role": "assistant", "content": "yes",
        "segments": [{"type": "reasoning", "text": "let me think"}, {"type": "text", "text": "yes"}]});
    let played = json!([
        ["result", "reasoning.delta", {"text": "let me "}],
        ["result", "reasoning.delta", {"text": "think"}],
        ["say", "yes"],
        ["result", "message.completed", {"message": message}],
        ["end"]
    ]);
    let sent = steps("t1", "r1", played);
    let events = talk(&stage, "puppet", &sent).await;
    assert_eq!(
        kinds(&events),
        [
            "RUN_STARTED",
            "REASONING_START",
            "REASONING_MESSAGE_START",
            "REASONING_MESSAGE_CONTENT",
            "REASONING_MESSAGE_CONTENT",
            "REASONING_MESSAGE_END",
            "REASONING_END",
            "TEXT_MESSAGE_START",
            "TEXT_MESSAGE_CONTENT",
            "TEXT_MESSAGE_END",
            "RUN_FINISHED"
        ]
    );
    // A client that has a part of it gets the rest.
    let mut again = sent.clone();
    let half = json!({"id": events[1]["messageId"], "role": "reasoning", "content": "let me th"});
    again["messages"].as_array_mut().unwrap().push(half);
    let rest = talk(&stage, "puppet", &again).await;
    let pieces = rest.iter().filter(|event| event["type"] == "REASONING_MESSAGE_CONTENT");
    assert_eq!(pieces.map(|piece| piece["delta"].clone()).collect::<Vec<_>>(), ["ink"]);
    let run_id = stage.api.runs().await.remove(0).run_id;
    assert_eq!(stage.api.run(&run_id).await.extra["diagnostics"], json!([]));
}

#[tokio::test]
async fn arguments_are_streamed_and_corrected() {
    let stage = Stage::open("").await;
    let piece = |id: &str, text: &str| {
        json!(["result", "tool.call.delta",
            {"tool_call_id": id, "tool_name": "write", "args_text": text}])
    };
    let call = |id: &str, parameters: Value| json!({"tool_call_id": id, "tool_name": "write", "parameters": parameters});
    let played = json!([
        piece("c1", "{\"text\": \"one "),
        piece("c2", "{\"text\": 1"),
        piece("c3", "{\"te"),
        piece("c1", "two\"}"),
        ["result", "tool.call.started", call("c1", json!({"text": "one two"}))],
        ["result", "tool.call.started", call("c2", json!({"text": "other"}))],
        ["result", "tool.call.completed", {"tool_call_id": "c1", "tool_name": "write", "result": 1}],
        ["result", "tool.call.completed", {"tool_call_id": "c2", "tool_name": "write", "result": 2}],
        ["end"]
    ]);
    let events = talk(&stage, "puppet", &steps("t1", "r1", played)).await;
    let of = |id: &str| {
        let own = events.iter().filter(|event| event["toolCallId"] == id);
        own.map(|event| event["type"].as_str().unwrap()).collect::<Vec<_>>()
    };
    let expected = [
        "TOOL_CALL_START",
        "TOOL_CALL_ARGS",
        "TOOL_CALL_ARGS",
        "TOOL_CALL_END",
        "TOOL_CALL_RESULT",
    ];
    assert_eq!(of("c1"), expected);
    assert_eq!(
        of("c2"),
        ["TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END", "TOOL_CALL_RESULT"]
    );
    // A call that was never carried out is taken back.
    assert_eq!(of("c3"), ["TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END"]);
    let last = events.iter().rfind(|event| event["type"] == "MESSAGES_SNAPSHOT").unwrap();
    let messages = last["messages"].as_array().unwrap();
    let calls: Vec<&Value> = messages.iter().filter_map(|one| one["toolCalls"].get(0)).collect();
    let arguments: Vec<(&Value, &Value)> =
        calls.iter().map(|call| (&call["id"], &call["function"]["arguments"])).collect();
    assert_eq!(
        arguments,
        [
            (&json!("c1"), &json!("{\"text\": \"one two\"}")),
            (&json!("c2"), &json!("{\"text\":\"other\"}"))
        ]
    );
    assert_eq!(find(&events, "RUN_FINISHED")["outcome"], json!({"type": "success"}));
}

#[tokio::test]
async fn a_secret_does_not_leave_in_pieces() {
    let token =
        "[tokens.web]\nrole = \"sender\"\nagents = [\"puppet\"]\ntoken = { file = \"token\" }\n";
    let stage = Stage::open(token).await;
    let secret = TOKEN;
    let (head, tail) = secret.split_at(secret.len() / 2);
    let piece = |text: &str| json!(["result", "reasoning.delta", {"text": text}]);
    let played = json!([piece("it is "), piece(head), piece(tail), piece(" so"), ["end"]]);
    // An event is cleaned of secrets, but this one has them in pieces.
    assert!(!played.to_string().contains(secret));
    let events = talk(&stage, "puppet", &steps("t1", "r1", played)).await;
    let text: String = events
        .iter()
        .filter(|event| event["type"] == "REASONING_MESSAGE_CONTENT")
        .map(|event| event["delta"].as_str().unwrap())
        .collect();
    assert!(text.starts_with("it is ") && text.ends_with(" so"), "{text}");
    assert!(!text.contains(secret) && !text.contains(tail), "{text}");
}

#[tokio::test]
async fn steps_activities_and_sub_agents_are_shown_and_end_with_the_run() {
    let stage = Stage::open("").await;
    let shown = |kind: &str, data: Value| json!(["result", kind, data]);
    let patch = json!([{"op": "replace", "path": "/done", "value": 2}]);
    let played = json!([
        shown("step.started", json!({"step_name": "plan"})),
        shown("step.started", json!({"step_name": "plan"})),
        shown(
            "activity.snapshot",
            json!({"message_id": "a", "activity_type": "progress", "content": {"done": 1}})
        ),
        shown(
            "activity.delta",
            json!({"message_id": "a", "activity_type": "progress", "patch": patch})
        ),
        shown(
            "activity.delta",
            json!({"message_id": "b", "activity_type": "progress", "patch": patch})
        ),
        shown("step.finished", json!({"step_name": "plan"})),
        shown("step.finished", json!({"step_name": "never"})),
        shown(
            "subagent.started",
            json!({"subagent_id": "s1", "name": "flights", "description": "finds flights"})
        ),
        shown(
            "subagent.started",
            json!({"subagent_id": "s2", "name": "hotels", "parent_subagent_id": "s1"})
        ),
        shown(
            "subagent.failed",
            json!({"subagent_id": "s2", "message": "none free", "code": "full"})
        ),
        shown("subagent.finished", json!({"subagent_id": "s1", "result": {"flight": "KL1"}})),
        shown("subagent.finished", json!({"subagent_id": "s1"})),
        shown("step.started", json!({"step_name": "open"})),
        shown("subagent.started", json!({"subagent_id": "s3", "name": "late"})),
        ["end"]
    ]);
    let events = talk(&stage, "puppet", &steps("t1", "r1", played)).await;
    let run_id = events[0]["metadata"]["greenroom"]["run_id"].as_str().unwrap();
    let activity = format!("{run_id}.activity.a");
    assert_eq!(
        events[1..events.len() - 1],
        [
            json!({"type": "STEP_STARTED", "stepName": "plan"}),
            json!({"type": "ACTIVITY_SNAPSHOT", "messageId": activity, "activityType": "progress",
                "content": {"done": 1}, "replace": true}),
            json!({"type": "ACTIVITY_DELTA", "messageId": activity, "activityType": "progress",
                "patch": patch}),
            json!({"type": "STEP_FINISHED", "stepName": "plan"}),
            json!({"type": "SUBAGENT_STARTED", "subagentRunId": "s1", "name": "flights",
                "description": "finds flights"}),
            json!({"type": "SUBAGENT_STARTED", "subagentRunId": "s2", "name": "hotels",
                "parentSubagentRunId": "s1"}),
            json!({"type": "SUBAGENT_ERROR", "subagentRunId": "s2", "message": "none free",
                "code": "full"}),
            json!({"type": "SUBAGENT_FINISHED", "subagentRunId": "s1", "result": {"flight": "KL1"}}),
            json!({"type": "STEP_STARTED", "stepName": "open"}),
            json!({"type": "SUBAGENT_STARTED", "subagentRunId": "s3", "name": "late"}),
            json!({"type": "STEP_FINISHED", "stepName": "open"}),
            json!({"type": "SUBAGENT_FINISHED", "subagentRunId": "s3"}),
        ]
    );
    let run_id = stage.api.runs().await.remove(0).run_id;
    assert_eq!(stage.api.run(&run_id).await.extra["diagnostics"], json!([]));
}

#[tokio::test]
async fn a_reader_that_asked_for_it_stops_the_run_by_leaving() {
    let stage = Stage::open("").await;
    for (query, status) in [("?on_disconnect=stop", RunStatus::Cancelled), ("", RunStatus::Running)]
    {
        let run = format!("r{}", query.len());
        let sent = steps(&run, &run, json!([["say", "a"], ["hang"]]));
        let url = format!("/v1/agui/puppet{query}");
        let mut reader = Reader::open(&stage, Request::post(url, sent.to_string())).await;
        let started = reader.next().await.unwrap();
        reader.until("TEXT_MESSAGE_CONTENT").await;
        drop(reader);
        let run_id = started["metadata"]["greenroom"]["run_id"].as_str().unwrap();
        match status {
            RunStatus::Cancelled => {
                let ended = stage.api.ended_run(run_id).await;
                assert_eq!(outcome(&ended), (RunStatus::Cancelled, "cancelled"));
            }
            _ => {
                // Something else through the same host, so that it has noticed.
                talk(&stage, "puppet", &steps("t9", "r9", json!([["message", "x"], ["end"]])))
                    .await;
                let runs = stage.api.runs().await;
                let left = runs.iter().find(|run| run.run_id == run_id).unwrap();
                assert_eq!(left.status, status);
            }
        }
    }
    let url = "/v1/agui/puppet?on_disconnect=maybe";
    let wrong = Request::post(url, input("t", "r", "hi").to_string());
    assert_eq!(refused(&stage, wrong).await.0, 400);
}
