//! The body of `POST /messages`.
//!
//! Invariant: turns alternate; all results of a response's calls are in the turn after it; ids contain only valid
//! characters; a request that contains calls also defines their tools.

use super::WIRE;
use crate::options::{Cache, Effort, Reasoning, ResponseFormat, ToolChoice};
use crate::turns::{Media, MediaKind, Part, Source, Turn};
use crate::wires::{PreparedRequest, args_object, object, put};
use crate::{ModelError, ToolSpec};
use base64::Engine;
use greenroom_protocol::{Object, Role};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;

/// Required by the API; every model accepts this value.
const MAX_TOKENS: u64 = 8192;

pub(in crate::wires) fn body(prepared: &PreparedRequest<'_>) -> Result<Object, ModelError> {
    let options = &prepared.options;
    let mut body = object(json!({
        "model": prepared.settings.model,
        "max_tokens": prepared.max_tokens().unwrap_or(MAX_TOKENS),
        "messages": messages(prepared)?,
        "stream": true,
    }));
    put(&mut body, "system", system(prepared));
    let called_before = called_tools(prepared);
    if !prepared.tools.is_empty() {
        body.insert("tools".to_owned(), tools(prepared, prepared.tools));
        put(&mut body, "tool_choice", choice(prepared));
    } else if !called_before.is_empty() {
        body.insert("tools".to_owned(), tools(prepared, &called_before));
        body.insert("tool_choice".to_owned(), json!({"type": "none"}));
    }
    put(&mut body, "temperature", options.temperature.clone().map(Value::Number));
    put(&mut body, "top_p", options.top_p.clone().map(Value::Number));
    put(&mut body, "stop_sequences", Some(&options.stop).filter(|s| !s.is_empty()).cloned());
    let mut output = Object::new();
    match &options.response_format {
        Some(ResponseFormat::Schema { schema, .. }) => {
            let format = json!({"type": "json_schema", "schema": schema});
            output.insert("format".to_owned(), format);
        }
        Some(ResponseFormat::Json) => {
            let text = "Anthropic supports `response_format` only with a schema";
            return Err(ModelError::InvalidRequest(text.to_owned()));
        }
        None => {}
    }
    reasoning(prepared, &mut body, &mut output);
    put(&mut body, "output_config", Some(output).filter(|output| !output.is_empty()));
    Ok(body)
}

/// Newer models decide themselves how long to think; for older ones an effort becomes a budget.
fn reasoning(prepared: &PreparedRequest<'_>, body: &mut Object, output: &mut Object) {
    let budget = match prepared.options.reasoning {
        None => return,
        Some(Reasoning::Effort(Effort::None)) => {
            body.insert("thinking".to_owned(), json!({"type": "disabled"}));
            return;
        }
        Some(Reasoning::Effort(effort)) if is_adaptive(&prepared.settings.model) => {
            let effort = match effort {
                Effort::Minimal => "low",
                other => other.as_str(),
            };
            output.insert("effort".to_owned(), effort.into());
            body.insert("thinking".to_owned(), json!({"type": "adaptive"}));
            return;
        }
        Some(Reasoning::Effort(effort)) => match effort {
            Effort::None | Effort::Minimal => 1024,
            Effort::Low => 2048,
            Effort::Medium => 8192,
            Effort::High => 16384,
        },
        Some(Reasoning::Budget(budget)) => budget,
    };
    let thinking = json!({"type": "enabled", "budget_tokens": budget});
    body.insert("thinking".to_owned(), thinking);
    // The budget counts as output: it is added unless the caller set a maximum.
    if prepared.options.max_tokens.is_none() {
        let most = prepared.settings.max_output_tokens;
        let max_tokens = most.filter(|most| *most > budget).unwrap_or(budget + MAX_TOKENS);
        body.insert("max_tokens".to_owned(), max_tokens.into());
    }
}

