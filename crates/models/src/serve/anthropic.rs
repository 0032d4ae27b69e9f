//! Anthropic Messages, server side.
//!
//! Invariant: blocks do not overlap; `message_stop` is the last event of a successful response.

use super::completion::{Completion, Counts, Media, Part, media};
use super::json::{self, args, event, list, put, required_list, text};
use super::segments::Segments;
use super::{DecodedRequest, Encoder, Stamp, Streaming};
use crate::{ModelRequest, ToolSpec};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use greenroom_protocol::api::models::{ModelMessage, ModelStreamItem, ModelToolCall};
use greenroom_protocol::content::MediaElement;
use greenroom_protocol::{ContentElement, MessageContent, Object, Role};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn decode(body: &Value) -> Result<DecodedRequest, String> {
    let mut messages: Vec<ModelMessage> = system(body.get("system")).into_iter().collect();
    for message in required_list(body, "messages")? {
        decode_message(message, &mut messages)?;
    }
    // Tools of the provider itself, such as its web search, have a type of their own.
    let is_clients = |tool: &&Value| matches!(text(tool, "type"), None | Some("custom"));
    let tools = list(body, "tools").iter().filter(is_clients).filter_map(|tool| {
        Some(ToolSpec {
            name: text(tool, "name")?.to_owned(),
            description: text(tool, "description").map(str::to_owned),
            parameters: tool.get("input_schema").cloned().unwrap_or(json!({})),
        })
    });
    let mut options = json::options(body, &["model", "messages", "tools", "stream", "system"]);
    let format = body.pointer("/output_config/format").or(body.get("output_format"));
    if let Some(format) = format {
        options.insert("response_format".to_owned(), format.clone());
    }
    Ok(DecodedRequest {
        request: ModelRequest { messages, tools: tools.collect(), options },
        model: text(body, "model").unwrap_or("scripted").to_owned(),
        streaming: match body.get("stream") == Some(&Value::Bool(true)) {
            true => Streaming::Events,
            false => Streaming::No,
        },
        usage_wanted: true,
        namespaced: BTreeMap::new(),
        freeform: BTreeSet::new(),
        returns_reasoning: false,
    })
}

fn system(system: Option<&Value>) -> Option<ModelMessage> {
    let text = match system? {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            blocks.iter().filter_map(|block| text(block, "text")).collect::<Vec<_>>().join("\n")
        }
        _ => return None,
    };
    Some(ModelMessage::text(Role::System, text))
}

/// A message with tool results becomes several of ours.
fn decode_message(message: &Value, messages: &mut Vec<ModelMessage>) -> Result<(), String> {
    let role = match text(message, "role") {
        Some("user") => Role::User,
        Some("assistant") => Role::Assistant,
        Some("system") => Role::System,
        other => return Err(format!("unknown `role` {other:?}")),
    };
    let blocks = match message.get("content") {
        Some(Value::String(said)) => {
            messages.push(ModelMessage::text(role, said.clone()));
            return Ok(());
        }
        Some(Value::Array(blocks)) => blocks,
        _ => return Err("`content` must be a string or a list".to_owned()),
    };
    let mut parts = Vec::new();
    let mut calls = Vec::new();
    let mut segments = Segments::default();
    for block in blocks {
        match text(block, "type") {
            Some("tool_use") => {
                let call = tool_use(block);
                segments.call(&call);
                calls.push(call);
            }
            Some("tool_result") => messages.push(tool_result(block)),
            Some("thinking") => {
                let thought = text(block, "thinking").unwrap_or_default();
                segments.reasoning(thought, text(block, "signature"));
            }
            Some("redacted_thinking") => segments.reasoning("", text(block, "data")),
            _ => {
                segments.text(text(block, "text").unwrap_or_default());
                parts.extend(element(block));
            }
        }
    }
    let segments = segments.finish().filter(|_| role == Role::Assistant);
    if !parts.is_empty() || !calls.is_empty() || segments.is_some() {
        let mut message = ModelMessage::text(role, "");
        message.content = Some(MessageContent::Parts(parts));
        message.tool_calls = calls;
        message.segments = segments;
        messages.push(message);
    }
    Ok(())
}

