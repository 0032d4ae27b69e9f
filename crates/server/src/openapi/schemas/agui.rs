//! The request body of AG-UI clients.

use super::rules::{self, MEDIA_URL};
use serde_json::{Value, json};
use std::collections::BTreeSet;

pub(super) fn input() -> Value {
    let id = || {
        let mut id = rules::name();
        id["type"] = "string".into();
        id
    };
    let optional = |kind: &str| json!({"type": [kind, "null"]});
    let objects = || json!({"type": ["array", "null"], "items": {"type": "object"}});
    json!({"type": "object", "required": ["threadId", "runId", "messages"],
    "description": "`RunAgentInput` of AG-UI.",
    "properties": {
        "threadId": id(),
        "runId": id(),
        "protocolVersion": optional("string"),
        "parentRunId": optional("string"),
        "messages": {"type": "array", "items": message()},
        "state": {"description": "Any JSON; the runner finds it in `ctx.adapter.extra`, like `tools`, `context` and `forwardedProps`."},
        "tools": {"type": ["array", "null"], "maxItems": 128, "items": tool()},
        "context": objects(),
        "forwardedProps": {"description": "Any JSON; `actor` is the user."},
        "resume": {"type": ["array", "null"], "items": resume()},
    }})
}

/// A tool of the client.
fn tool() -> Value {
    let mut name = rules::name();
    name["type"] = "string".into();
    name["maxLength"] = 128.into();
    json!({"type": "object", "required": ["name"], "properties": {"name": name,
        "description": {"type": ["string", "null"]}, "parameters": {"type": ["object", "null"]}}})
}

fn message() -> Value {
    let of = |roles: &[&str], needs: &str, schema: Value| {
        let required: BTreeSet<&str> = BTreeSet::from(["id", "role", needs]);
        json!({"type": "object", "required": required,
            "properties": {"id": {"type": "string", "minLength": 1}, "role": {"type": "string", "enum": roles},
                needs: schema}})
    };
    let others = ["assistant", "activity", "reasoning"];
    json!({"anyOf": [
        of(&["user", "developer", "system"], "content", json!({"type": ["string", "array"], "items": part()})),
        of(&["tool"], "toolCallId", json!({"type": "string"})),
        of(&others, "id", json!({"type": "string", "minLength": 1})),
    ]})
}

/// One part of a user's message: text, or media by their source; `binary` is the form of clients before 1.0.
fn part() -> Value {
    let object = |required: &[&str], properties: Value| json!({"type": "object", "required": required, "properties": properties});
    let text = || json!({"type": "string"});
    let kind = |names: &[&str]| json!({"type": "string", "enum": names});
    let inline = object(
        &["type", "value", "mimeType"],
        json!({"type": kind(&["data"]), "value": text(), "mimeType": text()}),
    );
    let url = object(&["type", "value"], json!({"type": kind(&["url"]), "value": media_url()}));
    let file = object(&["type", "value"], json!({"type": kind(&["file"]), "value": text()}));
    let source = json!({"anyOf": [inline, url, file]});
    let binary = |key: &str, value: Value| {
        object(
            &["type", "mimeType", key],
            json!({"type": kind(&["binary"]), "mimeType": text(), key: value}),
        )
    };
    json!({"anyOf": [
        object(&["type", "text"], json!({"type": kind(&["text"]), "text": text()})),
        object(&["type", "source"],
            json!({"type": kind(&["image", "audio", "video", "document"]), "source": source})),
        binary("data", text()),
        binary("url", media_url()),
        binary("id", text()),
    ]})
}

/// A URL of the web, of the data itself, or of an artifact of this host.
fn media_url() -> Value {
    json!({"type": "string", "pattern": format!("{MEDIA_URL}|^/v1/artifacts/")})
}

fn resume() -> Value {
    json!({"type": "object", "required": ["interruptId", "status"],
        "properties": {"interruptId": {"type": "string"},
            "status": {"enum": ["resolved", "cancelled"]}}})
}