/// `claude-opus-4-6` and later, by the version in the name.
fn is_adaptive(model: &str) -> bool {
    let numbers = model.split(['-', '.', '@', ':']).filter_map(|part| part.parse::<u32>().ok());
    let version: Vec<u32> = numbers.filter(|number| *number < 100).take(2).collect();
    match version[..] {
        [major, minor] => (major, minor) >= (4, 6),
        [major] => major >= 5,
        _ => false,
    }
}

fn cache_control(prepared: &PreparedRequest<'_>) -> Option<Value> {
    (prepared.options.cache == Cache::Auto).then(|| json!({"type": "ephemeral"}))
}

fn system(prepared: &PreparedRequest<'_>) -> Option<Value> {
    let turns = prepared.turns.iter().filter(|turn| turn.role == Role::System).map(Turn::text);
    let mut blocks: Vec<Value> = turns
        .filter(|text| !text.is_empty())
        .map(|text| json!({"type": "text", "text": text}))
        .collect();
    if let (Some(last), Some(cache)) = (blocks.last_mut(), cache_control(prepared)) {
        last["cache_control"] = cache;
    }
    (!blocks.is_empty()).then_some(Value::Array(blocks))
}

/// Tools of earlier calls by name: the API rejects messages with calls unless tools are defined.
fn called_tools(prepared: &PreparedRequest<'_>) -> Vec<ToolSpec> {
    let names = prepared.turns.iter().flat_map(Turn::calls).map(|call| call.name.as_str());
    let names: BTreeSet<&str> = names.collect();
    let entry = names.into_iter().map(|name| ToolSpec {
        name: name.to_owned(),
        description: None,
        parameters: json!({"type": "object"}),
    });
    entry.collect()
}

fn tools(prepared: &PreparedRequest<'_>, tools: &[ToolSpec]) -> Value {
    let entry = tools.iter().map(|tool| {
        let mut entry = object(json!({"name": prepared.names.to_wire(&tool.name)}));
        put(&mut entry, "description", tool.description.clone());
        entry.insert("input_schema".to_owned(), tool.parameters.clone());
        Value::Object(entry)
    });
    let mut entry: Vec<Value> = entry.collect();
    if let (Some(last), Some(cache)) = (entry.last_mut(), cache_control(prepared)) {
        last["cache_control"] = cache;
    }
    Value::Array(entry)
}

fn choice(prepared: &PreparedRequest<'_>) -> Option<Value> {
    let serial = prepared.options.parallel_tool_calls == Some(false);
    let mut choice = match &prepared.options.tool_choice {
        None if serial => json!({"type": "auto"}),
        None => return None,
        Some(ToolChoice::Auto) => json!({"type": "auto"}),
        Some(ToolChoice::None) => return Some(json!({"type": "none"})),
        Some(ToolChoice::Required) => json!({"type": "any"}),
        Some(ToolChoice::Named(name)) => {
            json!({"type": "tool", "name": prepared.names.to_wire(name)})
        }
    };
    if serial {
        choice["disable_parallel_tool_use"] = true.into();
    }
    Some(choice)
}

fn messages(prepared: &PreparedRequest<'_>) -> Result<Vec<Value>, ModelError> {
    let mut messages: Vec<(&str, Vec<Value>)> = Vec::new();
    for turn in &prepared.turns {
        let (role, blocks) = match turn.role {
            Role::System => continue,
            Role::Assistant => ("assistant", assistant(prepared, turn)),
            Role::User => ("user", content(turn)?),
            Role::Tool => ("user", vec![result(turn)?]),
        };
        match messages.last_mut() {
            Some((last_role, all)) if *last_role == role => all.extend(blocks),
            _ => messages.push((role, blocks)),
        }
    }
    messages.retain(|(_, blocks)| !blocks.is_empty());
    // The next request begins with this one: what is cached up to here is read then.
    if let (Some(("user", last)), Some(cache)) = (messages.last_mut(), cache_control(prepared)) {
        last.iter_mut().last().into_iter().for_each(|block| block["cache_control"] = cache.clone());
    }
    let made = messages.into_iter();
    Ok(made.map(|(role, content)| json!({"role": role, "content": content})).collect())
}