fn tool_use(block: &Value) -> ModelToolCall {
    ModelToolCall {
        id: text(block, "id").unwrap_or_default().to_owned(),
        name: text(block, "name").unwrap_or_default().to_owned(),
        args: block.get("input").cloned().unwrap_or(json!({})),
        args_text: None,
        args_error: None,
    }
}

fn tool_result(block: &Value) -> ModelMessage {
    let mut message = ModelMessage::text(Role::Tool, "");
    message.tool_call_id = text(block, "tool_use_id").map(str::to_owned);
    message.is_error = (block.get("is_error") == Some(&Value::Bool(true))).then_some(true);
    message.content = Some(match block.get("content") {
        Some(Value::String(text)) => MessageContent::Text(text.clone()),
        Some(Value::Array(parts)) => {
            MessageContent::Parts(parts.iter().filter_map(element).collect())
        }
        _ => MessageContent::Text(String::new()),
    });
    message
}

fn element(block: &Value) -> Option<ContentElement> {
    let kind = text(block, "type")?;
    if kind == "text" {
        return Some(ContentElement::Text { text: text(block, "text")?.to_owned() });
    }
    let source = block.get("source")?;
    let media = match text(source, "type")? {
        "base64" => json::inline_media(text(source, "media_type")?, text(source, "data")?),
        "text" => json::inline_media("text/plain", &STANDARD.encode(text(source, "data")?)),
        _ => {
            MediaElement { url: text(source, "url").map(str::to_owned), ..MediaElement::default() }
        }
    };
    Some(match kind {
        "image" => ContentElement::Image(media),
        _ => ContentElement::File(media),
    })
}

pub(super) fn body(decoded: &DecodedRequest, stamp: &Stamp, completion: &Completion) -> Value {
    let blocks = completion.parts.iter().filter_map(|part| match part {
        Part::Text(text) => Some(json!({"type": "text", "text": text})),
        Part::Reasoning { text, signature } => Some(json!({
            "type": "thinking", "thinking": text, "signature": signature.as_deref().unwrap_or_default(),
        })),
        Part::Call { id, name, args: text } => {
            Some(json!({"type": "tool_use", "id": id, "name": name, "input": args(text)}))
        }
        // Anthropic's models produce no media.
        Part::Media { .. } => None,
    });
    let mut body = message(decoded, stamp);
    put(&mut body, "content", Some(blocks.collect::<Vec<_>>()));
    put(&mut body, "stop_reason", Some(stop_reason(&completion.reason)));
    put(&mut body, "usage", completion.usage.as_ref().map(|usage| counts(Some(usage), None)));
    body
}

pub(super) fn error_body(status: u16, message: &str) -> Value {
    let kind = match status {
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        529 => "overloaded_error",
        500.. => "api_error",
        _ => "invalid_request_error",
    };
    json!({"type": "error", "error": {"type": kind, "message": message}})
}

fn message(decoded: &DecodedRequest, stamp: &Stamp) -> Value {
    json!({
        "id": format!("msg_{}", stamp.id), "type": "message", "role": "assistant", "model": decoded.model,
        "content": [], "stop_reason": null, "stop_sequence": null,
    })
}

/// `output`: the count at the start of a stream.
fn counts(usage: Option<&Object>, output: Option<u64>) -> Value {
    let known = usage.map(Counts::new).unwrap_or_default();
    let cache_tokens = known.cached.unwrap_or(0) + known.cache_write.unwrap_or(0);
    let mut counts = json!({});
    put(&mut counts, "input_tokens", known.input.map(|input| input.saturating_sub(cache_tokens)));
    put(&mut counts, "output_tokens", output.or(known.output));
    put(&mut counts, "cache_read_input_tokens", known.cached);
    put(&mut counts, "cache_creation_input_tokens", known.cache_write);
    counts
}

