use super::*;

fn input(messages: Value) -> Value {
    json!({"threadId": "t", "runId": "r", "messages": messages})
}

fn read(value: &Value) -> Result<RunInput, Problem> {
    RunInput::parse(value.to_string().as_bytes())
}

fn event(messages: Value) -> NewEvent {
    read(&input(messages)).unwrap().event("default", "helper", "admin").unwrap()
}

#[test]
fn the_newest_message_is_the_event() {
    let made = event(json!([
        {"id": "1", "role": "user", "content": "first"},
        {"id": "2", "role": "assistant", "content": "answer", "metadata": {"ui_schema": {}}},
        {"id": "3", "role": "user", "content": "second"},
        {"id": "4", "role": "activity", "activityType": "a2ui-surface", "content": {}},
    ]));
    let expected = json!({"event_type": "message.received", "event_id": "r", "source": "agui",
        "conversation_id": "t", "workspace_id": "default", "agent": "helper",
        "actor": {"actor_type": "user", "actor_id": "admin"},
        "input": {"text": "second"}, "metadata": {"message_id": "3"}});
    assert_eq!(made, NewEvent::parse(expected.to_string().as_bytes()).unwrap());
}

#[test]
fn an_answered_message_is_no_event() {
    let messages = json!([{"id": "1", "role": "user", "content": "first"},
        {"id": "2", "role": "assistant", "content": "answer"},
        {"id": "3", "role": "reasoning", "content": "hm"}]);
    assert!(read(&input(messages)).unwrap().event("default", "helper", "admin").is_err());
}

#[test]
fn parts_of_every_form_become_contents() {
    let made = event(json!([{"id": "1", "role": "user", "content": [
        {"type": "text", "text": "look"},
        {"type": "image", "source": {"type": "data", "value": "aGk=", "mimeType": "image/png"}},
        {"type": "document", "source": {"type": "file", "value": "art_1"}, "metadata": {"filename": "a.pdf"}},
        {"type": "audio", "source": {"type": "url", "value": "data:audio/wav;base64,aGk="}},
        {"type": "video", "source": {"type": "url", "value": "https://example.com/v", "mimeType": "video/mp4"}},
        {"type": "binary", "mimeType": "image/gif", "data": "aGk=", "filename": "b.gif"},
        {"type": "binary", "mimeType": "text/csv", "url": "/v1/artifacts/art_2"},
        {"type": "text", "text": "and tell"},
    ]}]));
    assert_eq!(made.input.text.as_deref(), Some("look\nand tell"));
    assert_eq!(
        json!(made.input.contents),
        json!([
            {"type": "text", "text": "look"},
            {"type": "image", "data_base64": "aGk=", "mime_type": "image/png"},
            {"type": "file", "artifact_id": "art_1", "name": "a.pdf"},
            {"type": "audio", "data_base64": "aGk=", "mime_type": "audio/wav"},
            {"type": "video", "url": "https://example.com/v", "mime_type": "video/mp4"},
            {"type": "image", "data_base64": "aGk=", "mime_type": "image/gif", "name": "b.gif"},
            {"type": "file", "artifact_id": "art_2", "mime_type": "text/csv"},
            {"type": "text", "text": "and tell"},
        ])
    );
}

#[test]
fn results_of_the_clients_own_tools_are_an_event() {
    let made = event(json!([
        {"id": "1", "role": "user", "content": "open the door"},
        {"id": "2", "role": "assistant", "toolCalls": []},
        {"id": "3", "role": "tool", "toolCallId": "a", "content": "open"},
        {"id": "4", "role": "tool", "toolCallId": "b", "content": "", "error": "stuck"},
    ]));
    assert_eq!(made.event_type, "tool.result.received");
    assert_eq!(
        json!(made.data),
        json!({"results": [{"tool_call_id": "a", "content": "open", "message_id": "3"},
            {"tool_call_id": "b", "content": "", "error": "stuck", "message_id": "4"}]})
    );
}

#[test]
fn other_fields_go_to_the_runner_and_name_the_actor() {
    let mut sent = input(json!([{"id": "1", "role": "user", "content": "hi"}]));
    sent["state"] = json!({"a": 1});
    sent["context"] = json!([{"description": "page", "value": "home"}]);
    sent["tools"] = json!([{"name": "open", "description": "opens", "parameters": {}}]);
    sent["forwardedProps"] = json!({"x": 1, "actor": {"actor_id": "ann"}});
    let read = read(&sent).unwrap();
    let adapter = read.adapter();
    assert_eq!(adapter.name.as_deref(), Some("agui"));
    assert_eq!(
        Value::Object(adapter.extra),
        json!({"state": {"a": 1}, "context": [{"description": "page", "value": "home"}],
            "tools": [{"name": "open", "description": "opens", "parameters": {}}],
            "forwardedProps": {"x": 1, "actor": {"actor_id": "ann"}}})
    );
    let actor = read.event("default", "helper", "admin").unwrap().actor.unwrap();
    assert_eq!((actor.actor_type.as_str(), actor.actor_id.as_deref()), ("user", Some("ann")));
}

#[test]
fn the_profile_follows_the_protocol_version() {
    let mut sent = input(json!([]));
    assert_eq!(read(&sent).unwrap().profile(), Profile::Legacy);
    sent["protocolVersion"] = "1.0".into();
    assert_eq!(read(&sent).unwrap().profile(), Profile::One);
}

#[test]
fn invalid_inputs_are_rejected() {
    for sent in [
        json!([]),
        json!({}),
        json!({"threadId": "t", "runId": 1, "messages": []}),
        json!({"threadId": "t", "runId": "r", "messages": {}}),
        input(json!([1])),
        input(json!([{"id": "1", "role": "robot", "content": ""}])),
        input(json!([{"id": "", "role": "user", "content": ""}])),
        input(json!([{"id": "1", "role": "user"}])),
        input(json!([{"id": "1", "role": "user", "content": [{"type": "image"}]}])),
        input(json!([{"id": "1", "role": "user", "content": [{"type": "smell"}]}])),
        // Also in an earlier message, as the description of the interface says.
        input(json!([{"id": "1", "role": "user", "content": [{"type": "image", "source":
            {"type": "data", "value": "aGk="}}]}, {"id": "2", "role": "user", "content": "hi"}])),
        input(json!([{"id": "1", "role": "tool", "content": "x"}])),
    ] {
        assert!(read(&sent).is_err(), "{sent}");
    }
    for name in ["threadId", "runId"] {
        for id in ["", "a\u{0}b"] {
            let mut sent = input(json!([{"id": "1", "role": "user", "content": "hi"}]));
            sent[name] = id.into();
            assert!(read(&sent).is_err(), "{name} {id}");
        }
    }
    let mut sent = input(json!([]));
    sent["resume"] = json!([["apr_1.7", "resolved"]]);
    assert!(read(&sent).is_err());
    assert!(read(&input(json!([]))).unwrap().event("default", "helper", "admin").is_err());
    let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
    assert!(RunInput::parse(deep.as_bytes()).is_err());
}