fn content(turn: &Turn<'_>) -> Result<Vec<Value>, ModelError> {
    let mut blocks = Vec::new();
    for part in &turn.parts {
        match part {
            Part::Text(text) => blocks.push(json!({"type": "text", "text": text})),
            Part::Media(media) => blocks.push(media_block(media)?),
            Part::Reasoning { .. } | Part::Call(_) => {}
        }
    }
    Ok(blocks)
}

fn result(turn: &Turn<'_>) -> Result<Value, ModelError> {
    let id = turn.answers.as_ref().map_or("", |(id, _)| id);
    let content = match turn.media().next().is_some() {
        true => Value::Array(content(turn)?),
        false => turn.text().into(),
    };
    let mut result = json!({"type": "tool_result", "tool_use_id": call_id(id), "content": content});
    if turn.is_error {
        result["is_error"] = true.into();
    }
    Ok(result)
}

fn media_block(media: &Media<'_>) -> Result<Value, ModelError> {
    let kind = match (media.kind, media.mime()) {
        (MediaKind::Image, _) => "image",
        (MediaKind::File, "application/pdf" | "text/plain") => "document",
        (MediaKind::File, _) if matches!(media.source, Source::Url(_)) => "document",
        _ => return Err(media.unsupported("Anthropic")),
    };
    let source = match media.source {
        Source::Url(url) => json!({"type": "url", "url": url}),
        Source::Base64(data) if media.mime() == "text/plain" => {
            json!({"type": "text", "media_type": "text/plain", "data": plain(data)?})
        }
        Source::Base64(data) => {
            json!({"type": "base64", "media_type": media.mime(), "data": data})
        }
    };
    Ok(json!({"type": kind, "source": source}))
}

fn plain(data: &str) -> Result<String, ModelError> {
    let bytes = base64::engine::general_purpose::STANDARD.decode(data).ok();
    bytes
        .and_then(|bytes| String::from_utf8(bytes).ok())
        .ok_or_else(|| ModelError::InvalidRequest("a text file is not UTF-8".to_owned()))
}

fn assistant(prepared: &PreparedRequest<'_>, turn: &Turn<'_>) -> Vec<Value> {
    let blocks = turn.parts.iter().filter_map(|part| match part {
        Part::Text(text) => Some(json!({"type": "text", "text": text})),
        Part::Call(call) => Some(json!({
            "type": "tool_use",
            "id": call_id(&call.id),
            "name": prepared.names.to_wire(&call.name),
            "input": args_object(call),
        })),
        Part::Reasoning { text, data: Some(data) } if data["wire"] == WIRE => {
            match (&data["signature"], &data["redacted"]) {
                (Value::String(signature), _) => {
                    Some(json!({"type": "thinking", "thinking": text, "signature": signature}))
                }
                (_, Value::String(data)) => {
                    Some(json!({"type": "redacted_thinking", "data": data}))
                }
                _ => None,
            }
        }
        Part::Reasoning { .. } | Part::Media(_) => None,
    });
    blocks.collect()
}

/// Ids of other providers may contain characters that this one rejects.
fn call_id(id: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !id.is_empty() && id.chars().all(fits) {
        return id.to_owned();
    }
    let hash = Sha256::digest(id.as_bytes());
    hash[..12].iter().fold("call_".to_owned(), |id, byte| format!("{id}{byte:02x}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_in_the_name_determines_the_thinking_mode() {
        for model in ["claude-opus-4-6", "claude-sonnet-4-6", "claude-opus-5", "claude-opus-4.8"] {
            assert!(is_adaptive(model), "{model}");
        }
        for model in ["claude-sonnet-4-5-20250929", "claude-3-7-sonnet-latest", "claude-haiku-4-5"]
        {
            assert!(!is_adaptive(model), "{model}");
        }
    }

    #[test]
    fn invalid_ids_are_replaced_deterministically() {
        assert_eq!(call_id("toolu_01A-b"), "toolu_01A-b");
        assert_eq!(call_id("functions.read:0"), call_id("functions.read:0"));
        assert_ne!(call_id("functions.read:0"), call_id("functions.read:1"));
    }
}
