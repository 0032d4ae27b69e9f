//! OpenAI Responses, server side.
//!
//! Invariant: every item is added, filled and done before the next one; the last event contains the complete
//! response.

mod decode;

use super::completion::{Completion, Counts, Media, Part, media};
use super::json::{args, event, put, text};
use super::{DecodedRequest, Encoder, Stamp, chat};
pub(super) use decode::decode;
use greenroom_protocol::Object;
use greenroom_protocol::api::models::ModelStreamItem;
use serde_json::{Value, json};

pub(super) fn body(decoded: &DecodedRequest, stamp: &Stamp, completion: &Completion) -> Value {
    let parts = completion.parts.iter().enumerate();
    let items = parts.map(|(at, part)| item(decoded, stamp, at, part, "completed")).collect();
    finished(decoded, stamp, items, completion)
}

fn response(decoded: &DecodedRequest, stamp: &Stamp, status: &str) -> Value {
    let tools = decoded.request.options.get("tools").cloned().unwrap_or(json!([]));
    json!({
        "id": format!("resp_{}", stamp.id), "object": "response", "created_at": stamp.seconds,
        "status": status, "error": null, "incomplete_details": null, "instructions": null,
        "metadata": {}, "model": decoded.model, "output": [], "parallel_tool_calls": true,
        "temperature": 1.0, "tool_choice": "auto", "tools": tools, "top_p": 1.0,
    })
}

fn finished(
    decoded: &DecodedRequest,
    stamp: &Stamp,
    items: Vec<Value>,
    completion: &Completion,
) -> Value {
    let (status, incomplete) = match completion.reason.as_str() {
        "length" => ("incomplete", Some("max_output_tokens")),
        "content_filter" => ("incomplete", Some("content_filter")),
        "error" => ("failed", None),
        _ => ("completed", None),
    };
    let mut body = response(decoded, stamp, status);
    put(&mut body, "output", Some(items));
    put(&mut body, "incomplete_details", incomplete.map(|reason| json!({"reason": reason})));
    if status == "failed" {
        let error = json!({"code": "server_error", "message": "the script ends with an error"});
        put(&mut body, "error", Some(error));
    }
    put(&mut body, "usage", completion.usage.as_ref().map(usage));
    body
}

fn usage(usage: &Object) -> Value {
    let known = Counts::new(usage);
    let mut usage = json!({});
    put(&mut usage, "input_tokens", known.input);
    put(&mut usage, "output_tokens", known.output);
    put(&mut usage, "total_tokens", known.total);
    put(
        &mut usage,
        "input_tokens_details",
        known.cached.map(|cached| json!({"cached_tokens": cached})),
    );
    let reasoning = known.reasoning.map(|reasoning| json!({"reasoning_tokens": reasoning}));
    put(&mut usage, "output_tokens_details", reasoning);
    usage
}

/// A part as an output item.
fn item(decoded: &DecodedRequest, stamp: &Stamp, at: usize, part: &Part, status: &str) -> Value {
    let id = |prefix: &str| format!("{prefix}_{}_{at}", stamp.id);
    match part {
        Part::Text(text) => json!({
            "type": "message", "id": id("msg"), "role": "assistant", "status": status,
            "content": [{"type": "output_text", "text": text, "annotations": []}],
        }),
        Part::Reasoning { text, signature } => {
            let summary = match text.is_empty() {
                true => json!([]),
                false => json!([{"type": "summary_text", "text": text}]),
            };
            let mut item = json!({"type": "reasoning", "id": id("rs"), "summary": summary});
            put(&mut item, "encrypted_content", signature.clone());
            item
        }
        Part::Call { id: call_id, name, args: text } if decoded.freeform.contains(name) => {
            let input = args(text);
            let input = input.get("input").and_then(Value::as_str).unwrap_or(text);
            json!({
                "type": "custom_tool_call", "id": id("ctc"), "call_id": call_id, "name": name,
                "input": input, "status": status,
            })
        }
        Part::Call { id: call_id, name, args } => {
            let namespaced = decoded.namespaced.get(name);
            let name = namespaced.map_or(name, |(_, name)| name);
            let mut item = json!({
                "type": "function_call", "id": id("fc"), "call_id": call_id, "name": name,
                "arguments": args, "status": status,
            });
            put(&mut item, "namespace", namespaced.map(|(namespace, _)| namespace.clone()));
            item
        }
        Part::Media { data, .. } => json!({
            "type": "image_generation_call", "id": id("ig"), "status": status, "result": data,
        }),
    }
}

