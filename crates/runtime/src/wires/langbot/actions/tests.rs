//! What each action asks the host for, and what becomes of the answer.

use super::*;
use crate::wires::langbot::Dialect;
use greenroom_protocol::api::Method;

/// Methods of the host beside those of the native wire, for this wire alone.
const EXTRA: [&str; 9] = [
    "langbot.get_prompt",
    "langbot.get_config_file",
    "langbot.history_page",
    "langbot.run_get",
    "langbot.run_list",
    "langbot.run_events_page",
    "langbot.run_cancel",
    "langbot.run_append_result",
    "langbot.run_finalize",
];

fn asks(action: &str, data: Value) -> (&'static str, Value) {
    let asked = translate(action, &data).unwrap();
    (asked.method, asked.params)
}

fn answered(action: &str, data: Value, answer: Value) -> Result<Value, AgentAPIError> {
    let caller = Caller {
        run_id: "r1".to_owned(),
        runner_id: "plugin:acme/bot/main".to_owned(),
        dialect: Dialect::Runner,
    };
    render(&translate(action, &data).unwrap().reply, &caller, &answer)
}

#[test]
fn every_action_of_the_table_is_a_method_that_the_host_has() {
    let actions = [
        "invoke_llm",
        "invoke_llm_stream",
        "invoke_rerank",
        "invoke_embedding",
        "count_tokens",
        "get_tool_detail",
        "call_tool",
        "retrieve_knowledge_base",
        "get_prompt",
        "history_page",
        "history_search",
        "event_get",
        "event_page",
        "artifact_metadata",
        "artifact_read",
        "state_get",
        "state_set",
        "state_delete",
        "state_list",
        "set_plugin_storage",
        "get_plugin_storage",
        "delete_plugin_storage",
        "get_plugin_storage_keys",
        "set_workspace_storage",
        "get_workspace_storage",
        "delete_workspace_storage",
        "get_workspace_storage_keys",
        "get_config_file",
        "steering_pull",
        "run_get",
        "run_cancel",
        "run_list",
        "run_events_page",
        "run_append_result",
        "run_finalize",
        "call_platform_api",
    ];
    for action in actions {
        let (method, _) = asks(action, json!({}));
        assert!(Method::parse(method).is_some() || EXTRA.contains(&method), "{action}: {method}");
    }
}

#[test]
fn an_action_that_nobody_knows_is_refused_by_name() {
    for action in ["acquire_box", "reply_stream", "get_*", "", "plugin_storage"] {
        let error = translate(action, &json!({})).unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidArgument);
        assert_eq!(error.details["reason"], "unknown_action");
        assert!(error.message.contains(action));
    }
}

#[test]
fn names_of_models_tools_and_storage_are_ours() {
    assert_eq!(
        asks(
            "invoke_llm",
            json!({"run_id": "r1", "llm_model_uuid": "m", "timeout": 5,
            "messages": [{"role": "user", "content": "hi"}], "extra_args": {"temperature": 0},
            "funcs": [{"name": "add", "human_desc": "x", "description": "adds", "parameters": {}}]})
        ),
        (
            "models.invoke",
            json!({"model_id": "m", "extra_args": {"temperature": 0},
            "messages": [{"role": "user", "content": "hi"}],
            "tools": [{"name": "add", "description": "adds", "parameters": {}}]})
        )
    );
    assert_eq!(
        asks("set_plugin_storage", json!({"key": "k", "value_base64": "aGk="})),
        ("storage.set", json!({"area": "plugin", "key": "k", "value": "aGk="}))
    );
    assert_eq!(
        asks("get_workspace_storage_keys", json!({})),
        ("storage.list", json!({"area": "workspace"}))
    );
    assert_eq!(
        asks("artifact_read", json!({"artifact_id": "a", "offset": 4, "limit": 8})),
        ("artifacts.read_range", json!({"artifact_id": "a", "offset": 4, "length": 8}))
    );
}

