//! The providers' wires for clients of the model gateway: a request in, the response of any model out.
//!
//! Invariant: what a client asks for means the same whichever model answers, or is left out; opaque reasoning
//! travels through every client unchanged.

mod opaque;
mod options;

use super::completion::Completion;
use super::json::{self, text};
use super::{DecodedRequest, Encoder, Stamp, anthropic, chat, encoder, gemini, responses};
pub use super::{Streaming, Wire};
use crate::scripted::day;
use crate::{ModelRequest, ModelSettings};
use greenroom_protocol::Object;
use greenroom_protocol::api::models::{ModelStreamItem, ModelToolCall, ProviderResponse};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::time::SystemTime;

/// A client's request for a response.
#[derive(Debug, Clone)]
pub struct ClientRequest {
    wire: Wire,
    decoded: DecodedRequest,
    stamp: Stamp,
}

/// Where the wire has more than a body: Gemini names model and kind of response in the path.
#[derive(Debug, Clone)]
pub struct InPath<'a> {
    pub model: &'a str,
    pub streaming: Streaming,
}

impl ClientRequest {
    /// Reads a request; the error is for the client. `id` is unique for the response.
    pub fn decode(
        wire: Wire,
        in_path: Option<InPath<'_>>,
        body: &[u8],
        id: String,
    ) -> Result<Self, String> {
        let body: Value = serde_json::from_slice(body)
            .map_err(|error| format!("the body is not valid JSON: {error}"))?;
        if !body.is_object() {
            return Err("the body must be a JSON object".to_owned());
        }
        let mut decoded = match (wire, in_path) {
            (Wire::OpenAiChat, _) => chat::decode(&body)?,
            (Wire::OpenAiResponses, _) => responses::decode(&body)?,
            (Wire::Anthropic, _) => anthropic::decode(&body)?,
            (Wire::Gemini, Some(path)) => gemini::decode(&body, path.model, path.streaming)?,
            (Wire::Gemini | Wire::Ollama, _) => return Err("there is no such endpoint".to_owned()),
        };
        if text(&body, "model").is_none() && wire != Wire::Gemini {
            decoded.model = String::new();
        }
        decoded.returns_reasoning = true;
        let now = SystemTime::now();
        let seconds = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
        Ok(Self { wire, decoded, stamp: Stamp { id, seconds, time: day::time(now) } })
    }

    pub fn wire(&self) -> Wire {
        self.wire
    }

    /// The model that the client names; empty if it names none.
    pub fn model(&self) -> &str {
        &self.decoded.model
    }

    /// Sets the name under which the response tells its model.
    pub fn answer_as(&mut self, model: &str) {
        if self.decoded.model.is_empty() {
            self.decoded.model = model.to_owned();
        }
    }

    pub fn streaming(&self) -> Streaming {
        self.decoded.streaming
    }

    /// The request in the host's form, for this model.
    pub fn to_request(&self, target: &ModelSettings) -> ModelRequest {
        let mut request = self.decoded.request.clone();
        request.options = options::neutral(self.wire, &request.options, target);
        for segments in request.messages.iter_mut().filter_map(|message| message.segments.as_mut())
        {
            segments.iter_mut().for_each(|segment| opaque::open(self.wire, target, segment));
        }
        request
    }

    /// The complete response.
    pub fn whole(&self, response: &ProviderResponse) -> Value {
        let mut completion = Completion::default();
        items_of(response).iter().for_each(|item| completion.push(item));
        if self.wire == Wire::Anthropic {
            completion.usage.get_or_insert_with(no_usage);
        }
        super::body(self.wire, &self.decoded, &self.stamp, &completion)
    }

    /// Writes a streamed response.
    pub fn into_stream(self) -> ClientStream {
        let content_type = match self.decoded.streaming {
            Streaming::Array => "application/json",
            _ => "text/event-stream",
        };
        let usage = (self.wire == Wire::Anthropic).then(no_usage);
        let encoder = encoder(self.wire, self.decoded, self.stamp, usage);
        ClientStream { encoder, content_type, with_args: HashSet::new() }
    }
}

/// Anthropic's clients require counts in places where they are not known yet.
fn no_usage() -> Object {
    Object::from_iter([
        ("input_tokens".to_owned(), 0.into()),
        ("output_tokens".to_owned(), 0.into()),
    ])
}

/// The body of a streamed response, piece by piece.
pub struct ClientStream {
    encoder: Box<dyn Encoder>,
    content_type: &'static str,
    /// Calls whose arguments were streamed.
    with_args: HashSet<String>,
}

