//! Expected events, written by hand from the AG-UI reference.

mod authors;

use super::*;
use serde_json::value::RawValue;

fn translator(profile: Profile, messages: Value) -> Translator {
    let stream = Stream {
        thread_id: "t".into(),
        agui_run_id: "a".into(),
        run_id: "run_1".into(),
        profile,
        catalogue: "",
    };
    let Value::Array(messages) = messages else { panic!("a list") };
    Translator::new(stream, messages, json!({}))
}

fn record(sequence: i64, kind: &str, data: Value) -> ResultRecord {
    ResultRecord {
        sequence,
        kind: kind.to_owned().into(),
        data: RawValue::from_string(data.to_string()).unwrap(),
        at_ms: 0,
        runner_sequence: None,
        runner_timestamp: None,
        usage: None,
    }
}

fn take(to: &mut Translator, sequence: i64, kind: &str, data: Value) -> Vec<Value> {
    to.take(&record(sequence, kind, data), None).iter().map(|event| json!(event)).collect()
}

fn say(to: &mut Translator, sequence: i64, text: &str) -> Vec<Value> {
    take(to, sequence, "message.delta", json!({"chunk": {"role": "assistant", "content": text}}))
}

fn complete(to: &mut Translator, sequence: i64, text: &str) -> Vec<Value> {
    let message = json!({"role": "assistant", "content": text});
    take(to, sequence, "message.completed", json!({"message": message}))
}

fn start(id: &str) -> Value {
    json!({"type": "TEXT_MESSAGE_START", "messageId": id, "role": "assistant"})
}

fn content(id: &str, delta: &str) -> Value {
    json!({"type": "TEXT_MESSAGE_CONTENT", "messageId": id, "delta": delta})
}

fn end(id: &str) -> Value {
    json!({"type": "TEXT_MESSAGE_END", "messageId": id})
}

fn text(id: &str, content: &str) -> Value {
    json!({"id": id, "role": "assistant", "content": content})
}

fn snapshot(messages: Value) -> Value {
    json!({"type": "MESSAGES_SNAPSHOT", "messages": messages})
}

#[test]
fn a_run_of_deltas_is_one_message() {
    let mut to = translator(Profile::One, json!([]));
    assert_eq!(
        json!(to.started()),
        json!({"type": "RUN_STARTED", "threadId": "t", "runId": "a", "protocolVersion": "1.0",
            "metadata": {"greenroom": {"run_id": "run_1"}}})
    );
    assert_eq!(say(&mut to, 3, "a"), [start("run_1.3"), content("run_1.3", "a")]);
    assert_eq!(say(&mut to, 4, ""), [Value::Null; 0]);
    assert_eq!(say(&mut to, 5, "b"), [content("run_1.3", "b")]);
    assert_eq!(complete(&mut to, 6, "ab"), [end("run_1.3")]);
    let mut done = record(7, "run.completed", json!({"finish_reason": "stop"}));
    done.usage = Some(RawValue::from_string("{\"input_tokens\":2}".into()).unwrap());
    assert_eq!(
        json!(to.take(&done, None)),
        json!([{"type": "RUN_FINISHED", "threadId": "t", "runId": "a",
            "result": {"run_id": "run_1", "finish_reason": "stop"},
            "outcome": {"type": "success"}, "usage": [{"inputTokens": 2}]}])
    );
    assert!(to.is_over());
    assert_eq!(say(&mut to, 8, "late"), [Value::Null; 0]);
}

#[test]
fn a_complete_message_adds_what_deltas_lack() {
    let mut to = translator(Profile::One, json!([]));
    say(&mut to, 1, "ab");
    assert_eq!(complete(&mut to, 2, "abc"), [content("run_1.1", "c"), end("run_1.1")]);
    assert_eq!(
        complete(&mut to, 3, "x"),
        [start("run_1.3"), content("run_1.3", "x"), end("run_1.3")]
    );
    assert_eq!(complete(&mut to, 4, ""), [Value::Null; 0]);
    // Deltas separated by another result are two messages for the client, but one for the runner.
    say(&mut to, 5, "one ");
    take(
        &mut to,
        6,
        "tool.call.started",
        json!({"tool_call_id": "c", "tool_name": "f", "parameters": {}}),
    );
    say(&mut to, 7, "two");
    assert_eq!(complete(&mut to, 8, "one two"), [end("run_1.7")]);
}

#[test]
fn a_complete_message_that_differs_replaces_its_deltas() {
    let before = json!([{"id": "u", "role": "user", "content": "hi"}]);
    let mut to = translator(Profile::One, before.clone());
    say(&mut to, 1, "a secr");
    assert_eq!(
        complete(&mut to, 2, "a [hidden]"),
        [end("run_1.1"), snapshot(json!([before[0], text("run_1.1", "a [hidden]")]))]
    );
    say(&mut to, 3, "never mind");
    let expected = json!([before[0], text("run_1.1", "a [hidden]")]);
    assert_eq!(complete(&mut to, 4, ""), [end("run_1.3"), snapshot(expected)]);
}

