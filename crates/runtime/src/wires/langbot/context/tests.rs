//! The context that a plugin gets.

use super::*;
use serde_json::json;

fn context(changes: &[(&str, Value)]) -> AgentRunContext {
    let mut context = json!({
        "run_id": "r1",
        "trigger": {"type": "message.received", "source": "api"},
        "event": {"event_id": "e1", "event_type": "message.received", "event_time": 5, "source": "api"},
        "conversation": {"conversation_id": "c1"},
        "actor": {"actor_type": "user", "actor_id": "u1", "actor_name": "Ann"},
        "input": {"text": "hi"},
        "delivery": {"surface": "api"},
        "resources": {},
        "context": {"inline_policy": {"mode": "current_event"}, "available_apis": {"state": true}},
        "state": {},
        "runtime": {"trace_id": "r1"},
        "metadata": {"agent": "helper"},
    });
    for (key, value) in changes {
        context[*key] = value.clone();
    }
    serde_json::from_value(context).unwrap()
}

fn rendered(changes: &[(&str, Value)], dialect: Dialect) -> Value {
    let profile = RunnerProfile { dialect, ..RunnerProfile::default() };
    serde_json::to_value(LangbotContext::new(&context(changes), profile, "0.1.0")).unwrap()
}

#[test]
fn a_person_and_their_agent_are_launcher_sender_and_bot() {
    let told = rendered(&[], Dialect::Runner);
    let conversation = &told["conversation"];
    assert_eq!(conversation["launcher_type"], "person");
    assert_eq!(conversation["launcher_id"], "u1");
    assert_eq!(conversation["sender_id"], "u1");
    assert_eq!(conversation["session_id"], "person_u1");
    assert_eq!(conversation["bot_id"], "helper");
    assert_eq!(
        told["event"]["data"],
        json!({"type": "message.received", "timestamp": 5.0, "bot_uuid": "helper",
            "adapter_name": "api", "message_id": "e1",
            "message_chain": [{"type": "Plain", "text": "hi"}],
            "sender": {"id": "u1", "nickname": "Ann"}, "chat_type": "private", "chat_id": "u1"})
    );
}

#[test]
fn a_group_is_the_launcher_and_what_the_event_says_itself_stands() {
    let told = rendered(
        &[
            (
                "subject",
                json!({"subject_type": "group", "subject_id": "g1", "data": {"name": "All"}}),
            ),
            (
                "conversation",
                json!({"conversation_id": "c1", "bot_id": "b1", "launcher_id": "own"}),
            ),
        ],
        Dialect::Runner,
    );
    assert_eq!(told["conversation"]["launcher_type"], "group");
    assert_eq!(told["conversation"]["launcher_id"], "own");
    assert_eq!(told["conversation"]["bot_id"], "b1");
    assert_eq!(told["event"]["data"]["group"], json!({"id": "g1", "name": "All"}));
    assert_eq!(told["variables"]["group_name"], "All");
}

#[test]
fn typed_events_have_their_person_and_their_group() {
    let subject = json!({"subject_type": "group", "subject_id": "g1", "data": {"name": "All"}});
    let data = |kind: &str| {
        let event = json!({"event_id": "e1", "event_type": kind, "source": "api"});
        let told = rendered(&[("event", event), ("subject", subject.clone())], Dialect::Runner);
        told["event"]["data"].clone()
    };
    let (ann, all) = (json!({"id": "u1", "nickname": "Ann"}), json!({"id": "g1", "name": "All"}));
    let own = json!({"timestamp": 0.0, "bot_uuid": "helper", "adapter_name": "api"});
    for (kind, more) in [
        ("group.member_joined", json!({"member": ann, "group": all})),
        ("group.info_updated", json!({"group": all})),
        (
            "message.reaction",
            json!({"user": ann, "group": all, "chat_type": "group", "chat_id": "g1"}),
        ),
        ("friend.request_received", json!({"user": ann})),
        ("timer.fired", json!({})),
    ] {
        let mut expected = own.clone();
        expected["type"] = kind.into();
        let expected_data = expected.as_object_mut().unwrap();
        expected_data.extend(more.as_object().unwrap().clone());
        assert_eq!(data(kind), expected, "{kind}");
    }
}

