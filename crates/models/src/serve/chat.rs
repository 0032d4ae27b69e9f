//! OpenAI chat completions, server side.
//!
//! Invariant: a stream ends with one finish reason, usage if requested, and `[DONE]`.

use super::completion::{Completion, Counts, Media, Part, media};
use super::json::{self, args, data, list, put, required_list, text};
use super::segments::Segments;
use super::{DecodedRequest, Encoder, Stamp, Streaming};
use crate::{ModelRequest, ToolSpec};
use greenroom_protocol::api::models::{ModelMessage, ModelStreamItem, ModelToolCall};
use greenroom_protocol::content::MediaElement;
use greenroom_protocol::{ContentElement, MessageContent, Object, Role};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn decode(body: &Value) -> Result<DecodedRequest, String> {
    let messages = required_list(body, "messages")?;
    let tools = list(body, "tools").iter().filter_map(|tool| tool_spec(tool.get("function")?));
    let usage_wanted = body.pointer("/stream_options/include_usage") == Some(&Value::Bool(true));
    Ok(DecodedRequest {
        request: ModelRequest {
            messages: messages.iter().map(message).collect::<Result<_, _>>()?,
            tools: tools.collect(),
            options: json::options(
                body,
                &["model", "messages", "tools", "stream", "stream_options"],
            ),
        },
        model: text(body, "model").unwrap_or("scripted").to_owned(),
        streaming: match body.get("stream") == Some(&Value::Bool(true)) {
            true => Streaming::Events,
            false => Streaming::No,
        },
        usage_wanted,
        namespaced: BTreeMap::new(),
        freeform: BTreeSet::new(),
        returns_reasoning: false,
    })
}

pub(super) fn tool_spec(tool: &Value) -> Option<ToolSpec> {
    Some(ToolSpec {
        name: text(tool, "name")?.to_owned(),
        description: text(tool, "description").map(str::to_owned),
        parameters: tool.get("parameters").cloned().unwrap_or(json!({})),
    })
}

fn message(message: &Value) -> Result<ModelMessage, String> {
    let role = match text(message, "role") {
        Some("system" | "developer") => Role::System,
        Some("user") => Role::User,
        Some("assistant") => Role::Assistant,
        Some("tool" | "function") => Role::Tool,
        other => return Err(format!("unknown `role` {other:?}")),
    };
    let content = content(message.get("content").unwrap_or(&Value::Null))?;
    let calls = list(message, "tool_calls").iter().map(|call| {
        let function = call.get("function").unwrap_or(&Value::Null);
        ModelToolCall {
            id: text(call, "id").unwrap_or_default().to_owned(),
            name: text(function, "name").unwrap_or_default().to_owned(),
            args: args(text(function, "arguments").unwrap_or("{}")),
            args_text: None,
            args_error: None,
        }
    });
    let calls: Vec<ModelToolCall> = calls.collect();
    let segments = match role {
        Role::Assistant => segments(message, content.as_ref(), &calls),
        _ => None,
    };
    Ok(ModelMessage {
        role,
        content,
        tool_calls: calls,
        tool_call_id: text(message, "tool_call_id").map(str::to_owned),
        name: text(message, "name").map(str::to_owned),
        segments,
        is_error: None,
    })
}

/// Reasoning that a client sends back, as it got it: `reasoning_content` and `reasoning_details`.
fn segments(
    message: &Value,
    content: Option<&MessageContent>,
    calls: &[ModelToolCall],
) -> Option<Vec<Object>> {
    let mut segments = Segments::default();
    let opaque = list(message, "reasoning_details").iter().find_map(|it| text(it, "data"));
    let thought = text(message, "reasoning_content").or_else(|| text(message, "reasoning"));
    segments.reasoning(thought.unwrap_or_default(), opaque);
    segments.text(&content.map(MessageContent::text).unwrap_or_default());
    calls.iter().for_each(|call| segments.call(call));
    segments.finish()
}

/// A string, or parts of either OpenAI wire.
pub(super) fn content(content: &Value) -> Result<Option<MessageContent>, String> {
    match content {
        Value::Null => Ok(None),
        Value::String(text) => Ok(Some(MessageContent::Text(text.clone()))),
        Value::Array(parts) => {
            Ok(Some(MessageContent::Parts(parts.iter().filter_map(element).collect())))
        }
        _ => Err("`content` must be a string or a list".to_owned()),
    }
}

fn element(part: &Value) -> Option<ContentElement> {
    match text(part, "type")? {
        "text" | "input_text" | "output_text" => {
            Some(ContentElement::Text { text: text(part, "text")?.to_owned() })
        }
        "image_url" | "input_image" => {
            let url = part.get("image_url")?;
            Some(ContentElement::Image(json::media_of_url(url.as_str().or(text(url, "url"))?)))
        }
        "input_audio" => {
            let audio = part.get("input_audio")?;
            let mime_type = format!("audio/{}", text(audio, "format")?);
            Some(ContentElement::Audio(json::inline_media(&mime_type, text(audio, "data")?)))
        }
        "file" | "input_file" => {
            let file = part.get("file").unwrap_or(part);
            let bytes = text(file, "file_data").map(json::media_of_url).unwrap_or_default();
            let name = text(file, "filename").map(str::to_owned);
            Some(ContentElement::File(MediaElement { name, ..bytes }))
        }
        _ => None,
    }
}

