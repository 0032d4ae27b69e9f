//! The body of `streamGenerateContent`.
//!
//! Invariant: schemas are sent unchanged, as JSON Schema; the results of one response's calls are in one content.

use super::WIRE;
use crate::ModelError;
use crate::options::{Effort, Reasoning, ResponseFormat, ToolChoice};
use crate::turns::{Media, Part, Source, Turn};
use crate::wires::{PreparedRequest, args_object, object, put};
use greenroom_protocol::{Object, Role};
use serde_json::{Value, json};

/// Accepted in place of a signature for calls of other models.
const NO_SIGNATURE: &str = "skip_thought_signature_validator";

pub(in crate::wires) fn body(prepared: &PreparedRequest<'_>) -> Result<Object, ModelError> {
    let mut body = object(json!({"contents": contents(prepared)?}));
    let system = prepared.turns.iter().filter(|turn| turn.role == Role::System).map(Turn::text);
    let system: Vec<Value> =
        system.filter(|text| !text.is_empty()).map(|text| json!({"text": text})).collect();
    if !system.is_empty() {
        body.insert("systemInstruction".to_owned(), json!({"parts": system}));
    }
    if !prepared.tools.is_empty() {
        body.insert("tools".to_owned(), json!([{"functionDeclarations": declarations(prepared)}]));
        let calling = prepared.options.tool_choice.as_ref().map(|choice| calling(prepared, choice));
        put(&mut body, "toolConfig", calling.map(|c| json!({"functionCallingConfig": c})));
    }
    let generation = generation(prepared);
    put(&mut body, "generationConfig", Some(generation).filter(|config| !config.is_empty()));
    Ok(body)
}

fn declarations(prepared: &PreparedRequest<'_>) -> Vec<Value> {
    let made = prepared.tools.iter().map(|tool| {
        let mut made = object(json!({"name": prepared.names.to_wire(&tool.name)}));
        put(&mut made, "description", tool.description.clone());
        made.insert("parametersJsonSchema".to_owned(), tool.parameters.clone());
        Value::Object(made)
    });
    made.collect()
}

fn calling(prepared: &PreparedRequest<'_>, choice: &ToolChoice) -> Value {
    match choice {
        ToolChoice::Auto => json!({"mode": "AUTO"}),
        ToolChoice::None => json!({"mode": "NONE"}),
        ToolChoice::Required => json!({"mode": "ANY"}),
        ToolChoice::Named(name) => {
            json!({"mode": "ANY", "allowedFunctionNames": [prepared.names.to_wire(name)]})
        }
    }
}

fn generation(prepared: &PreparedRequest<'_>) -> Object {
    let options = &prepared.options;
    let mut config = Object::new();
    put(&mut config, "temperature", options.temperature.clone().map(Value::Number));
    put(&mut config, "topP", options.top_p.clone().map(Value::Number));
    put(&mut config, "seed", options.seed.clone().map(Value::Number));
    put(&mut config, "maxOutputTokens", prepared.max_tokens());
    put(&mut config, "stopSequences", Some(&options.stop).filter(|s| !s.is_empty()).cloned());
    if let Some(format) = &options.response_format {
        config.insert("responseMimeType".to_owned(), "application/json".into());
        if let ResponseFormat::Schema { schema, .. } = format {
            config.insert("responseJsonSchema".to_owned(), schema.clone());
        }
    }
    let old = is_before_3(&prepared.settings.model);
    put(&mut config, "thinkingConfig", options.reasoning.map(|reasoning| thinking(reasoning, old)));
    config
}

/// Models before Gemini 3 take a budget, later ones a level.
fn thinking(reasoning: Reasoning, old: bool) -> Value {
    match reasoning {
        Reasoning::Budget(budget) => json!({"thinkingBudget": budget, "includeThoughts": true}),
        Reasoning::Effort(Effort::None) if old => json!({"thinkingBudget": 0}),
        Reasoning::Effort(Effort::None) => json!({"thinkingLevel": "minimal"}),
        Reasoning::Effort(effort) if old => {
            let budget = match effort {
                Effort::None | Effort::Minimal => 512,
                Effort::Low => 1024,
                Effort::Medium => 8192,
                Effort::High => 24576,
            };
            json!({"thinkingBudget": budget, "includeThoughts": true})
        }
        Reasoning::Effort(effort) => {
            json!({"thinkingLevel": effort.as_str(), "includeThoughts": true})
        }
    }
}

fn is_before_3(model: &str) -> bool {
    model.contains("gemini-1") || model.contains("gemini-2")
}

