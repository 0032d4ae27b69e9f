//! The body of `POST /responses`.
//!
//! Invariant: items are in the order of the conversation; reasoning without its encrypted form is not sent back,
//! because the provider would look it up among stored items.

use super::WIRE;
use crate::ModelError;
use crate::options::{Effort, Reasoning, ResponseFormat, ToolChoice};
use crate::turns::{Media, MediaKind, Part, Source, Turn};
use crate::wires::{PreparedRequest, args_text, object, put};
use greenroom_protocol::{Object, Role};
use serde_json::{Value, json};

pub(in crate::wires) fn body(prepared: &PreparedRequest<'_>) -> Result<Object, ModelError> {
    let options = &prepared.options;
    if !options.stop.is_empty() {
        let text = "Responses does not support `stop`";
        return Err(ModelError::InvalidRequest(text.to_owned()));
    }
    let mut body = object(json!({
        "model": prepared.settings.model,
        "input": input(prepared)?,
        "stream": true,
        "store": false,
    }));
    if !prepared.tools.is_empty() {
        body.insert("tools".to_owned(), tools(prepared));
        put(&mut body, "tool_choice", options.tool_choice.as_ref().map(|c| choice(prepared, c)));
        put(&mut body, "parallel_tool_calls", options.parallel_tool_calls);
    }
    put(&mut body, "max_output_tokens", prepared.max_tokens());
    put(&mut body, "temperature", options.temperature.clone().map(Value::Number));
    put(&mut body, "top_p", options.top_p.clone().map(Value::Number));
    let format = options.response_format.as_ref().map(format);
    put(&mut body, "text", format.map(|format| json!({"format": format})));
    put(&mut body, "prompt_cache_key", options.prompt_cache_key(&prepared.settings.provider_name));
    reasoning(prepared, &mut body)?;
    Ok(body)
}

fn tools(prepared: &PreparedRequest<'_>) -> Value {
    let tools = prepared.tools.iter().map(|tool| {
        let mut made =
            object(json!({"type": "function", "name": prepared.names.to_wire(&tool.name)}));
        put(&mut made, "description", tool.description.clone());
        made.insert("parameters".to_owned(), tool.parameters.clone());
        // The default would change the schema.
        made.insert("strict".to_owned(), false.into());
        Value::Object(made)
    });
    Value::Array(tools.collect())
}

fn choice(prepared: &PreparedRequest<'_>, choice: &ToolChoice) -> Value {
    match choice {
        ToolChoice::Auto => "auto".into(),
        ToolChoice::None => "none".into(),
        ToolChoice::Required => "required".into(),
        ToolChoice::Named(name) => {
            json!({"type": "function", "name": prepared.names.to_wire(name)})
        }
    }
}

fn format(format: &ResponseFormat) -> Value {
    match format {
        ResponseFormat::Json => json!({"type": "json_object"}),
        ResponseFormat::Schema { name, schema, strict } => {
            let name = name.as_deref().unwrap_or("answer");
            let mut made = object(json!({"type": "json_schema", "name": name, "schema": schema}));
            put(&mut made, "strict", *strict);
            Value::Object(made)
        }
    }
}

/// Models without reasoning reject a request for encrypted reasoning.
fn reasoning(prepared: &PreparedRequest<'_>, body: &mut Object) -> Result<(), ModelError> {
    let include_reasoning = match prepared.options.reasoning {
        Some(Reasoning::Effort(Effort::None)) => {
            body.insert("reasoning".to_owned(), json!({"effort": "none"}));
            false
        }
        Some(Reasoning::Effort(effort)) => {
            let reasoning = json!({"effort": effort.as_str(), "summary": "auto"});
            body.insert("reasoning".to_owned(), reasoning);
            true
        }
        Some(Reasoning::Budget(_)) => {
            let text = "Responses supports an effort for `reasoning`, not a budget";
            return Err(ModelError::InvalidRequest(text.to_owned()));
        }
        None => reasons(&prepared.settings.model),
    };
    if include_reasoning {
        body.insert("include".to_owned(), json!(["reasoning.encrypted_content"]));
    }
    Ok(())
}

fn reasons(model: &str) -> bool {
    let model = model.rsplit('/').next().unwrap_or(model);
    let o_series = model.strip_prefix('o').is_some_and(|rest| rest.starts_with(char::is_numeric));
    o_series
        || ((model.starts_with("gpt-5") || model.contains("codex")) && !model.contains("-chat"))
}

fn input(prepared: &PreparedRequest<'_>) -> Result<Vec<Value>, ModelError> {
    let mut items = Vec::new();
    for turn in &prepared.turns {
        match turn.role {
            Role::System | Role::User => {
                let content = content(turn)?;
                let role = turn.role.as_str();
                items.push(json!({"type": "message", "role": role, "content": content}));
            }
            Role::Assistant => assistant(prepared, turn, &mut items),
            Role::Tool => {
                let output = match turn.media().next().is_some() {
                    true => Value::Array(content(turn)?),
                    false => turn.text().into(),
                };
                let id = turn.answers.as_ref().map_or("", |(id, _)| id);
                items
                    .push(json!({"type": "function_call_output", "call_id": id, "output": output}));
            }
        }
    }
    Ok(items)
}

fn content(turn: &Turn<'_>) -> Result<Vec<Value>, ModelError> {
    let mut parts = Vec::new();
    for part in &turn.parts {
        match part {
            Part::Text(text) => parts.push(json!({"type": "input_text", "text": text})),
            Part::Media(media) => parts.push(media_part(media)?),
            Part::Reasoning { .. } | Part::Call(_) => {}
        }
    }
    Ok(parts)
}

fn media_part(media: &Media<'_>) -> Result<Value, ModelError> {
    match (media.kind, media.source) {
        (MediaKind::Image, _) => Ok(json!({"type": "input_image", "image_url": media.data_url()})),
        (MediaKind::File, Source::Url(url)) => Ok(json!({"type": "input_file", "file_url": url})),
        (MediaKind::File, Source::Base64(_)) => {
            let name = media.name.unwrap_or("file");
            Ok(json!({"type": "input_file", "filename": name, "file_data": media.data_url()}))
        }
        _ => Err(media.unsupported("Responses")),
    }
}

fn assistant(prepared: &PreparedRequest<'_>, turn: &Turn<'_>, items: &mut Vec<Value>) {
    for part in &turn.parts {
        match part {
            Part::Text(text) => {
                let content = json!([{"type": "output_text", "text": text}]);
                items.push(json!({"type": "message", "role": "assistant", "content": content}));
            }
            Part::Call(call) => items.push(json!({
                "type": "function_call",
                "call_id": call.id,
                "name": prepared.names.to_wire(&call.name),
                "arguments": args_text(call),
            })),
            Part::Reasoning { text, data: Some(data) } if data["wire"] == WIRE => {
                items.push(reasoning_item(text, data));
            }
            Part::Reasoning { .. } | Part::Media(_) => {}
        }
    }
}

fn reasoning_item(text: &str, data: &Value) -> Value {
    let summary: Vec<Value> = Some(text)
        .filter(|text| !text.is_empty())
        .map(|text| json!({"type": "summary_text", "text": text}))
        .into_iter()
        .collect();
    let encrypted = data["encrypted_content"].clone();
    let mut item =
        object(json!({"type": "reasoning", "summary": summary, "encrypted_content": encrypted}));
    put(&mut item, "id", data["id"].as_str());
    Value::Object(item)
}