#[test]
fn what_is_null_is_not_asked_for_except_as_a_value() {
    assert_eq!(
        asks(
            "history_page",
            json!({"conversation_id": null, "before_cursor": null, "limit": 5,
            "direction": "backward", "include_attachments": true})
        ),
        (
            "langbot.history_page",
            json!({"limit": 5, "direction": "backward", "include_artifacts": true})
        )
    );
    assert_eq!(
        asks("state_set", json!({"scope": "actor", "key": "k", "value": null})),
        ("state.set", json!({"scope": "actor", "key": "k", "value": null}))
    );
    assert_eq!(asks("steering_pull", json!({"mode": "one", "limit": 9})).1, json!({"limit": 1}));
    assert_eq!(asks("steering_pull", json!({"mode": "all", "limit": null})).1, json!({}));
}

#[test]
fn answers_have_the_shapes_of_the_table() {
    let told =
        |action: &str, answer: Value| answered(action, json!({"query": "q"}), answer).unwrap();
    assert_eq!(told("state_set", json!({"version": 3})), json!({"success": true}));
    assert_eq!(told("state_delete", json!({"deleted": false})), json!({"success": false}));
    assert_eq!(
        told("state_list", json!({"items": [{"key": "a"}], "has_more": true})),
        json!({"keys": ["a"], "has_more": true})
    );
    assert_eq!(told("set_plugin_storage", json!({"size_bytes": 2})), json!({}));
    assert_eq!(
        told("get_plugin_storage", json!({"data_base64": "aGk="})),
        json!({"value_base64": "aGk="})
    );
    assert_eq!(
        told(
            "retrieve_knowledge_base",
            json!({"items": [
            {"content": "x", "score": 0.75, "metadata": {"id": "d1"}}]})
        )["results"][0]["distance"],
        0.25
    );
    let found = told("history_search", json!({"items": []}));
    assert_eq!((&found["total_count"], &found["query"]), (&json!(0), &json!("q")));
}

#[test]
fn a_tool_gives_an_object_or_an_error() {
    let told = |answer: Value| answered("call_tool", json!({}), answer);
    assert_eq!(told(json!({"result": {"a": 1}})).unwrap(), json!({"result": {"a": 1}}));
    let said = json!([{"type": "text", "text": "pong"}]);
    assert_eq!(told(json!({"result": {"content": said}})).unwrap(), json!({"result": said}));
    let more = json!({"content": said, "count": 1});
    assert_eq!(told(json!({"result": more})).unwrap(), json!({"result": more}));
    assert_eq!(told(json!({"result": [1]})).unwrap(), json!({"result": {"result": [1]}}));
    let failed = told(json!({"result": null, "error": {"code": "X", "message": "broke"}}));
    let failed = failed.unwrap_err();
    assert_eq!((failed.code, failed.message.as_str()), (ErrorCode::RuntimeError, "broke"));
    assert_eq!(failed.details["tool_error"]["code"], "X");
    let code =
        |code: &str| told(json!({"error": {"code": code, "message": "no"}})).unwrap_err().code;
    assert_eq!(code("METHOD_NOT_ALLOWED"), ErrorCode::Unauthorized);
    assert_eq!(code("INVALID_ACTION_INPUT"), ErrorCode::InvalidArgument);
}

#[test]
fn a_key_that_is_not_there_is_not_found() {
    let missing = answered("get_plugin_storage", json!({}), json!({"data_base64": null}));
    assert_eq!(missing.unwrap_err().code, ErrorCode::NotFound);
}

#[test]
fn a_reasoning_level_is_an_option_of_the_model() {
    let level = |level: Value| {
        asks("invoke_llm", json!({"llm_model_uuid": "m", "messages": [], "reasoning_level": level}))
            .1["extra_args"]
            .clone()
    };
    assert_eq!(level("low".into()), json!({"reasoning": "low"}));
    assert_eq!(level("disabled".into()), json!({"reasoning": "none"}));
    assert_eq!(level("max".into()), json!({"reasoning": "high"}));
    assert_eq!(level("provider_default".into()), Value::Null);
    assert_eq!(level(Value::Null), Value::Null);
}
