//! Gemini `generateContent`, server side.
//!
//! Invariant: a call is sent in one piece; the last piece contains finish reason and usage.

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

/// A field in either spelling that Google accepts.
fn field<'a>(value: &'a Value, camel: &str, snake: &str) -> Option<&'a Value> {
    value.get(camel).or_else(|| value.get(snake))
}

pub(super) fn decode(
    body: &Value,
    model: &str,
    streaming: Streaming,
) -> Result<DecodedRequest, String> {
    let mut messages = Vec::new();
    if let Some(system) = field(body, "systemInstruction", "system_instruction") {
        let said = list(system, "parts").iter().filter_map(|part| text(part, "text"));
        messages.push(ModelMessage::text(Role::System, said.collect::<Vec<_>>().join("\n")));
    }
    let mut ids = Ids::default();
    for content in required_list(body, "contents")? {
        decode_content(content, &mut messages, &mut ids);
    }
    let tools = list(body, "tools").iter().flat_map(|tool| {
        let declared = field(tool, "functionDeclarations", "function_declarations");
        declared.and_then(Value::as_array).into_iter().flatten().filter_map(tool_spec)
    });
    let without = [
        "contents",
        "tools",
        "systemInstruction",
        "system_instruction",
        "model",
        "generationConfig",
    ];
    let mut options = json::options(body, &without);
    if let Some(config) = field(body, "generationConfig", "generation_config") {
        options.extend(json::options(config, &[]));
        options
            .extend(response_format(config).map(|format| ("response_format".to_owned(), format)));
    }
    Ok(DecodedRequest {
        request: ModelRequest { messages, tools: tools.collect(), options },
        model: model.to_owned(),
        streaming,
        usage_wanted: true,
        namespaced: BTreeMap::new(),
        freeform: BTreeSet::new(),
        returns_reasoning: false,
    })
}

fn response_format(config: &Value) -> Option<Value> {
    let schema = field(config, "responseJsonSchema", "response_json_schema")
        .or_else(|| field(config, "responseSchema", "response_schema"));
    let mime = field(config, "responseMimeType", "response_mime_type").and_then(Value::as_str);
    match (schema, mime) {
        (Some(schema), _) => Some(json!({"type": "json_schema", "schema": schema})),
        (None, Some("application/json")) => Some(json!({"type": "json"})),
        _ => None,
    }
}

fn tool_spec(tool: &Value) -> Option<ToolSpec> {
    let parameters = field(tool, "parametersJsonSchema", "parameters_json_schema");
    Some(ToolSpec {
        name: text(tool, "name")?.to_owned(),
        description: text(tool, "description").map(str::to_owned),
        parameters: parameters.or(tool.get("parameters")).cloned().unwrap_or(json!({})),
    })
}

/// Ids of calls and results, which clients may leave out: a result then belongs to the first open call of its name.
#[derive(Default)]
struct Ids {
    made: BTreeMap<String, usize>,
    /// Name and id of calls without a result so far.
    open: Vec<(String, String)>,
}

impl Ids {
    fn of_call(&mut self, call: &Value) -> String {
        let name = text(call, "name").unwrap_or_default();
        let id = match text(call, "id").filter(|id| !id.is_empty()) {
            Some(id) => id.to_owned(),
            None => {
                let count = self.made.entry(name.to_owned()).or_default();
                *count += 1;
                if *count == 1 { name.to_owned() } else { format!("{name}_{count}") }
            }
        };
        self.open.push((name.to_owned(), id.clone()));
        id
    }

    fn of_result(&mut self, result: &Value) -> String {
        let name = text(result, "name").unwrap_or_default();
        let given = text(result, "id").filter(|id| !id.is_empty());
        let answered = self.open.iter().position(|(open, id)| match given {
            Some(given) => id == given,
            None => open == name,
        });
        let answered = answered.map(|at| self.open.remove(at).1);
        answered.unwrap_or_else(|| given.unwrap_or(name).to_owned())
    }
}

