//! The request body of AG-UI clients.

use super::super::parts::PLAIN;
use greenroom_protocol::event::EVENT_ID_BYTES_MAX;
use serde_json::{Value, json};
use std::collections::BTreeSet;

pub(super) fn input() -> Value {
    let id = || json!({"type": "string", "minLength": 1, "maxLength": EVENT_ID_BYTES_MAX, "pattern": PLAIN});
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
        "tools": objects(),
        "context": objects(),
        "forwardedProps": {"description": "Any JSON; `actor` is the user."},
        "resume": {"type": ["array", "null"], "items": resume()},
    }})
}

fn message() -> Value {
    let of = |roles: &[&str], needs: &str, schema: Value| {
        let required: BTreeSet<&str> = BTreeSet::from(["id", "role", needs]);
        json!({"type": "object", "required": required,
            "properties": {"id": {"type": "string", "minLength": 1}, "role": {"enum": roles},
                needs: schema}})
    };
    let others = ["developer", "system", "assistant", "activity", "reasoning"];
    json!({"anyOf": [
        of(&["user"], "content", json!({"type": ["string", "array"]})),
        of(&["tool"], "toolCallId", json!({"type": "string"})),
        of(&others, "id", json!({"type": "string", "minLength": 1})),
    ]})
}

fn resume() -> Value {
    json!({"type": "object", "required": ["interruptId", "status"],
        "properties": {"interruptId": {"type": "string"},
            "status": {"enum": ["resolved", "cancelled"]}}})
}
