//! Translates a plugin's container to manifests of its runners.
//!
//! Invariant: a component that is not a runner offers nothing and is named in a warning. Permissions are
//! translated, never widened.

use super::{Dialect, RunnerProfile};
use greenroom_protocol::wire::PluginIdentity;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// The contents of a container.
#[derive(Debug)]
pub(crate) struct Contents {
    pub(crate) plugin: PluginIdentity,
    /// Manifests in our form, unchecked.
    pub(crate) manifests: Vec<Value>,
    /// The profile of each runner, by name.
    pub(crate) profiles: BTreeMap<String, RunnerProfile>,
    pub(crate) warnings: Vec<String>,
}

/// The identity that the plugin declares, or a clause that says what is missing.
pub(crate) fn identity(container: &Value) -> Result<PluginIdentity, String> {
    let metadata = &container["manifest"]["manifest"]["metadata"];
    let text = |key: &str| metadata[key].as_str().unwrap_or_default().to_owned();
    let plugin =
        PluginIdentity { author: text("author"), name: text("name"), version: text("version") };
    match plugin.author.is_empty() || plugin.name.is_empty() {
        true => Err("has no `metadata.author` and `metadata.name` in its manifest".to_owned()),
        false => Ok(plugin),
    }
}

/// Reads a container; `sdk_version` is added to every runner.
pub(crate) fn contents(container: &Value, sdk_version: Option<&str>) -> Result<Contents, String> {
    let plugin = identity(container)?;
    let mut found =
        Contents { plugin, manifests: Vec::new(), profiles: BTreeMap::new(), warnings: Vec::new() };
    let mut others = BTreeSet::new();
    let mut unrunnable = Vec::new();
    for component in container["components"].as_array().into_iter().flatten() {
        let manifest = &component["manifest"]["manifest"];
        let kind = manifest["kind"].as_str().unwrap_or_default();
        let Some(dialect) = Dialect::of_kind(kind) else {
            others.insert(kind.to_owned());
            continue;
        };
        let name = manifest["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        if !can_run(dialect, sdk_version) {
            unrunnable.push(format!(
                "its SDK cannot run `{name}`, an `AgentRunner`: install one that can, with `runner add --sdk`"
            ));
            continue;
        }
        let (permissions, unknown) = permissions(&manifest["spec"]);
        for operation in unknown {
            let warning = format!("`{name}` asks for `{operation}`, which this host does not know");
            found.warnings.push(warning);
        }
        let about = RunnerAbout { dialect, sdk_version, permissions };
        found.manifests.push(runner(manifest, &found.plugin, about));
        let mut usages = manifest["spec"]["usages"].as_array().into_iter().flatten();
        let replies = dialect == Dialect::Runner && usages.any(|usage| usage == "event");
        found.profiles.insert(name, RunnerProfile { dialect, replies });
    }
    if !others.is_empty() {
        let others: Vec<String> = others.into_iter().map(|kind| format!("`{kind}`")).collect();
        let others = others.join(", ");
        found.warnings.push(format!("components of the kinds {others} are not used by this host"));
    }
    let first = unrunnable.first().cloned();
    found.warnings.append(&mut unrunnable);
    match found.manifests.is_empty() {
        true if first.is_some() => Err(format!("offers no runner: {}", first.unwrap_or_default())),
        true => Err("offers no component of the kind `Runner` or `AgentRunner`".to_owned()),
        false => Ok(found),
    }
}

/// Published SDKs are of version 0.6 and later and have one dialect alone.
fn can_run(dialect: Dialect, sdk_version: Option<&str>) -> bool {
    let mut numbers =
        sdk_version.unwrap_or_default().split('.').map(|part| part.parse::<u32>().unwrap_or(0));
    let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    dialect == Dialect::Runner || version < (0, 6)
}

struct RunnerAbout<'a> {
    dialect: Dialect,
    sdk_version: Option<&'a str>,
    permissions: Value,
}

fn runner(manifest: &Value, plugin: &PluginIdentity, about: RunnerAbout<'_>) -> Value {
    let RunnerAbout { dialect, sdk_version, permissions } = about;
    let (metadata, spec) = (&manifest["metadata"], &manifest["spec"]);
    let name = metadata["name"].as_str().unwrap_or_default();
    let mut about = Map::new();
    about.insert("wire".to_owned(), "langbot".into());
    about.insert("dialect".to_owned(), dialect.kind().into());
    about.extend(sdk_version.map(|version| ("sdk_version".to_owned(), version.into())));
    for key in ["usages", "events", "supported_event_patterns"] {
        if !spec[key].is_null() {
            about.insert(key.to_owned(), spec[key].clone());
        }
    }
    let mut ours = json!({
        "id": format!("plugin:{}/{name}", plugin.path()),
        "name": name,
        "label": text_or(&metadata["label"], name),
        "capabilities": object_or_empty(&spec["capabilities"]),
        "permissions": permissions,
        "config_schema": form(&spec["config"]),
        "metadata": about,
    });
    if has_text(&metadata["description"]) {
        ours["description"] = metadata["description"].clone();
    }
    for key in ["protocol_version", "context"] {
        if !spec[key].is_null() {
            ours[key] = spec[key].clone();
        }
    }
    ours
}

