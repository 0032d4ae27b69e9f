//! The body of `POST /chat/completions`.
//!
//! Invariant: nothing is between a call and its result; media of results follow the last result.

use super::WIRE;
use crate::ModelError;
use crate::options::{Effort, Options, Reasoning, ResponseFormat, ToolChoice};
use crate::turns::{Media, MediaKind, Part, Source, Turn};
use crate::wires::{PreparedRequest, args_text, function_tools, object, put};
use base64::Engine;
use greenroom_protocol::{Object, Role};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

pub(in crate::wires) fn body(prepared: &PreparedRequest<'_>) -> Result<Object, ModelError> {
    let provider = prepared.settings.provider_name.as_str();
    let mut body = object(json!({
        "model": prepared.settings.model,
        "messages": messages(prepared)?,
        "stream": true,
    }));
    // Mistral always sends usage and rejects this option.
    if provider != "mistral" {
        body.insert("stream_options".to_owned(), json!({"include_usage": true}));
    }
    if !prepared.tools.is_empty() {
        body.insert("tools".to_owned(), function_tools(prepared));
        put(
            &mut body,
            "tool_choice",
            prepared.options.tool_choice.as_ref().map(|c| choice(prepared, c)),
        );
        put(&mut body, "parallel_tool_calls", prepared.options.parallel_tool_calls);
    }
    let max_tokens = match is_openai(provider) {
        true => "max_completion_tokens",
        false => "max_tokens",
    };
    put(&mut body, max_tokens, prepared.max_tokens());
    sampling(&prepared.options, &mut body);
    put(&mut body, "response_format", prepared.options.response_format.as_ref().map(format));
    put(&mut body, "prompt_cache_key", prepared.options.prompt_cache_key(provider));
    reasoning(provider, prepared.options.reasoning, &mut body)?;
    Ok(body)
}

fn sampling(options: &Options, body: &mut Object) {
    put(body, "temperature", options.temperature.clone().map(Value::Number));
    put(body, "top_p", options.top_p.clone().map(Value::Number));
    put(body, "seed", options.seed.clone().map(Value::Number));
    put(body, "stop", Some(&options.stop).filter(|stop| !stop.is_empty()).cloned());
}

/// OpenAI itself rejects unknown fields and no longer accepts `max_tokens`.
fn is_openai(provider: &str) -> bool {
    matches!(provider, "openai" | "azure")
}

fn choice(prepared: &PreparedRequest<'_>, choice: &ToolChoice) -> Value {
    match choice {
        ToolChoice::Auto => "auto".into(),
        ToolChoice::None => "none".into(),
        ToolChoice::Required => "required".into(),
        ToolChoice::Named(name) => {
            json!({"type": "function", "function": {"name": prepared.names.to_wire(name)}})
        }
    }
}

fn format(format: &ResponseFormat) -> Value {
    match format {
        ResponseFormat::Json => json!({"type": "json_object"}),
        ResponseFormat::Schema { name, schema, strict } => {
            let name = name.as_deref().unwrap_or("answer");
            let mut json_schema = object(json!({"name": name, "schema": schema}));
            put(&mut json_schema, "strict", *strict);
            json!({"type": "json_schema", "json_schema": json_schema})
        }
    }
}

fn reasoning(
    provider: &str,
    reasoning: Option<Reasoning>,
    body: &mut Object,
) -> Result<(), ModelError> {
    let (name, value) = match (reasoning, provider) {
        (None, _) => return Ok(()),
        (Some(Reasoning::Effort(effort)), "openrouter") => {
            ("reasoning", json!({"effort": effort.as_str()}))
        }
        (Some(Reasoning::Budget(budget)), "openrouter") => {
            ("reasoning", json!({"max_tokens": budget}))
        }
        (Some(Reasoning::Effort(Effort::None)), "deepseek" | "moonshot" | "zhipu") => {
            ("thinking", json!({"type": "disabled"}))
        }
        (Some(Reasoning::Effort(effort)), _) => ("reasoning_effort", effort.as_str().into()),
        (Some(Reasoning::Budget(_)), _) => {
            let text = "this provider supports an effort for `reasoning`, not a budget";
            return Err(ModelError::InvalidRequest(text.to_owned()));
        }
    };
    body.insert(name.to_owned(), value);
    Ok(())
}

