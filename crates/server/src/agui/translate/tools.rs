//! Tool calls: arguments, result and card.
//!
//! Invariant: a call is started once and its arguments end once; arguments that differ from the pieces that were sent are
//! corrected by a snapshot. A call id is unique among the client's messages; a result's content is the complete JSON text, and
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
    /// The arguments so far of calls whose arguments come in pieces, by the runner's id.
    pieces: HashMap<String, String>,
    /// Started calls without a result, in order.
    pending: Vec<String>,
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
        Self {
            by_id: HashMap::new(),
            used,
            completed: HashSet::new(),
            pieces: HashMap::new(),
            pending: Vec::new(),
            catalogue: stream.catalogue,
        }
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
        let arguments = match &call.parameters {
            Value::Null => "{}".to_owned(),
            parameters => parameters.to_string(),
        };
        if let Some(sent) = self.pieces.remove(&call.tool_call_id) {
            return self.end_pieces(call, (&sent, &arguments), messages, out);
        }
        let id = self.begin((&call.tool_call_id, &call.tool_name), number, messages, out);
        messages.set_arguments(&id, &arguments);
        out.push(Event::ToolCallArgs { tool_call_id: id.clone(), delta: arguments });
        out.push(Event::ToolCallEnd { tool_call_id: id });
    }

    /// A piece of the arguments, before the call is carried out.
    pub(super) fn piece(
        &mut self,
        (call_id, name, text): (&str, &str, &str),
        number: i64,
        messages: &mut Messages,
        out: &mut Vec<Event>,
    ) {
        if !self.pieces.contains_key(call_id) {
            // The arguments of this call are complete.
            if self.by_id.contains_key(call_id) {
                return;
            }
            self.begin((call_id, name), number, messages, out);
            self.pieces.insert(call_id.to_owned(), String::new());
        }
        let (Some(id), Some(sent)) = (self.by_id.get(call_id), self.pieces.get_mut(call_id)) else {
            return;
        };
        sent.push_str(text);
        messages.set_arguments(id, sent);
        if !text.is_empty() {
            out.push(Event::ToolCallArgs { tool_call_id: id.clone(), delta: text.to_owned() });
        }
    }

    /// The call whose arguments came in pieces is carried out, perhaps with corrected ones.
    fn end_pieces(
        &mut self,
        call: &ToolCallStarted,
        (sent, arguments): (&str, &str),
        messages: &mut Messages,
        out: &mut Vec<Event>,
    ) {
        let Some(id) = self.client_id(&call.tool_call_id) else { return };
        out.push(Event::ToolCallEnd { tool_call_id: id.clone() });
        let is_same = serde_json::from_str::<Value>(sent).is_ok_and(|sent| sent == call.parameters);
        if !is_same && sent != arguments {
            messages.set_arguments(&id, arguments);
            out.push(messages.snapshot());
        }
    }

    /// Takes back calls that were never carried out: nobody answers them.
    pub(super) fn close(&mut self, messages: &mut Messages, out: &mut Vec<Event>) {
        let ids = self.pieces.drain().filter_map(|(call_id, _)| self.by_id.remove(&call_id));
        let mut open: Vec<String> = ids.collect();
        if open.is_empty() {
            return;
        }
        open.sort();
        self.pending.retain(|id| !open.contains(id));
        open.iter().for_each(|id| messages.remove_call(id));
        out.extend(open.into_iter().map(|tool_call_id| Event::ToolCallEnd { tool_call_id }));
        out.push(messages.snapshot());
    }

    /// Forgets the calls of an earlier attempt.
    pub(super) fn clear(&mut self) {
        self.pending.clear();
    }

    /// The calls without a result: the client's own.
    pub(super) fn pending(&self) -> Vec<String> {
        self.pending.clone()
    }

    fn begin(
        &mut self,
        (call_id, name): (&str, &str),
        number: i64,
        messages: &mut Messages,
        out: &mut Vec<Event>,
    ) -> String {
        let id = self.new_id(call_id, number);
        self.pending.push(id.clone());
        let parent_message_id = messages.id(number);
        let author = messages.author.clone();
        messages.push(json!({"id": parent_message_id, "role": "assistant", "toolCalls": [
            {"id": id, "type": "function", "function": {"name": name, "arguments": ""}}]}));
        let tool_call_name = name.to_owned();
        out.push(Event::ToolCallStart {
            tool_call_id: id.clone(),
            tool_call_name,
            parent_message_id,
            subagent_run_id: author,
        });
        id
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
        self.pending.retain(|id| *id != tool_call_id);
        let message_id = format!("{}.result", messages.id(number));
        let content = card::content(output);
        messages.push(json!({"id": message_id, "role": "tool", "toolCallId": tool_call_id,
            "content": content, "metadata": metadata}));
        let activity = card::activity(&tool_call_id, &metadata, messages.author.clone());
        out.push(Event::ToolCallResult {
            message_id,
            tool_call_id,
            role: "tool",
            content,
            metadata,
            subagent_run_id: messages.author.clone(),
        });
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