#[test]
fn a_new_attempt_takes_back_what_was_sent() {
    let mut to = translator(Profile::One, json!([{"id": "u", "role": "user", "content": "hi"}]));
    say(&mut to, 1, "first");
    assert_eq!(
        take(&mut to, 9, "run.restarted", json!({"attempt": 2})),
        [
            end("run_1.1"),
            snapshot(json!([{"id": "u", "role": "user", "content": "hi"}])),
            json!({"type": "CUSTOM", "name": "run.restarted", "value": {"attempt": 2}})
        ]
    );
    assert_eq!(say(&mut to, 10, "second")[0], start("run_1.10"));
}

#[test]
fn a_call_has_its_arguments_its_result_and_its_card() {
    let mut to = translator(Profile::Legacy, json!([]));
    say(&mut to, 1, "let me see");
    let call = json!({"tool_call_id": "c1", "tool_name": "project_cli", "parameters": {"a": 1}});
    assert_eq!(
        take(&mut to, 2, "tool.call.started", call),
        [
            end("run_1.1"),
            json!({"type": "TOOL_CALL_START", "toolCallId": "c1", "toolCallName": "project_cli",
                "parentMessageId": "run_1.2"}),
            json!({"type": "TOOL_CALL_ARGS", "toolCallId": "c1", "delta": "{\"a\":1}"}),
            json!({"type": "TOOL_CALL_END", "toolCallId": "c1"}),
        ]
    );
    let output = json!({"tool_name": "project_cli", "tool_call_id": "c1", "status": "success",
        "tool_call_args": {"a": 1}, "result": {"n": 1}});
    let schema =
        json!({"format": "a2ui", "version": "v0.9", "operations": [{"createSurface": {}}]});
    let mut recorded = json!({"tool_agent_output": output, "ui_schema": schema});
    recorded["tool_agent_output"]["error"] = Value::Null;
    recorded["tool_agent_output"]["ui_hints"] = json!({"template": "event"});
    let data =
        json!({"tool_call_id": "c1", "tool_name": "project_cli", "result": {"other": "result"}});
    let done = record(3, "tool.call.completed", data);
    let metadata = json!({"tool_agent_output": output, "ui_schema": schema});
    assert_eq!(
        json!(to.take(&done, Some(recorded))),
        json!([
            {"type": "TOOL_CALL_RESULT", "messageId": "run_1.3.result", "toolCallId": "c1",
                "role": "tool", "content": "{\"n\":1}", "metadata": metadata},
            {"type": "ACTIVITY_SNAPSHOT", "messageId": "a2ui-surface-c1",
                "activityType": "a2ui-surface", "replace": true,
                "content": {"a2ui_operations": [{"createSurface": {}}]}},
        ])
    );
    assert_eq!(to.take(&done, None), []);
}

#[test]
fn a_call_of_the_runner_itself_is_sent_as_reported() {
    let earlier = json!([{"id": "x", "role": "assistant", "toolCalls": [{"id": "c1"}]}]);
    let mut to = translator(Profile::Legacy, earlier);
    let failed = json!({"tool_call_id": "c1", "tool_name": "f", "result": null, "error": "broken"});
    let output =
        json!({"tool_name": "f", "tool_call_id": "c1", "status": "failure", "error": "broken"});
    // The client has another call with this id and has not seen this one.
    assert_eq!(
        take(&mut to, 5, "tool.call.completed", failed),
        [
            json!({"type": "TOOL_CALL_START", "toolCallId": "c1.5", "toolCallName": "f",
                "parentMessageId": "run_1.5"}),
            json!({"type": "TOOL_CALL_ARGS", "toolCallId": "c1.5", "delta": "{}"}),
            json!({"type": "TOOL_CALL_END", "toolCallId": "c1.5"}),
            json!({"type": "TOOL_CALL_RESULT", "messageId": "run_1.5.result", "toolCallId": "c1.5",
                "role": "tool", "content": "{\"error\":\"broken\",\"status\":\"failure\"}",
                "metadata": {"tool_agent_output": output}}),
        ]
    );
    assert_eq!(to.call_id("c1").as_deref(), Some("c1.5"));
}