fn messages(prepared: &PreparedRequest<'_>) -> Result<Vec<Value>, ModelError> {
    let mut messages = Vec::new();
    let mut media_of_results: Vec<Value> = Vec::new();
    for turn in &prepared.turns {
        if turn.role != Role::Tool && !media_of_results.is_empty() {
            let content = std::mem::take(&mut media_of_results);
            messages.push(json!({"role": "user", "content": content}));
        }
        match turn.role {
            Role::System => messages.push(json!({"role": "system", "content": turn.text()})),
            Role::User => {
                messages.push(json!({"role": "user", "content": content(prepared, turn)?}))
            }
            Role::Assistant => messages.push(assistant(prepared, turn)),
            Role::Tool => {
                let id = turn.answers.as_ref().map_or("", |(id, _)| id);
                let (id, content) = (call_id(prepared, id), turn.text());
                messages.push(json!({"role": "tool", "tool_call_id": id, "content": content}));
                for media in turn.media() {
                    media_of_results.push(media_part(prepared, media)?);
                }
            }
        }
    }
    if !media_of_results.is_empty() {
        messages.push(json!({"role": "user", "content": media_of_results}));
    }
    Ok(messages)
}

fn content(prepared: &PreparedRequest<'_>, turn: &Turn<'_>) -> Result<Value, ModelError> {
    if turn.media().next().is_none() {
        return Ok(turn.text().into());
    }
    let mut parts = Vec::new();
    for part in &turn.parts {
        match part {
            Part::Text(text) => parts.push(json!({"type": "text", "text": text})),
            Part::Media(media) => parts.push(media_part(prepared, media)?),
            Part::Reasoning { .. } | Part::Call(_) => {}
        }
    }
    Ok(Value::Array(parts))
}

fn media_part(prepared: &PreparedRequest<'_>, media: &Media<'_>) -> Result<Value, ModelError> {
    let openai = is_openai(&prepared.settings.provider_name);
    match (media.kind, media.source) {
        (MediaKind::Image, _) => {
            Ok(json!({"type": "image_url", "image_url": {"url": media.data_url()}}))
        }
        (MediaKind::Audio, Source::Base64(data)) => {
            let format = match media.mime() {
                "audio/mpeg" | "audio/mp3" => "mp3",
                "audio/wav" | "audio/x-wav" | "audio/wave" => "wav",
                other => other.strip_prefix("audio/").unwrap_or(other),
            };
            Ok(json!({"type": "input_audio", "input_audio": {"data": data, "format": format}}))
        }
        (MediaKind::Video, _) if !openai => {
            Ok(json!({"type": "video_url", "video_url": {"url": media.data_url()}}))
        }
        (MediaKind::File, Source::Base64(_)) => {
            let name = media.name.unwrap_or("file");
            let file = json!({"filename": name, "file_data": media.data_url()});
            Ok(json!({"type": "file", "file": file}))
        }
        _ => Err(media.unsupported("chat completions")),
    }
}

fn assistant(prepared: &PreparedRequest<'_>, turn: &Turn<'_>) -> Value {
    let calls: Vec<Value> = turn
        .calls()
        .map(|call| {
            let function =
                json!({"name": prepared.names.to_wire(&call.name), "arguments": args_text(call)});
            json!({"id": call_id(prepared, &call.id), "type": "function", "function": function})
        })
        .collect();
    let content = match turn.text() {
        text if text.is_empty() && !calls.is_empty() => Value::Null,
        text => text.into(),
    };
    let mut message = object(json!({"role": "assistant", "content": content}));
    put(&mut message, "tool_calls", Some(calls).filter(|calls| !calls.is_empty()));
    reasoning_back(turn, &mut message);
    Value::Object(message)
}

/// Reasoning goes back in the field in which it came; what came from elsewhere stays here.
fn reasoning_back(turn: &Turn<'_>, message: &mut Object) {
    let mut details: Vec<Value> = Vec::new();
    for part in &turn.parts {
        let Part::Reasoning { text, data: Some(data) } = part else { continue };
        if data["wire"] != WIRE {
            continue;
        }
        if let Some(field) = data["field"].as_str().filter(|_| !text.is_empty()) {
            let had = message.get(field).and_then(Value::as_str).unwrap_or_default();
            message.insert(field.to_owned(), format!("{had}{text}").into());
        }
        details.extend(data["details"].as_array().into_iter().flatten().cloned());
    }
    put(message, "reasoning_details", Some(details).filter(|details| !details.is_empty()));
}

/// Mistral takes ids of nine letters and digits only.
fn call_id(prepared: &PreparedRequest<'_>, id: &str) -> String {
    let fits = id.len() == 9 && id.chars().all(|c| c.is_ascii_alphanumeric());
    if prepared.settings.provider_name != "mistral" || fits {
        return id.to_owned();
    }
    let hash = base64::engine::general_purpose::STANDARD.encode(Sha256::digest(id.as_bytes()));
    hash.chars().filter(char::is_ascii_alphanumeric).take(9).collect()
}