pub(super) struct Stream {
    decoded: DecodedRequest,
    stamp: Stamp,
    completion: Completion,
    done: Vec<Value>,
    /// Whether the last part is still open.
    open: bool,
    sequence: u64,
}

impl Stream {
    pub(super) fn new(decoded: DecodedRequest, stamp: Stamp) -> Self {
        Self {
            decoded,
            stamp,
            completion: Completion::default(),
            done: Vec::new(),
            open: false,
            sequence: 0,
        }
    }

    fn event(&mut self, name: &str, mut fields: Value, out: &mut String) {
        put(&mut fields, "type", Some(name));
        put(&mut fields, "sequence_number", Some(self.sequence));
        self.sequence += 1;
        event(out, name, &fields);
    }

    fn last(&self, status: &str) -> Value {
        let at = self.done.len();
        let part = self.completion.parts.get(at);
        part.map_or(Value::Null, |part| item(&self.decoded, &self.stamp, at, part, status))
    }

    /// The ids and indexes of the open item.
    fn position(&self, index: &str) -> Value {
        let id = text(&self.last("in_progress"), "id").unwrap_or_default().to_owned();
        let mut position = json!({"item_id": id, "output_index": self.done.len()});
        if !index.is_empty() {
            put(&mut position, index, Some(0));
        }
        position
    }

    fn open(&mut self, out: &mut String) {
        self.open = true;
        let mut item = self.last("in_progress");
        let kind = text(&item, "type").unwrap_or_default().to_owned();
        let empty = match kind.as_str() {
            "message" => ("content", json!([])),
            "reasoning" => ("summary", json!([])),
            "function_call" => ("arguments", json!("")),
            "custom_tool_call" => ("input", json!("")),
            _ => ("result", Value::Null),
        };
        put(&mut item, empty.0, Some(empty.1));
        let added = json!({"output_index": self.done.len(), "item": item});
        self.event("response.output_item.added", added, out);
        if kind == "message" {
            let mut part = self.position("content_index");
            put(
                &mut part,
                "part",
                Some(json!({"type": "output_text", "text": "", "annotations": []})),
            );
            self.event("response.content_part.added", part, out);
        }
        if kind == "reasoning" {
            let mut part = self.position("summary_index");
            put(&mut part, "part", Some(json!({"type": "summary_text", "text": ""})));
            self.event("response.reasoning_summary_part.added", part, out);
        }
    }

    fn delta(&mut self, name: &str, index: &str, delta: &str, out: &mut String) {
        let mut fields = self.position(index);
        put(&mut fields, "delta", Some(delta));
        self.event(name, fields, out);
    }

