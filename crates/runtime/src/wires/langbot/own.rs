//! What a plugin is told about the plugins of the host: about itself, as LangBot describes plugins.
//!
//! Invariant: needs no run, since a plugin learns nothing that it did not register; other plugins are not listed.

use super::{commands, tools};
use serde_json::{Map, Value, json};

/// The answer to an action that lists plugins or their components, from the container of the plugin that asks.
pub(super) fn listed(action: &str, container: &Value) -> Option<Value> {
    let of_kind = |kind: &'static str| {
        let components = container["components"].as_array().into_iter().flatten();
        let components = components.map(|component| &component["manifest"]);
        components.filter(move |component| component["manifest"]["kind"] == kind)
    };
    Some(match action {
        "list_tools" => json!({"tools": of_kind(tools::KIND).map(flat).collect::<Value>()}),
        "list_commands" => {
            json!({"commands": of_kind(commands::KIND).cloned().collect::<Value>()})
        }
        "list_plugins_manifest" => json!({"plugins": [container["manifest"]]}),
        _ => return None,
    })
}

/// A component without the levels of its manifest, which only tools are listed in.
fn flat(component: &Value) -> Value {
    let manifest = &component["manifest"];
    let metadata = &manifest["metadata"];
    let text = |key: &str| metadata[key].as_str().unwrap_or_default();
    let description = match in_languages(&metadata["description"]) {
        Value::Null => json!({"en_US": ""}),
        description => description,
    };
    json!({"name": text("name"), "label": in_languages(&metadata["label"]), "description": description,
        "icon": text("icon"), "spec": manifest["spec"]})
}

/// A text in the languages that it has.
fn in_languages(text: &Value) -> Value {
    let Some(texts) = text.as_object() else { return Value::Null };
    let texts = texts.iter().filter(|(_, text)| text.is_string());
    Value::Object(
        texts.map(|(language, text)| (language.clone(), text.clone())).collect::<Map<_, _>>(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plugin_is_told_of_its_own_components() {
        let tool = json!({"owner": "a/b", "rel_path": "components/tools/add.yaml", "manifest": {
            "kind": "Tool", "metadata": {"name": "add", "label": {"en_US": "Add", "zh_Hans": null}},
            "spec": {"llm_prompt": "Adds.", "parameters": {}}}});
        let command = json!({"owner": "a/b", "rel_path": "components/commands/sum.yaml", "manifest": {
            "kind": "Command", "metadata": {"name": "sum"}, "spec": {}}});
        let plugin =
            json!({"owner": "a/b", "rel_path": "manifest.yaml", "manifest": {"kind": "Plugin"}});
        let container = json!({"manifest": plugin, "plugin_config": {"key": "secret"},
            "components": [{"manifest": tool}, {"manifest": command}]});
        let flat = json!({"name": "add", "label": {"en_US": "Add"}, "description": {"en_US": ""}, "icon": "",
            "spec": {"llm_prompt": "Adds.", "parameters": {}}});
        for (action, answer) in [
            ("list_tools", Some(json!({"tools": [flat]}))),
            ("list_commands", Some(json!({"commands": [command]}))),
            ("list_plugins_manifest", Some(json!({"plugins": [plugin]}))),
            ("get_bots", None),
        ] {
            assert_eq!(listed(action, &container), answer, "{action}");
        }
    }
}
