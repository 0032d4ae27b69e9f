//! The content of a user message: text, images, audio, video and files.
//!
//! Invariant: inline bytes stay in the event, which stores large ones as artifacts; a referenced file must have
//! been uploaded before.

use crate::response::Problem;
use greenroom_protocol::ContentElement;
use serde_json::{Value, json};

/// The `input` of an event.
pub(super) fn input(content: &Value) -> Result<Value, Problem> {
    match content {
        Value::String(text) => Ok(json!({"text": text})),
        Value::Array(parts) => {
            let elements: Vec<Value> = parts.iter().map(element).collect::<Result<_, _>>()?;
            let texts: Vec<&str> = elements.iter().filter_map(|one| one["text"].as_str()).collect();
            let mut input = json!({"contents": elements});
            if !texts.is_empty() {
                input["text"] = texts.join("\n").into();
            }
            Ok(input)
        }
        _ => Err(Problem::invalid("`messages`: `content` must be a string or a list of parts")),
    }
}

fn element(part: &Value) -> Result<Value, Problem> {
    let kind = part.get("type").and_then(Value::as_str).unwrap_or_default();
    let element = match kind {
        "text" => part["text"].as_str().map(|text| json!({"type": "text", "text": text})),
        "image" | "audio" | "video" | "document" => {
            let kind = if kind == "document" { "file" } else { kind };
            media(kind, &part["source"]).map(|element| named(element, &part["metadata"]))
        }
        "binary" => binary(part),
        _ => None,
    };
    let element = element.ok_or_else(|| {
        Problem::invalid(format!("`messages`: unsupported part `{}`", kind.escape_debug()))
    })?;
    match serde_json::from_value::<ContentElement>(element.clone()).map(|it| it.problem()) {
        Ok(None) => Ok(element),
        Ok(Some(reason)) => Err(Problem::invalid(format!("`messages`: {reason}"))),
        Err(error) => Err(Problem::invalid(format!("`messages`: {error}"))),
    }
}

fn media(kind: &str, source: &Value) -> Option<Value> {
    let value = source["value"].as_str()?;
    let mut element = match source["type"].as_str()? {
        "data" => json!({"type": kind, "data_base64": value}),
        "url" => from_url(kind, value),
        "file" => json!({"type": kind, "artifact_id": value}),
        _ => return None,
    };
    if let Some(mime_type) = source["mimeType"].as_str() {
        element["mime_type"] = mime_type.into();
    }
    Some(element)
}

/// The form that clients before 1.0 use for everything but text.
fn binary(part: &Value) -> Option<Value> {
    let mime_type = part["mimeType"].as_str()?;
    let family = mime_type.split('/').next().unwrap_or_default();
    let is_media = ["image", "audio", "video"].contains(&family);
    let kind = if is_media { family } else { "file" };
    let mut element = match (&part["data"], &part["url"], &part["id"]) {
        (Value::String(data), _, _) => json!({"type": kind, "data_base64": data}),
        (_, Value::String(url), _) => from_url(kind, url),
        (_, _, Value::String(id)) => json!({"type": kind, "artifact_id": id}),
        _ => return None,
    };
    element["mime_type"] = mime_type.into();
    Some(named(element, part))
}

/// A `data:` URL is inline bytes; a URL of this host's artifacts is an artifact.
fn from_url(kind: &str, url: &str) -> Value {
    let inline = url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,"));
    if let Some((mime_type, data)) = inline {
        return json!({"type": kind, "data_base64": data, "mime_type": mime_type});
    }
    match url.strip_prefix("/v1/artifacts/") {
        Some(id) => json!({"type": kind, "artifact_id": id}),
        None => json!({"type": kind, "url": url}),
    }
}

fn named(mut element: Value, about: &Value) -> Value {
    if let Some(name) = about["filename"].as_str().or(about["name"].as_str()) {
        element["name"] = name.into();
    }
    element
}
