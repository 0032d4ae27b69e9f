//! What a container becomes.

use super::*;
use greenroom_protocol::AgentRunnerManifest;
use greenroom_protocol::manifest::ModelPermission;

fn container(components: Value) -> Value {
    json!({"manifest": {"owner": "builtin", "rel_path": "manifest.yaml", "manifest": {
        "kind": "Plugin", "metadata": {"author": "acme", "name": "bot", "version": "0.2.0"}}},
        "status": "initialized", "components": components})
}

fn component(kind: &str, spec: Value) -> Value {
    json!({"component_config": {}, "manifest": {"owner": "builtin", "rel_path": "x.yaml", "manifest": {
        "kind": kind, "metadata": {"name": "main", "label": {"en_US": "Bot", "zh_Hans": null},
            "description": {"en_US": "Answers"}}, "spec": spec}}})
}

fn manifest(kind: &str, spec: Value) -> AgentRunnerManifest {
    let sdk = if kind == "Runner" { "0.7.18" } else { "0.5.3" };
    let found = contents(&container(json!([component(kind, spec)])), Some(sdk)).unwrap();
    serde_json::from_value(found.manifests[0].clone()).unwrap()
}

#[test]
fn a_runner_of_dialect_b_becomes_a_manifest_of_ours() {
    let spec = json!({"usages": ["agent"],
        "capabilities": {"streaming": true, "multimodal_input": true, "interactions": false},
        "permissions": {"models": ["invoke", "stream", "count_tokens"], "tools": ["call"],
            "storage": ["plugin"], "interactions": []},
        "config": [{"type": "select", "name": "tone", "options": [{"name": "calm"}]}]});
    let ours = serde_json::to_value(manifest("Runner", spec)).unwrap();
    assert_eq!(ours["id"], "plugin:acme/bot/main");
    assert_eq!(ours["label"], json!({"en_US": "Bot"}));
    assert_eq!(ours["protocol_version"], "1");
    assert_eq!(ours["capabilities"]["streaming"], true);
    assert_eq!(ours["permissions"]["models"], json!(["embed", "invoke", "stream"]));
    assert_eq!(ours["permissions"]["artifacts"], json!(["metadata", "read"]));
    assert_eq!(ours["config_schema"][0]["label"], "tone");
    assert_eq!(ours["config_schema"][0]["options"], json!([{"name": "calm", "label": "calm"}]));
    assert_eq!(
        ours["metadata"],
        json!({"wire": "langbot", "dialect": "Runner", "sdk_version": "0.7.18", "usages": ["agent"]})
    );
}

#[test]
fn a_runner_of_dialect_a_keeps_what_it_asks_for() {
    let spec = json!({"protocol_version": "1", "context": {"supports_history_pull": true},
        "permissions": {"models": ["invoke", "count_tokens"], "artifacts": ["read"]}});
    let ours = manifest("AgentRunner", spec);
    assert_eq!(ours.permissions.models, [ModelPermission::Embed, ModelPermission::Invoke]);
    assert_eq!(ours.permissions.artifacts.len(), 1);
    assert_eq!(ours.metadata["dialect"], "AgentRunner");
}

#[test]
fn an_unknown_operation_is_left_out_and_told_instead_of_taking_the_runner_away() {
    for kind in ["Runner", "AgentRunner"] {
        let spec = json!({"usages": ["agent"], "permissions": {"models": ["invoke", "dream"]}});
        let found = contents(&container(json!([component(kind, spec)])), None).unwrap();
        let ours: AgentRunnerManifest = serde_json::from_value(found.manifests[0].clone()).unwrap();
        assert_eq!(ours.permissions.models.len(), 2);
        let warning = "`main` asks for `models: dream`, which this host does not know";
        assert_eq!(found.warnings, [warning]);
    }
}

#[test]
fn a_component_that_its_sdk_cannot_run_is_no_runner() {
    let older = component("AgentRunner", json!({}));
    let error = contents(&container(json!([older.clone()])), Some("0.7.18")).unwrap_err();
    assert!(error.starts_with("offers no runner: its SDK cannot run `main`"), "{error}");
    let both = json!([older, component("Runner", json!({"usages": ["agent"]}))]);
    let found = contents(&container(both), Some("0.7.18")).unwrap();
    assert_eq!((found.manifests.len(), found.warnings.len()), (1, 1));
}

#[test]
fn a_plugin_without_any_use_or_without_a_name_is_told_so() {
    let error = contents(&container(json!([component("Page", json!({}))])), None).unwrap_err();
    assert!(error.starts_with("offers no component of a kind that this host supports"), "{error}");
    let error = contents(&json!({"components": []}), None).unwrap_err();
    assert_eq!(error, "has no `metadata.author` and `metadata.name` in its manifest");
    let both =
        json!([component("Parser", json!({})), component("Runner", json!({"usages": ["agent"]}))]);
    let found = contents(&container(both), None).unwrap();
    assert_eq!(found.warnings, ["components of the kinds `Parser` are not used by this host"]);
}

#[test]
fn a_plugin_of_tools_alone_offers_them() {
    let tool = component("Tool", json!({"llm_prompt": "Adds.", "parameters": {}}));
    let found = contents(&container(json!([tool])), None).unwrap();
    let names: Vec<&str> = found.tools.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!((names, found.manifests.len()), (vec!["main"], 0));
}

#[test]
fn commands_are_one_runner_unless_its_name_is_taken() {
    let command = component("Command", json!(null));
    let found = contents(&container(json!([command.clone()])), Some("0.7.18")).unwrap();
    let ours: AgentRunnerManifest = serde_json::from_value(found.manifests[0].clone()).unwrap();
    assert_eq!(ours.id.as_str(), "plugin:acme/bot/commands");
    assert_eq!(ours.metadata["commands"], json!(["main"]));
    assert_eq!(ours.metadata["dialect"], "Command");
    assert!(found.profiles["commands"].is_commands);
    let mut runner = component("Runner", json!({"usages": ["agent"]}));
    runner["manifest"]["manifest"]["metadata"]["name"] = "commands".into();
    let found = contents(&container(json!([command, runner])), Some("0.7.18")).unwrap();
    assert_eq!((found.manifests.len(), found.profiles["commands"].is_commands), (1, false));
    assert_eq!(found.warnings, ["its commands are not offered: it has a runner called `commands`"]);
}

#[test]
fn settings_get_the_defaults_of_the_form_and_mistakes_are_named() {
    let mut container = container(json!([]));
    container["manifest"]["manifest"]["spec"]["config"] = json!([
        {"name": "key", "type": "string", "required": true},
        {"name": "size", "type": "integer", "default": 3},
    ]);
    let given = json!({"siez": 4});
    let (filled, warnings) = settings(&container, given.as_object().unwrap());
    assert_eq!(Value::Object(filled), json!({"siez": 4, "size": 3}));
    assert_eq!(warnings, ["`siez` is not a setting of the plugin", "`key` is required and empty"]);
}
