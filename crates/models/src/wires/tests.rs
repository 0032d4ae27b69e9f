//! Decoders with recorded streams, request builders with complete bodies.
//!
//! Invariant: expectations are written by hand from the providers' documentation.

mod bodies;
mod ends;
mod media;
mod odd;
mod streams;

use super::{Decoder, Flow, PreparedRequest, request};
use crate::assembly::Assembly;
use crate::sse::{Framing, Splitter};
use crate::{ModelError, ModelRequest, ModelSettings, ProviderKind, ToolSpec};
use greenroom_protocol::api::models::ModelStreamItem;
use serde_json::{Value, json};

/// One question and two tools, one of which has a required argument.
fn question() -> ModelRequest {
    let messages = json!([{"role": "user", "content": "what is in my diary, and how late is it?"}]);
    ModelRequest {
        messages: serde_json::from_value(messages).unwrap(),
        tools: vec![
            ToolSpec {
                name: "fs.read".to_owned(),
                description: Some("Reads a file".to_owned()),
                parameters: json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"], "additionalProperties": false}),
            },
            ToolSpec {
                name: "clock".to_owned(),
                description: None,
                parameters: json!({"type": "object", "properties": {}}),
            },
        ],
        options: Default::default(),
    }
}

fn decode(
    provider: ProviderKind,
    request: &ModelRequest,
    pieces: &[&[u8]],
) -> Result<Vec<ModelStreamItem>, ModelError> {
    let settings = ModelSettings::new("m", provider, "m-2025");
    let names = PreparedRequest::new(&settings, request).unwrap().names;
    let mut assembly = Assembly::new(request, names, "s".to_owned());
    let mut decoder = Decoder::new(provider).unwrap();
    let framing = match provider {
        ProviderKind::Ollama => Framing::Lines,
        _ => Framing::Sse,
    };
    let mut splitter = Splitter::new(framing);
    let mut events = Vec::new();
    for call_part in pieces {
        splitter.push(call_part, &mut events)?;
    }
    splitter.finish(&mut events)?;
    for event in &events {
        if decoder.event(event, &mut assembly)? == Flow::Over {
            break;
        }
    }
    decoder.end(&mut assembly)?;
    Ok(std::iter::from_fn(|| assembly.pop()).collect())
}

/// Items of a stream of events, as JSON.
fn items(provider: ProviderKind, events: &[Value]) -> Value {
    json!(decode(provider, &question(), &[sse(events).as_bytes()]).unwrap())
}

fn sse(events: &[Value]) -> String {
    events.iter().map(|event| format!("data: {event}\n\n")).collect()
}

fn chat(delta: Value) -> Value {
    json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}]})
}

fn finish(reason: &str) -> Value {
    json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
}