pub(super) fn body(decoded: &DecodedRequest, stamp: &Stamp, completion: &Completion) -> Value {
    let mut message = json!({"role": "assistant", "content": null, "refusal": null});
    let (mut text_content, mut reasoning) = (String::new(), String::new());
    let (mut calls, mut images, mut details) = (Vec::new(), Vec::new(), Vec::new());
    for part in &completion.parts {
        match part {
            Part::Text(text) => text_content.push_str(text),
            Part::Reasoning { text, signature } => {
                reasoning.push_str(text);
                details.extend(signature.iter().map(|data| opaque(data)));
            }
            Part::Call { id, name, args } => calls.push(json!({
                "id": id, "type": "function", "function": {"name": name, "arguments": args},
            })),
            Part::Media { mime_type, data } => images.push(image(mime_type, data)),
        }
    }
    put(&mut message, "content", (!text_content.is_empty()).then_some(text_content));
    put(&mut message, "reasoning_content", (!reasoning.is_empty()).then_some(reasoning));
    details.retain(|_| decoded.returns_reasoning);
    put(&mut message, "reasoning_details", (!details.is_empty()).then_some(details));
    put(&mut message, "tool_calls", (!calls.is_empty()).then_some(calls));
    put(&mut message, "images", (!images.is_empty()).then_some(images));
    let choice = json!({"index": 0, "message": message, "logprobs": null, "finish_reason": completion.reason});
    let mut body = json!({
        "id": format!("chatcmpl-{}", stamp.id), "object": "chat.completion",
        "created": stamp.seconds, "model": decoded.model, "choices": [choice],
    });
    put(&mut body, "usage", completion.usage.as_ref().map(usage));
    body
}

pub(super) fn error_body(status: u16, message: &str) -> Value {
    let kind = match status {
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
        429 => "rate_limit_error",
        500.. => "server_error",
        _ => "invalid_request_error",
    };
    let code = if status == 429 { json!("rate_limit_exceeded") } else { Value::Null };
    json!({"error": {"message": message, "type": kind, "param": null, "code": code}})
}

fn usage(usage: &Object) -> Value {
    let counts = Counts::new(usage);
    let mut usage = json!({});
    put(&mut usage, "prompt_tokens", counts.input);
    put(&mut usage, "completion_tokens", counts.output);
    put(&mut usage, "total_tokens", counts.total);
    put(
        &mut usage,
        "prompt_tokens_details",
        counts.cached.map(|cached| json!({"cached_tokens": cached})),
    );
    let reasoning = counts.reasoning.map(|reasoning| json!({"reasoning_tokens": reasoning}));
    put(&mut usage, "completion_tokens_details", reasoning);
    usage
}

/// In the form of routers; OpenAI itself has no reasoning here.
fn opaque(data: &str) -> Value {
    json!({"type": "reasoning.encrypted", "data": data, "format": "greenroom", "index": 0})
}

/// In the form of image-model routers; OpenAI itself has no media here.
fn image(mime_type: &str, data: &str) -> Value {
    json!({"type": "image_url", "image_url": {"url": format!("data:{mime_type};base64,{data}")}})
}

pub(super) struct Stream {
    decoded: DecodedRequest,
    stamp: Stamp,
    /// Call ids in order.
    calls: Vec<String>,
    usage: Option<Object>,
}

impl Stream {
    pub(super) fn new(decoded: DecodedRequest, stamp: Stamp) -> Self {
        Self { decoded, stamp, calls: Vec::new(), usage: None }
    }

    fn chunk(&self, choices: Value) -> Value {
        json!({
            "id": format!("chatcmpl-{}", self.stamp.id), "object": "chat.completion.chunk",
            "created": self.stamp.seconds, "model": self.decoded.model, "choices": choices,
        })
    }

    fn delta(&self, delta: Value, reason: Option<&str>) -> Value {
        self.chunk(json!([{"index": 0, "delta": delta, "logprobs": null, "finish_reason": reason}]))
    }

    fn finish(&mut self, reason: &str, out: &mut String) {
        data(out, &self.delta(json!({}), Some(reason)));
        if let Some(counted) = self.usage.as_ref().filter(|_| self.decoded.usage_wanted) {
            let mut chunk = self.chunk(json!([]));
            put(&mut chunk, "usage", Some(usage(counted)));
            data(out, &chunk);
        }
        out.push_str("data: [DONE]\n\n");
    }
}

impl Encoder for Stream {
    fn begin(&mut self, out: &mut String) {
        data(out, &self.delta(json!({"role": "assistant", "content": ""}), None));
    }

    fn item(&mut self, item: &ModelStreamItem, out: &mut String) {
        let delta = match item {
            ModelStreamItem::TextDelta { text } => json!({"content": text}),
            ModelStreamItem::ReasoningDelta { text } => json!({"reasoning_content": text}),
            ModelStreamItem::ToolCallStart { id, name } => {
                self.calls.push(id.clone());
                json!({"tool_calls": [{
                    "index": self.calls.len() - 1, "id": id, "type": "function",
                    "function": {"name": name, "arguments": ""},
                }]})
            }
            ModelStreamItem::ToolCallDelta { id, args_text } => {
                let index = self.calls.iter().rposition(|call| call == id).unwrap_or(0);
                json!({"tool_calls": [{"index": index, "function": {"arguments": args_text}}]})
            }
            ModelStreamItem::ToolCallEnd(_) => return,
            ModelStreamItem::Media { segment } => match media(segment) {
                Media::Signature(data) if self.decoded.returns_reasoning => {
                    json!({"reasoning_details": [opaque(&data)]})
                }
                Media::Signature(_) => return,
                Media::Bytes { mime_type, data } => json!({"images": [image(&mime_type, &data)]}),
            },
            ModelStreamItem::Usage(usage) => {
                self.usage = Some(usage.clone());
                return;
            }
            ModelStreamItem::Finish { reason } => return self.finish(reason, out),
        };
        data(out, &self.delta(delta, None));
    }

    fn error(&mut self, status: u16, message: &str, out: &mut String) {
        data(out, &error_body(status, message));
    }
}