    fn close(&mut self, out: &mut String) {
        if !std::mem::take(&mut self.open) {
            return;
        }
        let item = self.last("completed");
        match text(&item, "type").unwrap_or_default() {
            "message" => {
                let part = item["content"][0].clone();
                let mut fields = self.position("content_index");
                put(&mut fields, "text", Some(part["text"].clone()));
                self.event("response.output_text.done", fields, out);
                let mut fields = self.position("content_index");
                put(&mut fields, "part", Some(part));
                self.event("response.content_part.done", fields, out);
            }
            "reasoning" => {
                let part = item["summary"].get(0).cloned();
                let part = part.unwrap_or(json!({"type": "summary_text", "text": ""}));
                let mut fields = self.position("summary_index");
                put(&mut fields, "text", Some(part["text"].clone()));
                self.event("response.reasoning_summary_text.done", fields, out);
                let mut fields = self.position("summary_index");
                put(&mut fields, "part", Some(part));
                self.event("response.reasoning_summary_part.done", fields, out);
            }
            "function_call" => {
                let mut fields = self.position("");
                put(&mut fields, "arguments", Some(item["arguments"].clone()));
                put(&mut fields, "name", Some(item["name"].clone()));
                self.event("response.function_call_arguments.done", fields, out);
            }
            "custom_tool_call" => {
                let mut fields = self.position("");
                put(&mut fields, "delta", Some(item["input"].clone()));
                self.event("response.custom_tool_call_input.delta", fields, out);
                let mut fields = self.position("");
                put(&mut fields, "input", Some(item["input"].clone()));
                self.event("response.custom_tool_call_input.done", fields, out);
            }
            _ => {}
        }
        let done = json!({"output_index": self.done.len(), "item": item});
        self.event("response.output_item.done", done, out);
        self.done.push(item);
    }

    /// Adds an item; opens the part that it starts.
    fn take(&mut self, item: &ModelStreamItem, out: &mut String) {
        let had = self.completion.parts.len();
        let starts_part = match item {
            ModelStreamItem::TextDelta { .. } => {
                !matches!(self.completion.parts.last(), Some(Part::Text(_)))
            }
            ModelStreamItem::ReasoningDelta { .. } => !matches!(
                self.completion.parts.last(),
                Some(Part::Reasoning { signature: None, .. })
            ),
            _ => true,
        };
        if starts_part && self.open {
            self.close(out);
        }
        self.completion.push(item);
        if self.completion.parts.len() > had {
            self.open(out);
        }
    }
}

impl Encoder for Stream {
    fn begin(&mut self, out: &mut String) {
        let response = response(&self.decoded, &self.stamp, "in_progress");
        self.event("response.created", json!({"response": response}), out);
        self.event("response.in_progress", json!({"response": response}), out);
    }

    fn item(&mut self, item: &ModelStreamItem, out: &mut String) {
        match item {
            ModelStreamItem::TextDelta { text } => {
                self.take(item, out);
                self.delta("response.output_text.delta", "content_index", text, out);
            }
            ModelStreamItem::ReasoningDelta { text } => {
                self.take(item, out);
                self.delta("response.reasoning_summary_text.delta", "summary_index", text, out);
            }
            ModelStreamItem::ToolCallStart { .. } => self.take(item, out),
            ModelStreamItem::ToolCallDelta { args_text, .. } => {
                self.completion.push(item);
                if text(&self.last("in_progress"), "type") == Some("function_call") {
                    self.delta("response.function_call_arguments.delta", "", args_text, out);
                }
            }
            ModelStreamItem::ToolCallEnd(_) => self.close(out),
            ModelStreamItem::Media { segment } => match media(segment) {
                // It belongs to the open reasoning.
                Media::Signature(_) if self.open => {
                    self.completion.push(item);
                    self.close(out);
                }
                _ => {
                    self.take(item, out);
                    self.close(out);
                }
            },
            ModelStreamItem::Usage(_) => self.completion.push(item),
            ModelStreamItem::Finish { .. } => {
                self.close(out);
                self.completion.push(item);
                let whole =
                    finished(&self.decoded, &self.stamp, self.done.clone(), &self.completion);
                let name = format!("response.{}", text(&whole, "status").unwrap_or("completed"));
                self.event(&name, json!({"response": whole}), out);
            }
        }
    }

    fn error(&mut self, status: u16, message: &str, out: &mut String) {
        let error = chat::error_body(status, message);
        let code = match status {
            429 => "rate_limit_exceeded",
            _ => "server_error",
        };
        let mut response = response(&self.decoded, &self.stamp, "failed");
        let message = error["error"]["message"].clone();
        put(&mut response, "error", Some(json!({"code": code, "message": message})));
        self.event("response.failed", json!({"response": response}), out);
    }
}