/// One of LangBot's operations, and ours.
type Meaning = (&'static str, &'static [&'static str]);

/// The operations that a permission of ours may name, and what LangBot's mean: both dialects count tokens under
/// a name of its own and embed under `invoke`.
const OPERATIONS: [(&str, &[Meaning]); 7] = [
    (
        "models",
        &[
            ("invoke", &["invoke", "embed"]),
            ("stream", &["stream"]),
            ("rerank", &["rerank"]),
            ("embed", &["embed"]),
            ("count_tokens", &["invoke"]),
        ],
    ),
    ("tools", &[("detail", &["detail"]), ("call", &["call"])]),
    ("knowledge_bases", &[("list", &["list"]), ("retrieve", &["retrieve"])]),
    ("history", &[("page", &["page"]), ("search", &["search"])]),
    ("events", &[("get", &["get"]), ("page", &["page"])]),
    (
        "storage",
        &[("plugin", &["plugin"]), ("workspace", &["workspace"]), ("binding", &["binding"])],
    ),
    ("artifacts", &[("metadata", &["metadata"]), ("read", &["read"]), ("create", &["create"])]),
];
/// State is no matter of `storage` there: every runner has it that its binding gives it.
const STATE: [&str; 5] = ["conversation", "actor", "subject", "runner", "binding"];

/// What a component asks for, and the operations that this host does not know.
fn permissions(spec: &Value) -> (Value, Vec<String>) {
    let mut permissions = object_or_empty(&spec["permissions"]);
    let mut unknown = Vec::new();
    for (key, known) in OPERATIONS {
        let Some(asked) = permissions[key].as_array() else { continue };
        let mut operations = BTreeSet::new();
        for operation in asked {
            let operation = operation.as_str().unwrap_or_default();
            match known.iter().find(|(theirs, _)| *theirs == operation) {
                Some((_, ours)) => operations.extend(ours.iter().copied()),
                None => unknown.push(format!("{key}: {operation}")),
            }
        }
        permissions[key] = operations.into_iter().collect();
    }
    if spec["capabilities"]["multimodal_input"] == true {
        permissions["artifacts"] = json!(["metadata", "read"]);
    }
    permissions["state"] = json!(STATE);
    if let Some(permissions) = permissions.as_object_mut() {
        permissions.retain(|key, value| {
            !value.is_null() && (key != "interactions" || *value != json!([]))
        });
    }
    (permissions, unknown)
}

/// Form items with the label that ours must have.
fn form(config: &Value) -> Value {
    let items = config.as_array().map_or(&[][..], Vec::as_slice);
    let item = |item: &Value| {
        let mut ours = item.clone();
        if ours.is_object() {
            let name = item["name"].as_str().unwrap_or_default();
            ours["label"] = text_or(&item["label"], name);
            if !has_text(&item["description"]) {
                ours.as_object_mut().map(|ours| ours.remove("description"));
            }
            ours["required"] = item["required"].as_bool().unwrap_or_default().into();
            let options = item["options"].as_array().into_iter().flatten();
            ours["options"] = options.map(option).collect();
        }
        ours
    };
    items.iter().map(item).collect()
}

fn option(option: &Value) -> Value {
    let mut ours = option.clone();
    if let Some(word) = option.as_str() {
        return json!({"name": word, "label": word});
    }
    if ours.is_object() {
        let name = option["name"].as_str().or(option["value"].as_str()).unwrap_or_default();
        ours["label"] = text_or(&option["label"], name);
        ours["name"] = name.into();
    }
    ours
}

fn text_or(text: &Value, otherwise: &str) -> Value {
    if has_text(text) { text.clone() } else { otherwise.into() }
}

fn has_text(text: &Value) -> bool {
    text.is_string() || text.as_object().is_some_and(|texts| texts.values().any(Value::is_string))
}

fn object_or_empty(value: &Value) -> Value {
    if value.is_object() { value.clone() } else { json!({}) }
}

#[cfg(test)]
mod tests {
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
            let ours: AgentRunnerManifest =
                serde_json::from_value(found.manifests[0].clone()).unwrap();
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
    fn a_plugin_without_runners_or_without_a_name_is_told_so() {
        let error = contents(&container(json!([component("Tool", json!({}))])), None).unwrap_err();
        assert_eq!(error, "offers no component of the kind `Runner` or `AgentRunner`");
        let error = contents(&json!({"components": []}), None).unwrap_err();
        assert_eq!(error, "has no `metadata.author` and `metadata.name` in its manifest");
        let both = json!([
            component("Tool", json!({})),
            component("Runner", json!({"usages": ["agent"]}))
        ]);
        let found = contents(&container(both), None).unwrap();
        assert_eq!(found.warnings, ["components of the kinds `Tool` are not used by this host"]);
    }
}
