//! Tool results in AG-UI: content for the model, metadata and an activity for the user.
//!
//! Invariant: the content contains nothing that is meant for the user only; UI hints are sent nowhere.

use super::event::Event;
use greenroom_tools::ui::BASIC_CATALOGUES;
use serde_json::{Value, json};

pub(crate) const ACTIVITY: &str = "a2ui-surface";

/// `tool_agent_output` without null fields, and `ui_schema` if present, with the client's id of the catalogue.
pub(crate) fn metadata(mut metadata: Value, catalogue: &str) -> Value {
    let mut kept = json!({});
    if let Some(output) = metadata["tool_agent_output"].as_object_mut() {
        output.retain(|name, value| !value.is_null() && name != "ui_hints");
        kept["tool_agent_output"] = Value::Object(std::mem::take(output));
    }
    if metadata["ui_schema"].is_object() {
        kept["ui_schema"] = metadata["ui_schema"].take();
        let operations = kept["ui_schema"]["operations"].as_array_mut().into_iter().flatten();
        for surface in operations.filter_map(|operation| operation.get_mut("createSurface")) {
            if BASIC_CATALOGUES.iter().any(|basic| surface["catalogId"] == *basic) {
                surface["catalogId"] = catalogue.into();
            }
        }
    }
    kept
}

/// The complete JSON text of the result or error.
pub(crate) fn content(output: &Value) -> String {
    match (&output["result"], &output["error"]) {
        (Value::Null, error) if !error.is_null() => {
            json!({"status": "failure", "error": error}).to_string()
        }
        (Value::String(text), _) => text.clone(),
        (result, _) => result.to_string(),
    }
}

/// The card of a result, with the sub-agent that called.
pub(crate) fn activity(
    tool_call_id: &str,
    metadata: &Value,
    subagent_run_id: Option<String>,
) -> Option<Event> {
    let operations = surface(metadata)?;
    Some(Event::ActivitySnapshot {
        message_id: activity_id(tool_call_id),
        activity_type: ACTIVITY.to_owned(),
        content: json!({"a2ui_operations": operations}),
        replace: true,
        subagent_run_id,
    })
}

/// The card as a message of a snapshot.
pub(crate) fn activity_message(tool_call_id: &str, metadata: &Value) -> Option<Value> {
    let operations = surface(metadata)?;
    Some(json!({"id": activity_id(tool_call_id), "role": "activity", "activityType": ACTIVITY,
        "content": {"a2ui_operations": operations}}))
}

/// Whether an activity with this id is the card of a call.
pub(crate) fn is_card(message_id: &str) -> bool {
    message_id.strip_prefix(ACTIVITY).is_some_and(|rest| rest.starts_with('-'))
}

fn activity_id(tool_call_id: &str) -> String {
    format!("{ACTIVITY}-{tool_call_id}")
}

fn surface(metadata: &Value) -> Option<&Value> {
    metadata.get("ui_schema")?.get("operations").filter(|operations| operations.is_array())
}
