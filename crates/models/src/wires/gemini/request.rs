//! The body of `streamGenerateContent`.
//!
//! Invariant: schemas go out unchanged, as JSON Schema; the results of one answer's calls stand in one content.

use super::WIRE;
use crate::ModelError;
use crate::options::{Effort, Reasoning, ResponseFormat, ToolChoice};
use crate::turns::{Media, Part, Source, Turn};
use crate::wires::{Ask, args_object, object, put};
use greenroom_protocol::{Object, Role};
use serde_json::{Value, json};

/// What the API takes in place of a signature for calls that another model made.
const FOREIGN: &str = "skip_thought_signature_validator";

pub(in crate::wires) fn body(ask: &Ask<'_>) -> Result<Object, ModelError> {
    let mut body = object(json!({"contents": contents(ask)?}));
    let system = ask.turns.iter().filter(|turn| turn.role == Role::System).map(Turn::text);
    let system: Vec<Value> =
        system.filter(|text| !text.is_empty()).map(|text| json!({"text": text})).collect();
    if !system.is_empty() {
        body.insert("systemInstruction".to_owned(), json!({"parts": system}));
    }
    if !ask.tools.is_empty() {
        body.insert("tools".to_owned(), json!([{"functionDeclarations": declarations(ask)}]));
        let calling = ask.options.tool_choice.as_ref().map(|choice| calling(ask, choice));
        put(&mut body, "toolConfig", calling.map(|c| json!({"functionCallingConfig": c})));
    }
    let generation = generation(ask);
    put(&mut body, "generationConfig", Some(generation).filter(|config| !config.is_empty()));
    Ok(body)
}

fn declarations(ask: &Ask<'_>) -> Vec<Value> {
    let made = ask.tools.iter().map(|tool| {
        let mut made = object(json!({"name": ask.names.to_wire(&tool.name)}));
        put(&mut made, "description", tool.description.clone());
        made.insert("parametersJsonSchema".to_owned(), tool.parameters.clone());
        Value::Object(made)
    });
    made.collect()
}

fn calling(ask: &Ask<'_>, choice: &ToolChoice) -> Value {
    match choice {
        ToolChoice::Auto => json!({"mode": "AUTO"}),
        ToolChoice::None => json!({"mode": "NONE"}),
        ToolChoice::Required => json!({"mode": "ANY"}),
        ToolChoice::Named(name) => {
            json!({"mode": "ANY", "allowedFunctionNames": [ask.names.to_wire(name)]})
        }
    }
}

fn generation(ask: &Ask<'_>) -> Object {
    let options = &ask.options;
    let mut config = Object::new();
    put(&mut config, "temperature", options.temperature.clone().map(Value::Number));
    put(&mut config, "topP", options.top_p.clone().map(Value::Number));
    put(&mut config, "seed", options.seed.clone().map(Value::Number));
    put(&mut config, "maxOutputTokens", ask.max_tokens());
    put(&mut config, "stopSequences", Some(&options.stop).filter(|s| !s.is_empty()).cloned());
    if let Some(format) = &options.response_format {
        config.insert("responseMimeType".to_owned(), "application/json".into());
        if let ResponseFormat::Schema { schema, .. } = format {
            config.insert("responseJsonSchema".to_owned(), schema.clone());
        }
    }
    let old = is_before_3(&ask.settings.model);
    put(&mut config, "thinkingConfig", options.reasoning.map(|reasoning| thinking(reasoning, old)));
    config
}

/// Models before the third take a budget, later ones a level.
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

fn contents(ask: &Ask<'_>) -> Result<Vec<Value>, ModelError> {
    let mut contents: Vec<(&str, Vec<Value>)> = Vec::new();
    for turn in &ask.turns {
        let (role, parts) = match turn.role {
            Role::System => continue,
            Role::Assistant => ("model", model(ask, turn)?),
            Role::User => ("user", user(turn)?),
            Role::Tool => ("user", result(ask, turn)?),
        };
        match contents.last_mut() {
            Some((had, all)) if *had == role => all.extend(parts),
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

/// Addresses only of what Google itself holds; the API fetches nothing else for every model.
fn media_part(media: &Media<'_>) -> Result<Value, ModelError> {
    match media.source {
        Source::Base64(data) => Ok(json!({"inlineData": {"mimeType": media.mime(), "data": data}})),
        Source::Url(url) if is_googles(url) => {
            let mut file = object(json!({"fileUri": url}));
            put(&mut file, "mimeType", media.mime_type);
            Ok(json!({"fileData": file}))
        }
        Source::Url(_) => Err(media.refused("Gemini")),
    }
}

fn is_googles(url: &str) -> bool {
    let held = ["gs://", "https://generativelanguage.googleapis.com/", "https://www.youtube.com/"];
    held.iter().any(|start| url.starts_with(start))
}

fn result(ask: &Ask<'_>, turn: &Turn<'_>) -> Result<Vec<Value>, ModelError> {
    let (id, name) = turn.answers.as_ref().map_or(("", ""), |(id, name)| (*id, name.as_str()));
    if name.is_empty() {
        let text = format!("the call `{id}` that a `tool` message answers is not in the messages");
        return Err(ModelError::InvalidRequest(text));
    }
    let text = turn.text();
    let response = match serde_json::from_str::<Value>(&text) {
        Ok(Value::Object(object)) => Value::Object(object),
        Ok(other) => json!({"result": other}),
        Err(_) => json!({"result": text}),
    };
    let response = json!({"id": id, "name": ask.names.to_wire(name), "response": response});
    let mut parts = vec![json!({"functionResponse": response})];
    for media in turn.media() {
        parts.push(media_part(media)?);
    }
    Ok(parts)
}

/// A signature stands, as reasoning with data, in front of the part that it belongs to.
fn model(ask: &Ask<'_>, turn: &Turn<'_>) -> Result<Vec<Value>, ModelError> {
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
                if first && !is_before_3(&ask.settings.model) {
                    signature.get_or_insert_with(|| FOREIGN.into());
                }
                let name = ask.names.to_wire(&call.name);
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