#[test]
fn the_clients_state_is_patched() {
    let mut to = translator(Profile::One, json!([]));
    let update = |to: &mut Translator, value: Value| {
        take(to, 1, "state.updated", json!({"scope": "actor", "key": "a/b~c", "value": value}))
    };
    let delta = |operations: Value| json!({"type": "STATE_DELTA", "delta": operations});
    assert_eq!(
        update(&mut to, json!(1)),
        [delta(json!([{"op": "add", "path": "/actor", "value": {}},
            {"op": "add", "path": "/actor/a~1b~0c", "value": 1}]))]
    );
    let changed = json!([{"op": "add", "path": "/actor/a~1b~0c", "value": 2}]);
    assert_eq!(update(&mut to, json!(2)), [delta(changed)]);
    let removed = json!([{"op": "remove", "path": "/actor/a~1b~0c"}]);
    assert_eq!(update(&mut to, Value::Null), [delta(removed)]);
    assert_eq!(update(&mut to, Value::Null), [Value::Null; 0]);
}

#[test]
fn reasoning_and_images_are_sent_beside_the_text() {
    let mut to = translator(Profile::One, json!([]));
    let message = json!({"role": "assistant", "content": [{"type": "text", "text": "a cat"},
        {"type": "image", "artifact_id": "art_1", "mime_type": "image/png"}],
        "segments": [{"type": "reasoning", "text": "hm"}]});
    let id = "run_1.2.0";
    assert_eq!(
        take(&mut to, 2, "message.completed", json!({"message": message})),
        [
            json!({"type": "REASONING_START", "messageId": id}),
            json!({"type": "REASONING_MESSAGE_START", "messageId": id, "role": "reasoning"}),
            json!({"type": "REASONING_MESSAGE_CONTENT", "messageId": id, "delta": "hm"}),
            json!({"type": "REASONING_MESSAGE_END", "messageId": id}),
            json!({"type": "REASONING_END", "messageId": id}),
            start("run_1.2"),
            content("run_1.2", "a cat"),
            end("run_1.2"),
            json!({"type": "CUSTOM", "name": "message.media", "value": {"message_id": "run_1.2",
                "media": [{"type": "image", "artifact_id": "art_1", "mime_type": "image/png",
                    "url": "/v1/artifacts/art_1"}]}}),
        ]
    );
}

#[test]
fn a_run_ends_as_its_client_can_read_it() {
    let failed = |profile, code: &str| {
        let mut to = translator(profile, json!([]));
        say(&mut to, 1, "a");
        take(&mut to, 2, "run.failed", json!({"code": code, "message": "why"}))
    };
    let error = |code: &str| json!({"type": "RUN_ERROR", "message": "why", "code": code});
    let cancelled = json!({"type": "RUN_FINISHED", "threadId": "t", "runId": "a",
        "result": {"run_id": "run_1"}, "outcome": {"type": "cancelled"}});
    assert_eq!(failed(Profile::One, "runner.error"), [end("run_1.1"), error("runner.error")]);
    assert_eq!(failed(Profile::One, "cancelled"), [end("run_1.1"), cancelled]);
    assert_eq!(failed(Profile::Legacy, "cancelled"), [end("run_1.1"), error("cancelled")]);
    let mut to = translator(Profile::Legacy, json!([]));
    let message = json!({"role": "assistant", "content": "all"});
    assert_eq!(
        take(&mut to, 1, "run.completed", json!({"message": message})),
        [
            start("run_1.1"),
            content("run_1.1", "all"),
            end("run_1.1"),
            json!({"type": "RUN_FINISHED", "threadId": "t", "runId": "a", "result": {"run_id": "run_1"}})
        ]
    );
}

#[test]
fn a_client_that_reconnects_gets_the_run_again() {
    let user = json!({"id": "u", "role": "user", "content": "hi"});
    let half = text("run_1.1", "half");
    let thought = json!({"id": "run_1.9.0", "role": "reasoning", "content": "hm"});
    let mut to = translator(Profile::One, json!([user, half, thought]));
    assert_eq!(json!(to.take_back()), snapshot(json!([user])));
    let message = json!({"role": "assistant", "content": "",
        "segments": [{"type": "reasoning", "text": "hm"}]});
    // Clients keep reasoning through a snapshot: it is not sent twice.
    assert_eq!(
        take(&mut to, 9, "message.completed", json!({"message": message})),
        [Value::Null; 0]
    );
    assert_eq!(translator(Profile::One, json!([user])).take_back(), None);
}

#[test]
fn results_without_an_agui_event_are_custom() {
    let mut to = translator(Profile::One, json!([]));
    let made = json!({"artifact_id": "art_1", "name": "a.txt", "size_bytes": 3});
    assert_eq!(
        take(&mut to, 1, "artifact.created", made),
        [json!({"type": "CUSTOM", "name": "artifact.created", "value": {"artifact_id": "art_1",
            "name": "a.txt", "size_bytes": 3, "url": "/v1/artifacts/art_1"}})]
    );
    assert_eq!(
        take(&mut to, 2, "my.own", json!({"a": 1})),
        [json!({"type": "CUSTOM", "name": "my.own", "value": {"a": 1}})]
    );
    assert!(!to.action_requested);
    take(&mut to, 3, "action.requested", json!({"action": "message.send"}));
    assert!(to.action_requested);
}
