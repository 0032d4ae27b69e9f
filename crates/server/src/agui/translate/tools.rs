//! Tool calls: arguments, result and card.
//!
//! Invariant: a call id is unique among the client's messages; a result's content is the complete JSON text, and
//! what is meant for the user is only in its metadata and activity.

use super::Stream;
use super::messages::Messages;
use crate::agui::card;
use crate::agui::event::Event;
use greenroom_protocol::payload::{ToolCallCompleted, ToolCallStarted};
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};

#[derive(Debug)]
pub(super) struct Calls {
    /// The client's id by the runner's id.
    by_id: HashMap<String, String>,
    used: HashSet<String>,
    completed: HashSet<String>,
    /// The client's id of the catalogue of cards.
    catalogue: &'static str,
}

impl Calls {
    pub(super) fn new(messages: &[Value], stream: &Stream) -> Self {
        let prefix = format!("{}.", stream.run_id);
        let earlier = messages
            .iter()
            .filter(|message| !message["id"].as_str().unwrap_or_default().starts_with(&prefix));
        let calls = earlier.filter_map(|message| message["toolCalls"].as_array()).flatten();
        let used = calls.filter_map(|call| call["id"].as_str().map(str::to_owned)).collect();
        let (by_id, completed) = (HashMap::new(), HashSet::new());
        Self { by_id, used, completed, catalogue: stream.catalogue }
    }

    pub(super) fn client_id(&self, tool_call_id: &str) -> Option<String> {
        self.by_id.get(tool_call_id).cloned()
    }

    pub(super) fn started(
        &mut self,
        call: &ToolCallStarted,
        number: i64,
        messages: &mut Messages,
        out: &mut Vec<Event>,
    ) {
        let id = self.new_id(&call.tool_call_id, number);
        let arguments = match &call.parameters {
            Value::Null => "{}".to_owned(),
            parameters => parameters.to_string(),
        };
        let parent_message_id = messages.id(number);
        messages.push(json!({"id": parent_message_id, "role": "assistant", "toolCalls": [
            {"id": id, "type": "function",
                "function": {"name": call.tool_name, "arguments": arguments}}]}));
        let tool_call_name = call.tool_name.clone();
        out.push(Event::ToolCallStart {
            tool_call_id: id.clone(),
            tool_call_name,
            parent_message_id,
        });
        out.push(Event::ToolCallArgs { tool_call_id: id.clone(), delta: arguments });
        out.push(Event::ToolCallEnd { tool_call_id: id });
    }

    pub(super) fn completed(
        &mut self,
        call: &ToolCallCompleted,
        (number, recorded): (i64, Option<Value>),
        messages: &mut Messages,
        out: &mut Vec<Event>,
    ) {
        let recorded = recorded.unwrap_or_else(|| from_runner(call));
        let metadata = card::metadata(recorded, self.catalogue);
        let output = &metadata["tool_agent_output"];
        if !self.by_id.contains_key(&call.tool_call_id) {
            let parameters = output["tool_call_args"].clone();
            let (tool_call_id, tool_name) = (call.tool_call_id.clone(), call.tool_name.clone());
            let started = ToolCallStarted { tool_call_id, tool_name, parameters };
            self.started(&started, number, messages, out);
        }
        let Some(tool_call_id) = self.client_id(&call.tool_call_id) else { return };
        // A second result of one call is ignored.
        if !self.completed.insert(tool_call_id.clone()) {
            return;
        }
        let message_id = format!("{}.result", messages.id(number));
        let content = card::content(output);
        messages.push(json!({"id": message_id, "role": "tool", "toolCallId": tool_call_id,
            "content": content, "metadata": metadata}));
        let activity = card::activity(&tool_call_id, &metadata);
        let role = "tool";
        out.push(Event::ToolCallResult { message_id, tool_call_id, role, content, metadata });
        out.extend(activity);
    }

    /// An id that the client does not use yet.
    fn new_id(&mut self, tool_call_id: &str, number: i64) -> String {
        let id = match self.used.contains(tool_call_id) {
            true => format!("{tool_call_id}.{number}"),
            false => tool_call_id.to_owned(),
        };
        self.used.insert(id.clone());
        self.by_id.insert(tool_call_id.to_owned(), id.clone());
        id
    }
}

/// A call that the runner executed itself, as it reports it.
fn from_runner(call: &ToolCallCompleted) -> Value {
    let status = if call.error.is_null() { "success" } else { "failure" };
    json!({"tool_agent_output": {"tool_name": call.tool_name, "tool_call_id": call.tool_call_id,
        "status": status, "result": call.result, "error": call.error}})
}