fn stop_reason(reason: &str) -> &str {
    match reason {
        "stop" => "end_turn",
        "tool_calls" => "tool_use",
        "length" => "max_tokens",
        "content_filter" => "refusal",
        other => other,
    }
}

pub(super) struct Stream {
    decoded: DecodedRequest,
    stamp: Stamp,
    usage: Option<Object>,
    open: Option<Open>,
    index: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Open {
    Text,
    Thinking,
    Call,
}

impl Stream {
    /// As with Anthropic, usage is known before the response starts.
    pub(super) fn new(decoded: DecodedRequest, stamp: Stamp, usage: Option<Object>) -> Self {
        Self { decoded, stamp, usage, open: None, index: 0 }
    }

    fn open(&mut self, kind: Open, block: Value, out: &mut String) {
        if self.open == Some(kind) && kind != Open::Call {
            return;
        }
        self.close(out);
        self.open = Some(kind);
        let start =
            json!({"type": "content_block_start", "index": self.index, "content_block": block});
        event(out, "content_block_start", &start);
    }

    fn delta(&self, delta: Value, out: &mut String) {
        let delta = json!({"type": "content_block_delta", "index": self.index, "delta": delta});
        event(out, "content_block_delta", &delta);
    }

    fn close(&mut self, out: &mut String) {
        if self.open.take().is_some() {
            let stop = json!({"type": "content_block_stop", "index": self.index});
            event(out, "content_block_stop", &stop);
            self.index += 1;
        }
    }
}

impl Encoder for Stream {
    fn begin(&mut self, out: &mut String) {
        let mut message = message(&self.decoded, &self.stamp);
        let usage = self.usage.as_ref().map(|usage| counts(Some(usage), Some(1)));
        put(&mut message, "usage", usage);
        event(out, "message_start", &json!({"type": "message_start", "message": message}));
        event(out, "ping", &json!({"type": "ping"}));
    }

    fn item(&mut self, item: &ModelStreamItem, out: &mut String) {
        let thinking = || json!({"type": "thinking", "thinking": "", "signature": ""});
        match item {
            ModelStreamItem::TextDelta { text } => {
                self.open(Open::Text, json!({"type": "text", "text": ""}), out);
                self.delta(json!({"type": "text_delta", "text": text}), out);
            }
            ModelStreamItem::ReasoningDelta { text } => {
                self.open(Open::Thinking, thinking(), out);
                self.delta(json!({"type": "thinking_delta", "thinking": text}), out);
            }
            ModelStreamItem::ToolCallStart { id, name } => {
                let block = json!({"type": "tool_use", "id": id, "name": name, "input": {}});
                self.open(Open::Call, block, out);
            }
            ModelStreamItem::ToolCallDelta { args_text, .. } => {
                self.delta(json!({"type": "input_json_delta", "partial_json": args_text}), out);
            }
            ModelStreamItem::ToolCallEnd(_) => self.close(out),
            ModelStreamItem::Media { segment } => {
                if let Media::Signature(signature) = media(segment) {
                    self.open(Open::Thinking, thinking(), out);
                    self.delta(json!({"type": "signature_delta", "signature": signature}), out);
                    self.close(out);
                }
            }
            // Where it is not known at the start.
            ModelStreamItem::Usage(usage) => self.usage = Some(usage.clone()),
            ModelStreamItem::Finish { reason } => {
                self.close(out);
                let delta = json!({"stop_reason": stop_reason(reason), "stop_sequence": null});
                let mut last = json!({"type": "message_delta", "delta": delta});
                put(&mut last, "usage", self.usage.as_ref().map(|usage| counts(Some(usage), None)));
                event(out, "message_delta", &last);
                event(out, "message_stop", &json!({"type": "message_stop"}));
            }
        }
    }

    fn error(&mut self, status: u16, message: &str, out: &mut String) {
        event(out, "error", &error_body(status, message));
    }
}
