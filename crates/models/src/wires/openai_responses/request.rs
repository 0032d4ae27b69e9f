//! The body of `POST /responses`.
//!
//! Invariant: items stand in the order of the conversation; reasoning without its encrypted form stays here,
//! as the provider would look for it among things that it does not keep.

use super::WIRE;
use crate::ModelError;
use crate::options::{Effort, Reasoning, ResponseFormat, ToolChoice};
use crate::turns::{Media, MediaKind, Part, Source, Turn};
use crate::wires::{Ask, args_text, object, put};
use greenroom_protocol::{Object, Role};
use serde_json::{Value, json};

pub(in crate::wires) fn body(ask: &Ask<'_>) -> Result<Object, ModelError> {
    let options = &ask.options;
    if !options.stop.is_empty() {
        let text = "Responses takes no `stop`";
        return Err(ModelError::InvalidRequest(text.to_owned()));
    }
    let mut body = object(json!({
        "model": ask.settings.model,
        "input": input(ask)?,
        "stream": true,
        "store": false,
    }));
    if !ask.tools.is_empty() {
        body.insert("tools".to_owned(), tools(ask));
        put(&mut body, "tool_choice", options.tool_choice.as_ref().map(|c| choice(ask, c)));
        put(&mut body, "parallel_tool_calls", options.parallel_tool_calls);
    }
    put(&mut body, "max_output_tokens", ask.max_tokens());
    put(&mut body, "temperature", options.temperature.clone().map(Value::Number));
    put(&mut body, "top_p", options.top_p.clone().map(Value::Number));
    let format = options.response_format.as_ref().map(format);
    put(&mut body, "text", format.map(|format| json!({"format": format})));
    reasoning(ask, &mut body)?;
    Ok(body)
}

fn tools(ask: &Ask<'_>) -> Value {
    let tools = ask.tools.iter().map(|tool| {
        let mut made = object(json!({"type": "function", "name": ask.names.to_wire(&tool.name)}));
        put(&mut made, "description", tool.description.clone());
        made.insert("parameters".to_owned(), tool.parameters.clone());
        // The default would change the schema.
        made.insert("strict".to_owned(), false.into());
        Value::Object(made)
    });
    Value::Array(tools.collect())
}

fn choice(ask: &Ask<'_>, choice: &ToolChoice) -> Value {
    match choice {
        ToolChoice::Auto => "auto".into(),
        ToolChoice::None => "none".into(),
        ToolChoice::Required => "required".into(),
        ToolChoice::Named(name) => json!({"type": "function", "name": ask.names.to_wire(name)}),
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

/// Models that do not reason refuse to be asked for what they thought.
fn reasoning(ask: &Ask<'_>, body: &mut Object) -> Result<(), ModelError> {
    let asked = match ask.options.reasoning {
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
            let text = "Responses takes an effort for `reasoning`, not a budget";
            return Err(ModelError::InvalidRequest(text.to_owned()));
        }
        None => reasons(&ask.settings.model),
    };
    if asked {
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

fn input(ask: &Ask<'_>) -> Result<Vec<Value>, ModelError> {
    let mut items = Vec::new();
    for turn in &ask.turns {
        match turn.role {
            Role::System | Role::User => {
                let content = content(turn)?;
                let role = turn.role.as_str();
                items.push(json!({"type": "message", "role": role, "content": content}));
            }
            Role::Assistant => assistant(ask, turn, &mut items),
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
        _ => Err(media.refused("Responses")),
    }
}

fn assistant(ask: &Ask<'_>, turn: &Turn<'_>, items: &mut Vec<Value>) {
    for part in &turn.parts {
        match part {
            Part::Text(text) => {
                let content = json!([{"type": "output_text", "text": text}]);
                items.push(json!({"type": "message", "role": "assistant", "content": content}));
            }
            Part::Call(call) => items.push(json!({
                "type": "function_call",
                "call_id": call.id,
                "name": ask.names.to_wire(&call.name),
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
