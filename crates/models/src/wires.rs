//! The five wire formats: each builds a request body and decodes response events.
//!
//! Invariant: no IO here; a request means the same in every wire.

mod anthropic;
mod gemini;
mod ollama;
mod openai_chat;
mod openai_responses;
#[cfg(test)]
mod tests;

use crate::assembly::Assembly;
use crate::names::Names;
use crate::options::Options;
use crate::sse::Framing;
use crate::turns::{Turn, turns};
use crate::{
    ModelError, ModelRequest, ModelSettings, ProviderKind, ToolSpec, presets, provider_error,
};
use greenroom_protocol::Object;
use serde_json::{Value, json};

/// A validated request, ready to be written for any wire.
pub(crate) struct PreparedRequest<'a> {
    pub(crate) settings: &'a ModelSettings,
    pub(crate) turns: Vec<Turn<'a>>,
    pub(crate) tools: &'a [ToolSpec],
    pub(crate) options: Options,
    pub(crate) names: Names,
}

impl<'a> PreparedRequest<'a> {
    pub(crate) fn new(
        settings: &'a ModelSettings,
        request: &'a ModelRequest,
    ) -> Result<Self, ModelError> {
        let turns = turns(&request.messages)?;
        let called = turns.iter().flat_map(Turn::calls).map(|call| call.name.as_str());
        let answered = turns.iter().filter_map(|turn| Some(turn.answers.as_ref()?.1.as_str()));
        let offered = request.tools.iter().map(|tool| tool.name.as_str());
        let names = offered.chain(called).chain(answered).filter(|name| !name.is_empty());
        let names = Names::new(names);
        let options = Options::new(&settings.options, &request.options)?;
        Ok(Self { settings, turns, tools: &request.tools, options, names })
    }

    /// The smaller of the requested and the configured limit.
    pub(crate) fn max_tokens(&self) -> Option<u64> {
        self.options.max_tokens.into_iter().chain(self.settings.max_output_tokens).min()
    }
}

#[derive(Debug, PartialEq)]
pub(crate) struct WireRequest {
    pub(crate) url: String,
    pub(crate) framing: Framing,
    pub(crate) body: Value,
}

pub(crate) fn request(prepared: &PreparedRequest<'_>) -> Result<WireRequest, ModelError> {
    let settings = prepared.settings;
    let base = presets::base_url(settings)?;
    let (path, framing, body) = match settings.provider {
        ProviderKind::OpenAiChat => {
            ("/chat/completions".to_owned(), Framing::Sse, openai_chat::request::body(prepared)?)
        }
        ProviderKind::OpenAiResponses => {
            ("/responses".to_owned(), Framing::Sse, openai_responses::request::body(prepared)?)
        }
        ProviderKind::Anthropic => {
            ("/messages".to_owned(), Framing::Sse, anthropic::request::body(prepared)?)
        }
        ProviderKind::Gemini => {
            let model = settings.model.trim_start_matches("models/");
            let path = format!("/models/{model}:streamGenerateContent?alt=sse");
            (path, Framing::Sse, gemini::request::body(prepared)?)
        }
        ProviderKind::Ollama => {
            ("/api/chat".to_owned(), Framing::Lines, ollama::request::body(prepared)?)
        }
        ProviderKind::Scripted => return Err(ModelError::Unsupported("network")),
    };
    let mut body = body;
    prepared.options.merge_rest_into(&mut body);
    Ok(WireRequest { url: presets::join(&base, &path), framing, body: Value::Object(body) })
}

/// Headers for key and API version.
pub(crate) fn headers(settings: &ModelSettings) -> Vec<(&'static str, String)> {
    let key = settings.api_key.as_ref().map(|key| key.expose());
    let mut headers = Vec::new();
    match settings.provider {
        ProviderKind::Anthropic => {
            headers.push(("anthropic-version", "2023-06-01".to_owned()));
            headers.extend(key.map(|key| ("x-api-key", key.to_owned())));
        }
        ProviderKind::Gemini => headers.extend(key.map(|key| ("x-goog-api-key", key.to_owned()))),
        _ if settings.provider_name == "azure" => {
            headers.extend(key.map(|key| ("api-key", key.to_owned())));
        }
        _ => headers.extend(key.map(|key| ("authorization", format!("Bearer {key}")))),
    }
    headers
}