#[test]
fn variables_are_never_null_where_langbot_has_a_value() {
    let trigger = json!({"type": "message.received", "source": "api", "timestamp": 9});
    let event = json!({"event_id": "e1", "event_type": "message.received", "source": "api"});
    let told = rendered(&[("trigger", trigger), ("event", event)], Dialect::AgentRunner);
    let variables = &told["adapter"]["extra"]["params"];
    assert_eq!(variables["group_name"], "");
    assert_eq!(variables["msg_create_time"], 9);
}

#[test]
fn attachments_are_spelled_for_each_dialect() {
    let input = json!({"text": "see", "contents": [{"type": "image", "artifact_id": "a1"}],
        "attachments": [{"artifact_id": "a1", "mime_type": "image/png", "size_bytes": 3}]});
    let changes = [("input", input)];
    let runner = rendered(&changes, Dialect::Runner);
    assert_eq!(runner["input"]["attachments"][0]["ref"], "a1");
    assert_eq!(
        runner["input"]["contents"],
        json!([{"type": "image_url", "image_url": {"url": "artifact:a1"}}])
    );
    let agent = rendered(&changes, Dialect::AgentRunner);
    assert_eq!(
        agent["input"]["attachments"],
        json!([{"id": "a1", "type": "image", "mime_type": "image/png", "size": 3, "name": null,
            "url": null, "content": null, "source": "artifact"}])
    );
}

#[test]
fn resources_and_apis_have_the_names_that_the_sdk_checks() {
    let told = rendered(
        &[(
            "resources",
            json!({
            "models": [{"model_id": "m", "operations": ["invoke", "stream", "embed"]},
                {"model_id": "v", "operations": ["embed"]}],
            "tools": [{"tool_name": "t", "source": "mcp", "operations": ["call"]}],
            "knowledge_bases": [{"kb_id": "k", "name": "Docs"}],
            "storage": {"plugin": true}}),
        )],
        Dialect::Runner,
    );
    let resources = &told["resources"];
    assert_eq!(resources["models"][0]["operations"], json!(["invoke", "stream", "count_tokens"]));
    assert_eq!(resources["models"][1]["operations"], json!(["invoke"]));
    assert_eq!(resources["tools"][0]["tool_type"], "mcp");
    assert_eq!(resources["knowledge_bases"][0]["kb_name"], "Docs");
    assert_eq!(resources["storage"]["plugin_storage"], true);
    assert_eq!(resources["storage"]["workspace_storage"], false);
    let apis = &told["context"]["available_apis"];
    assert_eq!((&apis["state"], &apis["run_get"]), (&json!(true), &json!(true)));
    assert_eq!((&apis["history_page"], &apis["run_finalize"]), (&json!(false), &json!(false)));
    assert_eq!(told["delivery"]["automatic_reply"], true);
}

#[test]
fn what_the_data_of_an_event_says_is_told_once_and_as_it_is() {
    let event = json!({"event_id": "e1", "event_type": "schedule.triggered", "event_time": null,
        "source": "cron", "raw_ref": null, "own": 1,
        "data": {"type": "mine", "chat_id": 7, "z": [1]}});
    let run = context(&[("event", event)]);
    let profile = RunnerProfile::default();
    let text = serde_json::to_string(&LangbotContext::new(&run, profile, "0.1.0")).unwrap();
    let told: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        told["event"],
        json!({"event_id": "e1", "event_type": "schedule.triggered", "event_time": null,
            "source": "cron", "source_event_type": null, "raw_ref": null, "own": 1,
            "data": {"type": "mine", "chat_id": 7, "z": [1], "timestamp": 0.0,
                "bot_uuid": "helper", "adapter_name": "cron"}})
    );
    assert_eq!(text.matches(r#""type":"mine""#).count(), 1);
}
