//! `Tool` components of a plugin as tools of the host.
//!
//! Invariant: a tool is described as its manifest says; what it returns is its result, whatever its type.

use crate::tools::PluginToolCall;
use greenroom_protocol::wire::CallToolResult;
use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

pub(super) const KIND: &str = "Tool";

/// A component as `list_tools` would describe it; LangBot knows no risks, so it has the highest.
pub(super) fn described(manifest: &Value) -> Value {
    let (metadata, spec) = (&manifest["metadata"], &manifest["spec"]);
    let text = |text: &Value| text.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    let description = text(&spec["llm_prompt"])
        .or_else(|| text(&metadata["description"]["en_US"]))
        .or_else(|| text(&metadata["description"]));
    let mut schema = match &spec["parameters"] {
        Value::Object(schema) => schema.clone(),
        _ => serde_json::Map::new(),
    };
    schema.entry("type").or_insert_with(|| "object".into());
    json!({"name": metadata["name"], "description": description, "input_schema": schema})
}

/// The data of the action `call_tool`.
pub(in crate::wires) fn params(call: &PluginToolCall) -> Box<RawValue> {
    let caller = &call.caller;
    let launcher = caller.actor_id.as_ref().or(caller.conversation_id.as_ref());
    let launcher = launcher.or(call.run_id.as_ref()).map_or("", String::as_str);
    let session = json!({"launcher_type": "person", "launcher_id": launcher,
        "sender_id": caller.actor_id.as_deref().unwrap_or_default()});
    let data = json!({"tool_name": call.tool_name, "tool_parameters": call.parameters,
        "session": session, "query_id": 0, "query_uuid": call.run_id});
    to_raw_value(&data).expect("JSON values are JSON")
}

/// Text is for the model; anything else is the result itself.
pub(in crate::wires) fn answer(answer: &RawValue) -> serde_json::Result<CallToolResult> {
    #[derive(Deserialize)]
    struct Answer {
        tool_response: Value,
    }
    let Answer { tool_response } = serde_json::from_str(answer.get())?;
    Ok(match tool_response {
        Value::String(text) => CallToolResult { content: Some(text), ..CallToolResult::default() },
        result => CallToolResult { result, ..CallToolResult::default() },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use greenroom_protocol::wire::{PluginTool, ToolRisk};

    #[test]
    fn a_component_is_described_as_a_tool_of_the_highest_risk() {
        let manifest = json!({"kind": "Tool", "metadata": {"name": "weather",
                "description": {"en_US": "Shown to people", "zh_Hans": "给人看"}},
            "spec": {"llm_prompt": "Looks the weather up.", "parameters": {
                "properties": {"city": {"type": "string"}}, "required": ["city"]}}});
        let tool = PluginTool::parse(&described(&manifest).to_string()).unwrap();
        assert_eq!(tool.name, "weather");
        assert_eq!(tool.description.as_deref(), Some("Looks the weather up."));
        assert_eq!(tool.input_schema["type"], "object");
        assert_eq!(tool.input_schema["required"], json!(["city"]));
        assert_eq!(tool.risk, ToolRisk::External);
        let bare = json!({"metadata": {"name": "now"}, "spec": {"parameters": null}});
        let tool = PluginTool::parse(&described(&bare).to_string()).unwrap();
        assert_eq!((tool.description, tool.input_schema["type"].as_str()), (None, Some("object")));
    }

    #[test]
    fn what_a_tool_returns_is_its_result() {
        let read = |data: Value| answer(&to_raw_value(&data).unwrap());
        let text = read(json!({"tool_response": "sunny"})).unwrap();
        assert_eq!((text.content.as_deref(), text.result), (Some("sunny"), Value::Null));
        let list = read(json!({"tool_response": [1, 2]})).unwrap();
        assert_eq!((list.content, list.result), (None, json!([1, 2])));
        assert!(read(json!({"other": 1})).is_err());
    }
}
