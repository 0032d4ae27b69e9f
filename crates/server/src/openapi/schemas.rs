//! The structures by name: those of the protocol, and those that only HTTP shows.
//!
//! Invariant: a name means one structure; the protocol's schemas are taken over, not written again.

mod agui;
mod session;
mod views;

use super::parts::{PLAIN, by_ref};
use greenroom_protocol::event::EVENT_ID_BYTES_MAX;
use greenroom_protocol::schema;
use serde_json::{Map, Value, json};

const PROTOCOL_PLACE: &str = "#/$defs/";
const PLACE: &str = "#/components/schemas/";

pub(super) fn all() -> Map<String, Value> {
    let mut schemas = Map::new();
    for (name, schema) in schema::all() {
        let mut schema = Value::from(schema);
        move_references(&mut schema);
        let fields = schema.as_object_mut();
        let parts = fields.and_then(|fields| {
            fields.remove("$schema");
            fields.remove("$defs")
        });
        if let Some(Value::Object(parts)) = parts {
            schemas.extend(parts);
        }
        schemas.insert(name.to_owned(), schema);
    }
    if let Some(event) = schemas.get_mut("NewEvent") {
        name_rules(event);
    }
    schemas.extend(own());
    schemas.insert("RunAgentInput".to_owned(), agui::input());
    schemas.extend(session::all());
    schemas.extend(views::all());
    schemas
}

/// The protocol keeps what a schema refers to beside it; here everything has one place.
fn move_references(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            if let Some(Value::String(reference)) = fields.get_mut("$ref")
                && let Some(name) = reference.strip_prefix(PROTOCOL_PLACE)
            {
                *reference = format!("{PLACE}{name}");
            }
            fields.values_mut().for_each(move_references);
        }
        Value::Array(items) => items.iter_mut().for_each(move_references),
        _ => {}
    }
}

/// What the host checks of the names in an event beyond their being text.
fn name_rules(event: &mut Value) {
    let names = [
        "event_type",
        "event_id",
        "source",
        "bot_id",
        "workspace_id",
        "conversation_id",
        "thread_id",
        "agent",
    ];
    for name in names {
        let rules = &mut event["properties"][name];
        rules["minLength"] = 1.into();
        rules["maxLength"] = EVENT_ID_BYTES_MAX.into();
        rules["pattern"] = PLAIN.into();
    }
}

/// When and why a process had to be started again, also once it is ready.
fn failure() -> Value {
    json!({"type": ["object", "null"], "required": ["at", "message"],
        "properties": {"at": {"type": "string", "format": "date-time"},
            "message": {"type": "string"}}})
}

fn own() -> Map<String, Value> {
    let optional = || json!({"type": ["string", "null"]});
    let time = || json!({"type": "string", "format": "date-time"});
    let count = || json!({"type": "integer", "minimum": 0});
    let own = [
        (
            "Problem",
            json!({"type": "object", "required": ["error"],
            "properties": {"error": by_ref("schemas", "AgentAPIError")}}),
        ),
        (
            "Event",
            json!({"type": "object",
            "required": ["event_id", "source", "event_type", "seq", "created_at", "event"],
            "properties": {
                "event_id": {"type": "string"}, "source": {"type": "string"},
                "event_type": {"type": "string"}, "conversation_id": optional(),
                "conversation_seq": {"type": ["integer", "null"]}, "run_id": optional(),
                "seq": count(), "created_at": time(),
                "trigger": {"type": ["string", "null"],
                    "description": "The entrance; null for the host's own facts (`source` = `host`)."},
                "raw_ref": {"description": "Where the event's `data` is kept when it was too large.",
                    "anyOf": [by_ref("schemas", "RawEventRef"), {"type": "null"}]},
                "event": {"description": "The event as it was handed in, or the host's own fact."},
            }}),
        ),
        (
            "Conversation",
            json!({"type": "object",
            "required": ["conversation_id", "workspace_id", "events", "items", "created_at",
                "updated_at"],
            "properties": {
                "conversation_id": {"type": "string"}, "workspace_id": {"type": "string"},
                "events": count(), "items": count(), "created_at": time(), "updated_at": time(),
            }}),
        ),
        (
            "ApprovalDecision",
            json!({"type": "object", "required": ["decision", "nonce"],
            "properties": {"decision": {"enum": ["allow", "deny"]},
                "nonce": {"type": "string", "description": "That of the approval."}}}),
        ),
        (
            "Runner",
            json!({"type": "object", "required": ["name", "runners"],
            "description": "A runner process and what it offers.",
            "properties": {
                "name": {"type": "string"}, "plugin": optional(), "last_error": optional(),
                "isolation": optional(), "pid": {"type": ["integer", "null"]},
                "restarts": count(), "status": {"type": "string"},
                "last_failure": failure(),
                "runners": {"type": "array", "items": by_ref("schemas", "AgentRunnerManifest")},
            }}),
        ),
        (
            "Agent",
            json!({"type": "object",
            "required": ["name", "runner_id", "events", "scope", "filters", "queue", "deadline_s",
                "on_interrupt", "delivery", "built_in", "runner_available"],
            "properties": {
                "name": {"type": "string"}, "runner_id": {"type": "string"},
                "events": {"type": "array", "items": {"type": "string"}},
                "scope": {"type": "object"}, "filters": {"type": "object"},
                "queue": {"enum": ["serial", "parallel", "steer", "replace"]},
                "deadline_s": count(), "on_interrupt": {"enum": ["fail", "retry"]},
                "delivery": optional(), "built_in": {"type": "boolean"},
                "runner_available": {"type": "boolean"},
            }}),
        ),
    ];
    own.into_iter().chain(resources()).map(|(name, schema)| (name.to_owned(), schema)).collect()
}

