//! Events of a streamed response.
//!
//! Invariant: streamed content is not emitted again when its item or the whole response repeats it.

use super::WIRE;
use crate::ModelError;
use crate::assembly::{Assembly, CallPart, Reason};
use crate::provider_error;
use crate::wires::{Flow, count, list, text};
use serde_json::{Value, json};
use std::collections::HashSet;

#[derive(Debug, Default)]
pub(crate) struct Decoder {
    /// Keys of items that were mentioned, that had deltas, and that are done.
    seen: HashSet<String>,
    streamed: HashSet<String>,
    done: HashSet<String>,
}

impl Decoder {
    pub(in crate::wires) fn event(
        &mut self,
        event: &Value,
        into: &mut Assembly,
    ) -> Result<Flow, ModelError> {
        if text(event, "object") == Some("response") {
            return self.over(event, into);
        }
        let delta = text(event, "delta").unwrap_or_default();
        self.seen.insert(key(event));
        match text(event, "type").unwrap_or_default() {
            "response.created" => {
                let response = event.get("response").unwrap_or(&Value::Null);
                into.note("provider_model", response.get("model"));
                into.note("provider_response_id", response.get("id"));
            }
            "response.output_item.added" => self.added(event, into)?,
            "response.output_text.delta" | "response.refusal.delta" => {
                self.streamed.insert(key(event));
                into.text(delta)?;
            }
            "response.reasoning_summary_part.added" if count(event, "summary_index") > Some(0) => {
                into.reasoning("\n\n")?;
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                self.streamed.insert(key(event));
                into.reasoning(delta)?;
            }
            "response.function_call_arguments.delta" => {
                let key = key(event);
                into.call_part(CallPart { key: Some(&key), args: delta, ..CallPart::default() })?;
            }
            "response.output_item.done" => {
                let item = event.get("item").unwrap_or(&Value::Null);
                self.item_done(&key(event), item, into)?;
            }
            "response.completed" | "response.incomplete" | "response.failed" => {
                return self.over(event.get("response").unwrap_or(&Value::Null), into);
            }
            _ => {}
        }
        Ok(Flow::More)
    }

    fn added(&mut self, event: &Value, into: &mut Assembly) -> Result<(), ModelError> {
        let item = event.get("item").unwrap_or(&Value::Null);
        if text(item, "type") != Some("function_call") {
            return Ok(());
        }
        let (key, id, name) = (key(event), text(item, "call_id"), text(item, "name"));
        into.call_part(CallPart { key: Some(&key), id, name, args: "" })
    }

    fn item_done(
        &mut self,
        key: &str,
        item: &Value,
        into: &mut Assembly,
    ) -> Result<(), ModelError> {
        if !self.done.insert(key.to_owned()) {
            return Ok(());
        }
        let not_streamed = !self.streamed.contains(key);
        match text(item, "type").unwrap_or_default() {
            "function_call" => {
                let (id, name) = (text(item, "call_id"), text(item, "name"));
                into.call_part(CallPart { key: Some(key), id, name, args: "" })?;
                into.end_call(key, text(item, "arguments"))
            }
            "message" if not_streamed => {
                let parts = list(item, "content").iter();
                let texts = parts.filter_map(|part| text(part, "text").or(text(part, "refusal")));
                texts.into_iter().try_for_each(|text| into.text(text))
            }
            "reasoning" => {
                if not_streamed {
                    let parts = list(item, "summary").iter().chain(list(item, "content"));
                    let texts: Vec<&str> = parts.filter_map(|part| text(part, "text")).collect();
                    into.reasoning(&texts.join("\n\n"))?;
                }
                match text(item, "encrypted_content") {
                    Some(encrypted) => into.reasoning_data(json!({
                        "wire": WIRE,
                        "id": item.get("id"),
                        "encrypted_content": encrypted,
                    })),
                    None => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }

    fn over(&mut self, response: &Value, into: &mut Assembly) -> Result<Flow, ModelError> {
        if let Some(error) = provider_error::in_event(response) {
            return Err(error);
        }
        into.note("provider_model", response.get("model"));
        into.note("provider_response_id", response.get("id"));
        for (at, item) in list(response, "output").iter().enumerate() {
            let id = text(item, "id").filter(|id| self.seen.contains(*id));
            self.item_done(&id.map_or(at.to_string(), str::to_owned), item, into)?;
        }
        if let Some(usage) = response.get("usage").filter(|usage| usage.is_object()) {
            self::usage(usage, into);
        }
        let status = text(response, "status").unwrap_or("completed");
        let why = response.get("incomplete_details").and_then(|details| text(details, "reason"));
        let (reason, raw) = match (status, why) {
            ("completed", _) => (Reason::Stop, "completed"),
            ("incomplete", Some("content_filter")) => (Reason::ContentFilter, "content_filter"),
            ("incomplete", why) => (Reason::Length, why.unwrap_or("incomplete")),
            (status, _) => (Reason::Error, status),
        };
        into.complete(reason, raw);
        Ok(Flow::Over)
    }
}

/// The key of an event: the item's index, or its id from servers that omit the index.
fn key(event: &Value) -> String {
    let item_id = || text(event, "item_id").or_else(|| text(event.get("item")?, "id"));
    match count(event, "output_index") {
        Some(index) => index.to_string(),
        None => item_id().unwrap_or_default().to_owned(),
    }
}

fn usage(usage: &Value, into: &mut Assembly) {
    let detail = |of: &str, name: &str| usage.get(of).and_then(|details| count(details, name));
    into.usage.input = count(usage, "input_tokens");
    into.usage.output = count(usage, "output_tokens");
    into.usage.total = count(usage, "total_tokens");
    into.usage.cached = detail("input_tokens_details", "cached_tokens");
    into.usage.reasoning = detail("output_tokens_details", "reasoning_tokens");
}
