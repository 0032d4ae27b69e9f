//! Ollama `/api/chat`, server side: one JSON object per line.
//!
//! Invariant: the last line, and only it, is `done`.

use super::completion::{Completion, Counts, Media, Part, media};
use super::json::{self, args, list, put, required_list, text};
use super::{DecodedRequest, Encoder, Stamp, Streaming, chat};
use crate::ModelRequest;
use greenroom_protocol::api::models::{ModelMessage, ModelStreamItem, ModelToolCall};
use greenroom_protocol::{ContentElement, MessageContent, Object, Role};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn decode(body: &Value) -> Result<DecodedRequest, String> {
    let messages = required_list(body, "messages")?;
    let tools =
        list(body, "tools").iter().filter_map(|tool| chat::tool_spec(tool.get("function")?));
    let mut options = json::options(body, &["model", "messages", "tools", "stream", "format"]);
    match body.get("format") {
        Some(Value::String(_)) => {
            drop(options.insert("response_format".into(), json!({"type": "json"})))
        }
        Some(schema @ Value::Object(_)) => {
            let format = json!({"type": "json_schema", "schema": schema});
            options.insert("response_format".into(), format);
        }
        _ => {}
    }
    Ok(DecodedRequest {
        request: ModelRequest {
            messages: messages.iter().map(message).collect::<Result<_, _>>()?,
            tools: tools.collect(),
            options,
        },
        model: text(body, "model").unwrap_or("scripted").to_owned(),
        // Ollama streams by default.
        streaming: match body.get("stream") == Some(&Value::Bool(false)) {
            true => Streaming::No,
            false => Streaming::Events,
        },
        usage_wanted: true,
        namespaced: BTreeMap::new(),
        freeform: BTreeSet::new(),
        returns_reasoning: false,
    })
}

fn message(message: &Value) -> Result<ModelMessage, String> {
    let role = match text(message, "role") {
        Some("system") => Role::System,
        Some("user") => Role::User,
        Some("assistant") => Role::Assistant,
        Some("tool") => Role::Tool,
        other => return Err(format!("unknown `role` {other:?}")),
    };
    let said = text(message, "content").unwrap_or_default().to_owned();
    let images = list(message, "images").iter().filter_map(Value::as_str);
    let mut parts = vec![ContentElement::Text { text: said.clone() }];
    parts.extend(images.map(|bytes| ContentElement::Image(json::inline_media("image/png", bytes))));
    let calls = list(message, "tool_calls").iter().map(|call| {
        let function = call.get("function").unwrap_or(&Value::Null);
        ModelToolCall {
            id: text(call, "id").unwrap_or_default().to_owned(),
            name: text(function, "name").unwrap_or_default().to_owned(),
            args: function.get("arguments").cloned().unwrap_or(json!({})),
            args_text: None,
            args_error: None,
        }
    });
    Ok(ModelMessage {
        role,
        content: Some(match parts.len() {
            1 => MessageContent::Text(said),
            _ => MessageContent::Parts(parts),
        }),
        tool_calls: calls.collect(),
        tool_call_id: text(message, "tool_call_id").map(str::to_owned),
        name: text(message, "tool_name").or(text(message, "name")).map(str::to_owned),
        segments: None,
        is_error: None,
    })
}

pub(super) fn body(decoded: &DecodedRequest, stamp: &Stamp, completion: &Completion) -> Value {
    let (mut said, mut thought) = (String::new(), String::new());
    let (mut calls, mut images) = (Vec::new(), Vec::new());
    for part in &completion.parts {
        match part {
            Part::Text(text) => said.push_str(text),
            Part::Reasoning { text, .. } => thought.push_str(text),
            Part::Call { id, name, args } => calls.push(call(id, name, args)),
            Part::Media { data, .. } => images.push(data.clone()),
        }
    }
    let mut message = json!({"role": "assistant", "content": said});
    put(&mut message, "thinking", (!thought.is_empty()).then_some(thought));
    put(&mut message, "tool_calls", (!calls.is_empty()).then_some(calls));
    put(&mut message, "images", (!images.is_empty()).then_some(images));
    let mut line = line(decoded, stamp, message);
    end(&mut line, &completion.reason, completion.usage.as_ref());
    line
}

pub(super) fn error_body(message: &str) -> Value {
    json!({"error": message})
}

fn call(id: &str, name: &str, arguments: &str) -> Value {
    json!({"id": id, "function": {"name": name, "arguments": args(arguments)}})
}

fn line(decoded: &DecodedRequest, stamp: &Stamp, message: Value) -> Value {
    json!({"model": decoded.model, "created_at": stamp.time, "message": message, "done": false})
}

fn end(line: &mut Value, reason: &str, usage: Option<&Object>) {
    let counts = usage.map(Counts::new).unwrap_or_default();
    // Ollama has no finish reason for calls.
    let reason = if reason == "tool_calls" { "stop" } else { reason };
    put(line, "done", Some(true));
    put(line, "done_reason", Some(reason));
    put(line, "prompt_eval_count", counts.input);
    put(line, "eval_count", counts.output);
}

pub(super) struct Stream {
    decoded: DecodedRequest,
    stamp: Stamp,
    /// Ids and arguments of open calls.
    open: Vec<(String, String)>,
    usage: Option<Object>,
}

impl Stream {
    pub(super) fn new(decoded: DecodedRequest, stamp: Stamp) -> Self {
        Self { decoded, stamp, open: Vec::new(), usage: None }
    }

    fn write(&self, message: Value, out: &mut String) {
        out.push_str(&format!("{}\n", line(&self.decoded, &self.stamp, message)));
    }
}

impl Encoder for Stream {
    fn begin(&mut self, _out: &mut String) {}

    fn item(&mut self, item: &ModelStreamItem, out: &mut String) {
        let said = |key: &str, value: Value| {
            let mut message = json!({"role": "assistant", "content": ""});
            put(&mut message, key, Some(value));
            message
        };
        match item {
            ModelStreamItem::TextDelta { text } => self.write(said("content", json!(text)), out),
            ModelStreamItem::ReasoningDelta { text } => {
                self.write(said("thinking", json!(text)), out)
            }
            ModelStreamItem::ToolCallStart { id, .. } => {
                self.open.push((id.clone(), String::new()))
            }
            ModelStreamItem::ToolCallDelta { id, args_text } => {
                let open = self.open.iter_mut().find(|(open, _)| open == id);
                open.into_iter().for_each(|(_, args)| args.push_str(args_text));
            }
            ModelStreamItem::ToolCallEnd(ended) => {
                let at = self.open.iter().position(|(open, _)| *open == ended.id);
                let args = at.map(|at| self.open.remove(at).1).unwrap_or_default();
                self.write(said("tool_calls", json!([call(&ended.id, &ended.name, &args)])), out);
            }
            ModelStreamItem::Media { segment } => {
                if let Media::Bytes { data, .. } = media(segment) {
                    self.write(said("images", json!([data])), out);
                }
            }
            ModelStreamItem::Usage(usage) => self.usage = Some(usage.clone()),
            ModelStreamItem::Finish { reason } => {
                let mut last =
                    line(&self.decoded, &self.stamp, json!({"role": "assistant", "content": ""}));
                end(&mut last, reason, self.usage.as_ref());
                out.push_str(&format!("{last}\n"));
            }
        }
    }

    fn error(&mut self, _status: u16, message: &str, out: &mut String) {
        out.push_str(&format!("{}\n", error_body(message)));
    }
}
