//! What an AG-UI client sends.

use super::super::parts::PLAIN;
use greenroom_protocol::event::EVENT_ID_BYTES_MAX;
use serde_json::{Value, json};

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
        "state": {"description": "Any JSON; the runner sees it in `ctx.adapter.extra`, as the next three."},
        "tools": objects(),
        "context": objects(),
        "forwardedProps": {"description": "Any JSON; `actor` says on whose behalf."},
        "resume": {"type": ["array", "null"], "items": resume()},
    }})
}

fn message() -> Value {
    let roles = ["developer", "system", "assistant", "user", "tool", "activity", "reasoning"];
    let of = |role: &str, needs: Value| json!({"if": {"properties": {"role": {"const": role}}, "required": ["role"]}, "then": needs});
    json!({"type": "object", "required": ["id", "role"],
    "properties": {"id": {"type": "string", "minLength": 1}, "role": {"enum": roles}},
    "allOf": [
        of("user", json!({"required": ["content"],
            "properties": {"content": {"type": ["string", "array"]}}})),
        of("tool", json!({"required": ["toolCallId"],
            "properties": {"toolCallId": {"type": "string"}}})),
    ]})
}

fn resume() -> Value {
    json!({"type": "object", "required": ["interruptId", "status"],
        "properties": {"interruptId": {"type": "string"},
            "status": {"enum": ["resolved", "cancelled"]}}})
}
