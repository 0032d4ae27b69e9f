//! What came of a tool call, as AG-UI carries it: text for the model, metadata and an activity for people.
//!
//! Invariant: nothing that is only for people is in the content, and no hint of how to show it in anything.

use super::event::Event;
use serde_json::{Value, json};

pub(crate) const ACTIVITY: &str = "a2ui-surface";

/// `tool_agent_output` without what is absent in it, and `ui_schema` if there is one.
pub(crate) fn metadata(mut metadata: Value) -> Value {
    let mut kept = json!({});
    if let Some(output) = metadata["tool_agent_output"].as_object_mut() {
        output.retain(|name, value| !value.is_null() && name != "ui_hints");
        kept["tool_agent_output"] = Value::Object(std::mem::take(output));
    }
    if metadata["ui_schema"].is_object() {
        kept["ui_schema"] = metadata["ui_schema"].take();
    }
    kept
}

/// The complete JSON text of the result, or of what went wrong.
pub(crate) fn content(output: &Value) -> String {
    match (&output["result"], &output["error"]) {
        (Value::Null, error) if !error.is_null() => {
            json!({"status": "failure", "error": error}).to_string()
        }
        (Value::String(text), _) => text.clone(),
        (result, _) => result.to_string(),
    }
}

/// The card beside a result.
pub(crate) fn activity(tool_call_id: &str, metadata: &Value) -> Option<Event> {
    let operations = surface(metadata)?;
    Some(Event::ActivitySnapshot {
        message_id: activity_id(tool_call_id),
        activity_type: ACTIVITY,
        content: json!({"a2ui_operations": operations}),
        replace: true,
    })
}

/// The same as a message of a snapshot.
pub(crate) fn activity_message(tool_call_id: &str, metadata: &Value) -> Option<Value> {
    let operations = surface(metadata)?;
    Some(json!({"id": activity_id(tool_call_id), "role": "activity", "activityType": ACTIVITY,
        "content": {"a2ui_operations": operations}}))
}

fn activity_id(tool_call_id: &str) -> String {
    format!("{ACTIVITY}-{tool_call_id}")
}

fn surface(metadata: &Value) -> Option<&Value> {
    metadata.get("ui_schema")?.get("operations").filter(|operations| operations.is_array())
}
