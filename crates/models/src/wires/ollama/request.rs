//! The body of `POST /api/chat`.
//!
//! Invariant: images are inline; a tool choice that Ollama does not support is rejected, not ignored.

use crate::ModelError;
use crate::options::{Effort, Reasoning, ResponseFormat, ToolChoice};
use crate::turns::{MediaKind, Part, Source, Turn};
use crate::wires::{PreparedRequest, args_object, function_tools, object, put};
use greenroom_protocol::{Object, Role};
use serde_json::{Value, json};

pub(in crate::wires) fn body(prepared: &PreparedRequest<'_>) -> Result<Object, ModelError> {
    let mut body = object(json!({
        "model": prepared.settings.model,
        "messages": messages(prepared)?,
        "stream": true,
    }));
    let offered = match prepared.options.tool_choice {
        None | Some(ToolChoice::Auto) => !prepared.tools.is_empty(),
        Some(ToolChoice::None) => false,
        Some(ToolChoice::Required | ToolChoice::Named(_)) => {
            let text = "Ollama supports only `auto` and `none` for `tool_choice`";
            return Err(ModelError::InvalidRequest(text.to_owned()));
        }
    };
    if offered {
        body.insert("tools".to_owned(), function_tools(prepared));
    }
    put(&mut body, "format", prepared.options.response_format.as_ref().map(format));
    put(&mut body, "think", prepared.options.reasoning.map(|r| think(&prepared.settings.model, r)));
    let options = options(prepared);
    put(&mut body, "options", Some(options).filter(|options| !options.is_empty()));
    Ok(body)
}

fn options(prepared: &PreparedRequest<'_>) -> Object {
    let options = &prepared.options;
    let mut made = Object::new();
    put(&mut made, "temperature", options.temperature.clone().map(Value::Number));
    put(&mut made, "top_p", options.top_p.clone().map(Value::Number));
    put(&mut made, "seed", options.seed.clone().map(Value::Number));
    put(&mut made, "num_predict", prepared.max_tokens());
    put(&mut made, "num_ctx", prepared.settings.context_window);
    put(&mut made, "stop", Some(&options.stop).filter(|stop| !stop.is_empty()).cloned());
    made
}

fn format(format: &ResponseFormat) -> Value {
    match format {
        ResponseFormat::Json => "json".into(),
        ResponseFormat::Schema { schema, .. } => schema.clone(),
    }
}

/// Only gpt-oss has effort levels.
fn think(model: &str, reasoning: Reasoning) -> Value {
    match reasoning {
        Reasoning::Effort(Effort::None) => false.into(),
        Reasoning::Effort(Effort::Minimal) if model.contains("gpt-oss") => "low".into(),
        Reasoning::Effort(effort) if model.contains("gpt-oss") => effort.as_str().into(),
        Reasoning::Effort(_) | Reasoning::Budget(_) => true.into(),
    }
}

fn messages(prepared: &PreparedRequest<'_>) -> Result<Vec<Value>, ModelError> {
    let mut messages = Vec::with_capacity(prepared.turns.len());
    for turn in &prepared.turns {
        let mut message = object(json!({"role": turn.role.as_str(), "content": turn.text()}));
        put(&mut message, "images", Some(images(turn)?).filter(|images| !images.is_empty()));
        if turn.role == Role::Assistant {
            put(&mut message, "thinking", thinking(turn));
            put(&mut message, "tool_calls", calls(prepared, turn));
        }
        if let Some((id, name)) = &turn.answers {
            message.insert("tool_call_id".to_owned(), (*id).into());
            put(
                &mut message,
                "tool_name",
                Some(prepared.names.to_wire(name)).filter(|_| !name.is_empty()),
            );
        }
        messages.push(Value::Object(message));
    }
    Ok(messages)
}

fn images(turn: &Turn<'_>) -> Result<Vec<Value>, ModelError> {
    turn.media()
        .map(|media| match (media.kind, media.source) {
            (MediaKind::Image, Source::Base64(data)) => Ok(data.into()),
            _ => Err(media.unsupported("Ollama")),
        })
        .collect()
}

fn thinking(turn: &Turn<'_>) -> Option<String> {
    let texts = turn.parts.iter().filter_map(|part| match part {
        Part::Reasoning { text, .. } => Some(*text),
        _ => None,
    });
    Some(texts.collect::<String>()).filter(|text| !text.is_empty())
}

fn calls(prepared: &PreparedRequest<'_>, turn: &Turn<'_>) -> Option<Vec<Value>> {
    let calls = turn.calls().map(|call| {
        let name = prepared.names.to_wire(&call.name);
        json!({"id": call.id, "function": {"name": name, "arguments": args_object(call)}})
    });
    Some(calls.collect::<Vec<Value>>()).filter(|calls| !calls.is_empty())
}