/// Tool results are among the user's parts.
fn decode_content(content: &Value, messages: &mut Vec<ModelMessage>, ids: &mut Ids) {
    let role = match text(content, "role") {
        Some("model") => Role::Assistant,
        _ => Role::User,
    };
    let mut parts = Vec::new();
    let mut calls = Vec::new();
    let mut segments = Segments::default();
    for part in list(content, "parts") {
        let is_thought = part.get("thought") == Some(&Value::Bool(true));
        let said = text(part, "text").unwrap_or_default();
        let signature = field(part, "thoughtSignature", "thought_signature");
        let thought = if is_thought { said } else { "" };
        segments.reasoning(thought, signature.and_then(Value::as_str));
        if let Some(call) = field(part, "functionCall", "function_call") {
            let call = ModelToolCall {
                id: ids.of_call(call),
                name: text(call, "name").unwrap_or_default().to_owned(),
                args: call.get("args").cloned().unwrap_or(json!({})),
                args_text: None,
                args_error: None,
            };
            segments.call(&call);
            calls.push(call);
        } else if let Some(response) = field(part, "functionResponse", "function_response") {
            messages.push(tool_result(response, ids.of_result(response)));
        } else if !is_thought {
            segments.text(said);
            parts.extend(element(part));
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
}

/// Clients put the result into `response`, as is or in `{"output"|"result"|"error": …}`.
fn tool_result(response: &Value, id: String) -> ModelMessage {
    let name = text(response, "name").unwrap_or_default();
    let result = response.get("response").unwrap_or(&Value::Null);
    let wrapped = result.as_object().filter(|fields| fields.len() == 1);
    let inner = wrapped.and_then(|fields| {
        fields.get("output").or_else(|| fields.get("result")).or_else(|| fields.get("content"))
    });
    let said = match inner.unwrap_or(result) {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let mut message = ModelMessage::text(Role::Tool, said);
    message.name = Some(name.to_owned());
    message.tool_call_id = Some(id);
    message
}

fn element(part: &Value) -> Option<ContentElement> {
    if let Some(text) = text(part, "text") {
        return Some(ContentElement::Text { text: text.to_owned() });
    }
    let mime = |media: &Value| {
        let mime = field(media, "mimeType", "mime_type").and_then(Value::as_str);
        mime.unwrap_or("application/octet-stream").to_owned()
    };
    if let Some(inline) = field(part, "inlineData", "inline_data") {
        // Google accepts both alphabets of base64, and its clients use the one for URLs.
        let data = text(inline, "data")?.replace('-', "+").replace('_', "/");
        return Some(json::element(json::inline_media(&mime(inline), &data)));
    }
    let file = field(part, "fileData", "file_data")?;
    let url = field(file, "fileUri", "file_uri")?.as_str()?.to_owned();
    let media =
        MediaElement { url: Some(url), mime_type: Some(mime(file)), ..MediaElement::default() };
    Some(json::element(media))
}

pub(super) fn body(decoded: &DecodedRequest, stamp: &Stamp, completion: &Completion) -> Value {
    let mut parts = Vec::new();
    let mut signature = None;
    for part in &completion.parts {
        match part {
            Part::Text(text) => parts.push(signed(json!({"text": text}), &mut signature)),
            Part::Reasoning { text, signature: data } => {
                signature.clone_from(data);
                if !text.is_empty() {
                    parts.push(json!({"text": text, "thought": true}));
                }
            }
            Part::Call { id, name, args } => {
                parts.push(signed(call(id, name, args), &mut signature))
            }
            Part::Media { mime_type, data } => parts.push(inline(mime_type, data)),
        }
    }
    finished(chunk(decoded, stamp, parts), &completion.reason, completion.usage.as_ref())
}

pub(super) fn error_body(status: u16, message: &str) -> Value {
    let kind = match status {
        400 => "INVALID_ARGUMENT",
        401 => "UNAUTHENTICATED",
        403 => "PERMISSION_DENIED",
        404 => "NOT_FOUND",
        429 => "RESOURCE_EXHAUSTED",
        503 | 529 => "UNAVAILABLE",
        504 => "DEADLINE_EXCEEDED",
        500.. => "INTERNAL",
        _ => "FAILED_PRECONDITION",
    };
    json!({"error": {"code": status, "message": message, "status": kind}})
}

fn call(id: &str, name: &str, text: &str) -> Value {
    json!({"functionCall": {"id": id, "name": name, "args": args(text)}})
}

fn inline(mime_type: &str, data: &str) -> Value {
    json!({"inlineData": {"mimeType": mime_type, "data": data}})
}

/// The signature of a thought is on the part after it.
fn signed(mut part: Value, signature: &mut Option<String>) -> Value {
    put(&mut part, "thoughtSignature", signature.take());
    part
}

fn chunk(decoded: &DecodedRequest, stamp: &Stamp, parts: Vec<Value>) -> Value {
    json!({
        "candidates": [{"content": {"role": "model", "parts": parts}, "index": 0}],
        "modelVersion": decoded.model, "responseId": stamp.id,
    })
}

fn finished(mut chunk: Value, reason: &str, usage: Option<&Object>) -> Value {
    let reason = match reason {
        "stop" | "tool_calls" => "STOP",
        "length" => "MAX_TOKENS",
        "content_filter" => "SAFETY",
        // The error that its models are known for.
        "error" => "MALFORMED_FUNCTION_CALL",
        _ => "OTHER",
    };
    put(&mut chunk["candidates"][0], "finishReason", Some(reason));
    put(&mut chunk, "usageMetadata", usage.map(counts));
    chunk
}

/// Thoughts are counted separately from the rest of the output.
fn counts(usage: &Object) -> Value {
    let known = Counts::new(usage);
    let mut counts = json!({});
    put(&mut counts, "promptTokenCount", known.input);
    let without_reasoning =
        known.output.map(|output| output.saturating_sub(known.reasoning.unwrap_or(0)));
    put(&mut counts, "candidatesTokenCount", without_reasoning);
    put(&mut counts, "totalTokenCount", known.total);
    put(&mut counts, "cachedContentTokenCount", known.cached);
    put(&mut counts, "thoughtsTokenCount", known.reasoning);
    counts
}

pub(super) struct Stream {
    decoded: DecodedRequest,
    stamp: Stamp,
    open: Vec<(String, String)>,
    signature: Option<String>,
    usage: Option<Object>,
    pieces: usize,
}

impl Stream {
    pub(super) fn new(decoded: DecodedRequest, stamp: Stamp) -> Self {
        Self { decoded, stamp, open: Vec::new(), signature: None, usage: None, pieces: 0 }
    }

    fn write(&mut self, value: &Value, out: &mut String) {
        match self.decoded.streaming {
            Streaming::Array => {
                let before = if self.pieces == 0 { "[" } else { ",\r\n" };
                out.push_str(&format!("{before}{value}"));
            }
            _ => data(out, value),
        }
        self.pieces += 1;
    }

    fn part(&mut self, part: Value, out: &mut String) {
        let chunk = chunk(&self.decoded, &self.stamp, vec![part]);
        self.write(&chunk, out);
    }
}

impl Encoder for Stream {
    fn begin(&mut self, _out: &mut String) {}

    fn item(&mut self, item: &ModelStreamItem, out: &mut String) {
        match item {
            ModelStreamItem::TextDelta { text } => {
                let part = signed(json!({"text": text}), &mut self.signature);
                self.part(part, out);
            }
            ModelStreamItem::ReasoningDelta { text } => {
                self.part(json!({"text": text, "thought": true}), out);
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
                let part = signed(call(&ended.id, &ended.name, &args), &mut self.signature);
                self.part(part, out);
            }
            ModelStreamItem::Media { segment } => match media(segment) {
                Media::Signature(signature) => self.signature = Some(signature),
                Media::Bytes { mime_type, data } => self.part(inline(&mime_type, &data), out),
            },
            ModelStreamItem::Usage(usage) => self.usage = Some(usage.clone()),
            ModelStreamItem::Finish { reason } => {
                let mut parts = vec![json!({"text": ""})];
                parts[0] = signed(parts[0].take(), &mut self.signature);
                let last = chunk(&self.decoded, &self.stamp, parts);
                let last = finished(last, reason, self.usage.as_ref());
                self.write(&last, out);
                if self.decoded.streaming == Streaming::Array {
                    out.push(']');
                }
            }
        }
    }

    fn error(&mut self, status: u16, message: &str, out: &mut String) {
        self.write(&error_body(status, message), out);
        if self.decoded.streaming == Streaming::Array {
            out.push(']');
        }
    }
}