impl ClientStream {
    pub fn content_type(&self) -> &'static str {
        self.content_type
    }

    /// Whether a comment may be sent to keep the connection open.
    pub fn takes_comments(&self) -> bool {
        self.content_type == "text/event-stream"
    }

    pub fn begin(&mut self) -> String {
        let mut out = String::new();
        self.encoder.begin(&mut out);
        out
    }

    pub fn item(&mut self, mut item: ModelStreamItem) -> String {
        opaque::seal(&mut item);
        let mut out = String::new();
        match &item {
            ModelStreamItem::ToolCallDelta { id, .. } => drop(self.with_args.insert(id.clone())),
            // Some providers send calls in one piece; clients read arguments from deltas only.
            ModelStreamItem::ToolCallEnd(call) if !self.with_args.contains(&call.id) => {
                let delta = ModelStreamItem::ToolCallDelta {
                    id: call.id.clone(),
                    args_text: args_text(call),
                };
                self.encoder.item(&delta, &mut out);
            }
            _ => {}
        }
        self.encoder.item(&item, &mut out);
        out
    }

    /// An error after the response began.
    pub fn error(&mut self, status: u16, message: &str) -> String {
        let mut out = String::new();
        self.encoder.error(status, message, &mut out);
        out
    }
}

/// An error in the shape of the wire. `code` is OpenAI's word for it, where it has one.
pub fn error_body(wire: Wire, status: u16, message: &str, code: Option<&str>) -> Value {
    let mut body = super::error_body(wire, status, message);
    if let (Some(code), Wire::OpenAiChat | Wire::OpenAiResponses) = (code, wire) {
        body["error"]["code"] = code.into();
        if code == "insufficient_quota" {
            body["error"]["type"] = code.into();
        }
    }
    body
}

/// The list of models that a client of the wire reads.
pub fn models(wire: Wire, all: &[&ModelSettings], alias: &str) -> Value {
    let names = || all.iter().map(|model| model.name.as_str()).chain([alias]);
    if wire == Wire::Gemini {
        let models = all.iter().map(|model| gemini_model(&model.name, model));
        let alias = all.first().map(|first| gemini_model(alias, first));
        return json!({"models": models.chain(alias).collect::<Vec<_>>()});
    }
    let data: Vec<Value> = names().map(model).collect();
    json!({
        "object": "list", "data": data, "has_more": false,
        "first_id": names().next(), "last_id": names().last(),
    })
}

/// One of them, under the name that was asked for.
pub fn model_entry(wire: Wire, name: &str, settings: &ModelSettings) -> Value {
    match wire {
        Wire::Gemini => gemini_model(name, settings),
        _ => model(name),
    }
}

/// For clients of OpenAI and of Anthropic.
fn model(name: &str) -> Value {
    json!({
        "id": name, "object": "model", "type": "model", "created": 0, "owned_by": "greenroom",
        "display_name": name, "created_at": "1970-01-01T00:00:00Z",
    })
}

fn gemini_model(name: &str, settings: &ModelSettings) -> Value {
    let mut model = json!({
        "name": format!("models/{name}"), "displayName": name, "version": "1",
        "supportedGenerationMethods": ["generateContent", "streamGenerateContent", "countTokens"],
    });
    json::put(&mut model, "inputTokenLimit", settings.window());
    json::put(&mut model, "outputTokenLimit", settings.max_output_tokens);
    model
}

/// A complete response as the items that it was made of.
fn items_of(response: &ProviderResponse) -> Vec<ModelStreamItem> {
    let mut items: Vec<ModelStreamItem> =
        response.segments.iter().flat_map(segment_items).collect();
    if let Some(Value::Object(usage)) = response.metadata.get("usage") {
        items.push(ModelStreamItem::Usage(usage.clone()));
    }
    let reason = response.metadata.get("finish_reason").and_then(Value::as_str);
    items.push(ModelStreamItem::Finish { reason: reason.unwrap_or("stop").to_owned() });
    items.iter_mut().for_each(opaque::seal);
    items
}

fn segment_items(segment: &Object) -> Vec<ModelStreamItem> {
    let said = segment.get("text").and_then(Value::as_str).unwrap_or_default().to_owned();
    match segment.get("type").and_then(Value::as_str).unwrap_or_default() {
        "text" => vec![ModelStreamItem::TextDelta { text: said }],
        "reasoning" => {
            let thought =
                (!said.is_empty()).then_some(ModelStreamItem::ReasoningDelta { text: said });
            let data = segment.contains_key("data").then(|| {
                let mut segment = segment.clone();
                segment.remove("text");
                ModelStreamItem::Media { segment }
            });
            thought.into_iter().chain(data).collect()
        }
        "tool_call" => {
            let call = segment.get("tool_call").and_then(|it| ModelToolCall::deserialize(it).ok());
            call.map(call_items).unwrap_or_default()
        }
        _ => vec![ModelStreamItem::Media { segment: segment.clone() }],
    }
}

fn call_items(call: ModelToolCall) -> Vec<ModelStreamItem> {
    let args_text = args_text(&call);
    let (id, name) = (call.id.clone(), call.name.clone());
    vec![
        ModelStreamItem::ToolCallStart { id: id.clone(), name },
        ModelStreamItem::ToolCallDelta { id, args_text },
        ModelStreamItem::ToolCallEnd(call),
    ]
}

/// The text of the model, or JSON; a call without arguments has an empty object.
fn args_text(call: &ModelToolCall) -> String {
    match (&call.args_text, &call.args) {
        (Some(text), _) => text.clone(),
        (None, Value::Null) => "{}".to_owned(),
        (None, args) => args.to_string(),
    }
}

#[cfg(test)]
mod tests;