fn contents(prepared: &PreparedRequest<'_>) -> Result<Vec<Value>, ModelError> {
    let mut contents: Vec<(&str, Vec<Value>)> = Vec::new();
    for turn in &prepared.turns {
        let (role, parts) = match turn.role {
            Role::System => continue,
            Role::Assistant => ("model", model(prepared, turn)?),
            Role::User => ("user", user(turn)?),
            Role::Tool => ("user", result(prepared, turn)?),
        };
        match contents.last_mut() {
            Some((last_role, all)) if *last_role == role => all.extend(parts),
            _ => contents.push((role, parts)),
        }
    }
    let filled = contents.into_iter().filter(|(_, parts)| !parts.is_empty());
    Ok(filled.map(|(role, parts)| json!({"role": role, "parts": parts})).collect())
}

fn user(turn: &Turn<'_>) -> Result<Vec<Value>, ModelError> {
    let mut parts = Vec::new();
    for part in &turn.parts {
        match part {
            Part::Text(text) => parts.push(json!({"text": text})),
            Part::Media(media) => parts.push(media_part(media)?),
            Part::Reasoning { .. } | Part::Call(_) => {}
        }
    }
    Ok(parts)
}

/// URLs of Google itself only; the API does not fetch others for every model.
fn media_part(media: &Media<'_>) -> Result<Value, ModelError> {
    match media.source {
        Source::Base64(data) => Ok(json!({"inlineData": {"mimeType": media.mime(), "data": data}})),
        Source::Url(url) if is_google_url(url) => {
            let mut file = object(json!({"fileUri": url}));
            put(&mut file, "mimeType", media.mime_type);
            Ok(json!({"fileData": file}))
        }
        Source::Url(_) => Err(media.unsupported("Gemini")),
    }
}

fn is_google_url(url: &str) -> bool {
    let prefixes =
        ["gs://", "https://generativelanguage.googleapis.com/", "https://www.youtube.com/"];
    prefixes.iter().any(|start| url.starts_with(start))
}

fn result(prepared: &PreparedRequest<'_>, turn: &Turn<'_>) -> Result<Vec<Value>, ModelError> {
    let (id, name) = turn.answers.as_ref().map_or(("", ""), |(id, name)| (*id, name.as_str()));
    if name.is_empty() {
        let text = format!("no message contains the call `{id}` that a `tool` message answers");
        return Err(ModelError::InvalidRequest(text));
    }
    let text = turn.text();
    let response = match serde_json::from_str::<Value>(&text) {
        Ok(Value::Object(object)) => Value::Object(object),
        Ok(other) => json!({"result": other}),
        Err(_) => json!({"result": text}),
    };
    let response = match turn.is_error && response.get("error").is_none() {
        // Gemini reads the details of a failure under this name.
        true => json!({"error": response}),
        false => response,
    };
    let response = json!({"id": id, "name": prepared.names.to_wire(name), "response": response});
    let mut parts = vec![json!({"functionResponse": response})];
    for media in turn.media() {
        parts.push(media_part(media)?);
    }
    Ok(parts)
}

/// A signature is stored as reasoning with data before the part that it belongs to.
fn model(prepared: &PreparedRequest<'_>, turn: &Turn<'_>) -> Result<Vec<Value>, ModelError> {
    let mut parts: Vec<Value> = Vec::new();
    let mut signature: Option<Value> = None;
    let mut first_call = true;
    for part in &turn.parts {
        let mut made = match part {
            Part::Reasoning { data: Some(data), .. } if data["wire"] == WIRE => {
                let next = data["signature"].clone();
                let unused = signature.replace(next);
                parts.extend(unused.map(|lone| json!({"text": "", "thoughtSignature": lone})));
                continue;
            }
            Part::Reasoning { .. } => continue,
            Part::Text(text) => json!({"text": text}),
            Part::Media(media) => media_part(media)?,
            Part::Call(call) => {
                let first = std::mem::replace(&mut first_call, false);
                if first && !is_before_3(&prepared.settings.model) {
                    signature.get_or_insert_with(|| NO_SIGNATURE.into());
                }
                let name = prepared.names.to_wire(&call.name);
                json!({"functionCall": {"id": call.id, "name": name, "args": args_object(call)}})
            }
        };
        if let Some(signature) = signature.take() {
            made["thoughtSignature"] = signature;
        }
        parts.push(made);
    }
    parts.extend(signature.map(|lone| json!({"text": "", "thoughtSignature": lone})));
    Ok(parts)
}