/// What agents can be granted, and where it comes from.
fn resources() -> [(&'static str, Value); 4] {
    let optional = || json!({"type": ["string", "null"]});
    let count = || json!({"type": "integer", "minimum": 0});
    [
        (
            "Model",
            json!({"type": "object", "required": ["name", "provider", "model", "kind", "has_price"],
            "properties": {
                "name": {"type": "string"}, "provider": {"type": "string"},
                "model": {"type": "string", "description": "The provider's own name."},
                "kind": {"enum": ["chat", "embedding", "rerank"]},
                "context_window": {"type": ["integer", "null"]},
                "max_output_tokens": {"type": ["integer", "null"]},
                "has_price": {"type": "boolean", "description": "Whether its calls count in budgets."},
            }}),
        ),
        (
            "Tool",
            json!({"type": "object",
            "required": ["tool_name", "description", "source", "risk", "timeout_s", "parameters"],
            "properties": {
                "tool_name": {"type": "string"}, "description": {"type": "string"},
                "source": {"type": "string"}, "timeout_s": count(),
                "risk": {"enum": ["read", "write", "destructive", "external"]},
                "parameters": {"type": "object", "description": "JSON Schema of its input."},
            }}),
        ),
        (
            "ToolServer",
            json!({"type": "object", "required": ["name", "kind", "status", "tools", "warnings", "restarts"],
            "properties": {
                "name": {"type": "string"}, "kind": {"enum": ["mcp", "module"]},
                "status": {"enum": ["starting", "ready", "backing_off", "stopped", "failed"]},
                "server": optional(), "protocol_version": optional(), "isolation": optional(),
                "pid": {"type": ["integer", "null"]}, "tools": count(), "restarts": count(),
                "warnings": {"type": "array", "items": {"type": "string"}},
                "last_error": optional(),
            }}),
        ),
        (
            "Check",
            json!({"type": "object", "required": ["kind", "name", "ok", "message"],
            "properties": {
                "kind": {"enum": ["database", "model", "surface", "grant"]},
                "name": {"type": "string"}, "ok": {"type": "boolean"},
                "message": {"type": "string"},
            }}),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_means_one_structure() {
        let mut seen: Map<String, Value> = Map::new();
        for (name, schema) in schema::all() {
            let mut schema = Value::from(schema);
            let parts =
                schema.as_object_mut().unwrap().remove("$defs").unwrap_or_else(|| json!({}));
            schema.as_object_mut().unwrap().remove("$schema");
            let parts = parts.as_object().unwrap().clone();
            for (name, schema) in parts.into_iter().chain([(name.to_owned(), schema)]) {
                assert!(own().get(&name).is_none(), "{name} is written twice");
                let mut bare = schema.clone();
                bare.as_object_mut().unwrap().remove("title");
                let earlier = seen.insert(name.clone(), bare.clone());
                assert!(earlier.is_none_or(|earlier| earlier == bare), "{name} means two things");
            }
        }
    }
}