/// Decodes events of one wire to an assembly.
#[derive(Debug)]
pub(crate) enum Decoder {
    OpenAiChat(openai_chat::stream::Decoder),
    OpenAiResponses(openai_responses::stream::Decoder),
    Anthropic(anthropic::stream::Decoder),
    Gemini,
    Ollama,
}

/// Whether to read more of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flow {
    More,
    Over,
}

impl Decoder {
    pub(crate) fn new(provider: ProviderKind) -> Result<Self, ModelError> {
        match provider {
            ProviderKind::OpenAiChat => Ok(Self::OpenAiChat(Default::default())),
            ProviderKind::OpenAiResponses => Ok(Self::OpenAiResponses(Default::default())),
            ProviderKind::Anthropic => Ok(Self::Anthropic(Default::default())),
            ProviderKind::Gemini => Ok(Self::Gemini),
            ProviderKind::Ollama => Ok(Self::Ollama),
            ProviderKind::Scripted => Err(ModelError::Unsupported("network")),
        }
    }

    /// Decodes one event; emits the finish at the end of the response.
    pub(crate) fn event(&mut self, data: &str, into: &mut Assembly) -> Result<Flow, ModelError> {
        if into.is_finished() || data.trim().is_empty() {
            return Ok(Flow::More);
        }
        if data.trim() == "[DONE]" {
            self.finish(into)?;
            return Ok(Flow::Over);
        }
        let event: Value = serde_json::from_str(data).map_err(|error| {
            ModelError::InvalidResponse(format!("an event is not JSON: {error}"))
        })?;
        if let Some(error) = provider_error::in_event(&event) {
            return Err(error);
        }
        let flow = match self {
            Self::OpenAiChat(decoder) => decoder.event(&event, into)?,
            Self::OpenAiResponses(decoder) => decoder.event(&event, into)?,
            Self::Anthropic(decoder) => decoder.event(&event, into)?,
            Self::Gemini => gemini::stream::event(&event, into)?,
            Self::Ollama => ollama::stream::event(&event, into)?,
        };
        if flow == Flow::Over {
            self.finish(into)?;
        }
        Ok(flow)
    }

    /// End of the body. A response without finish reason was interrupted.
    pub(crate) fn end(&mut self, into: &mut Assembly) -> Result<(), ModelError> {
        if !into.is_finished() && !into.is_complete() {
            return Err(ModelError::Unavailable("the response broke off".to_owned()));
        }
        self.finish(into)
    }

    fn finish(&mut self, into: &mut Assembly) -> Result<(), ModelError> {
        if let Self::OpenAiChat(decoder) = self {
            decoder.close_reasoning(into)?;
        }
        into.finish();
        Ok(())
    }
}

/// `[{"type": "function", "function": {…}}]`, the tools of OpenAI and Ollama.
fn function_tools(prepared: &PreparedRequest<'_>) -> Value {
    let tools = prepared.tools.iter().map(|tool| {
        let mut function = object(json!({"name": prepared.names.to_wire(&tool.name)}));
        put(&mut function, "description", tool.description.clone());
        function.insert("parameters".to_owned(), tool.parameters.clone());
        json!({"type": "function", "function": function})
    });
    Value::Array(tools.collect())
}

/// Arguments for wires that require an object.
fn args_object(call: &greenroom_protocol::api::models::ModelToolCall) -> Value {
    match (&call.args_text, &call.args) {
        (Some(text), _) => json!({"invalid_json": text}),
        (None, Value::Object(_)) => call.args.clone(),
        (None, Value::Null) => json!({}),
        (None, other) => json!({"value": other}),
    }
}

/// Arguments for wires that take text; some of them require an object in it.
fn args_text(call: &greenroom_protocol::api::models::ModelToolCall) -> String {
    args_object(call).to_string()
}

fn put<T: Into<Value>>(object: &mut Object, name: &str, value: Option<T>) {
    if let Some(value) = value {
        object.insert(name.to_owned(), value.into());
    }
}

fn object(value: Value) -> Object {
    match value {
        Value::Object(object) => object,
        _ => Object::new(),
    }
}

fn text<'a>(event: &'a Value, name: &str) -> Option<&'a str> {
    event.get(name).and_then(Value::as_str)
}

fn count(event: &Value, name: &str) -> Option<u64> {
    event.get(name).and_then(Value::as_u64)
}

/// A list field; empty if missing.
fn list<'a>(event: &'a Value, name: &str) -> &'a [Value] {
    event.get(name).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}
