//! The schemas by name: those of the protocol, and those of HTTP alone.
//!
//! Invariant: a name means one schema; the protocol's are reused, not written a second time.

mod agui;
mod resources;
pub(super) mod rules;
mod session;
mod views;

use super::parts::by_ref;
use greenroom_protocol::schema;
use serde_json::{Map, Value, json};

const PROTOCOL_PREFIX: &str = "#/$defs/";
pub(super) const PREFIX: &str = "#/components/schemas/";

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
    rules::add(&mut schemas);
    schemas.extend(own());
    schemas
}

/// The protocol's schemas carry their own `$defs`; here all of them are components.
fn move_references(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            if let Some(Value::String(reference)) = fields.get_mut("$ref")
                && let Some(name) = reference.strip_prefix(PROTOCOL_PREFIX)
            {
                *reference = format!("{PREFIX}{name}");
            }
            fields.values_mut().for_each(move_references);
        }
        Value::Array(items) => items.iter_mut().for_each(move_references),
        _ => {}
    }
}

/// An object that has all of these properties.
fn object(properties: Value) -> Value {
    object_with(properties, json!({}))
}

/// An object that has all of the first properties and may have the others.
fn object_with(properties: Value, optional: Value) -> Value {
    let mut all = properties.as_object().cloned().unwrap_or_default();
    let required: Vec<String> = all.keys().cloned().collect();
    all.extend(optional.as_object().cloned().unwrap_or_default());
    json!({"type": "object", "required": required, "properties": all})
}

fn text() -> Value {
    json!({"type": "string"})
}

fn text_or_null() -> Value {
    json!({"type": ["string", "null"]})
}

fn texts() -> Value {
    list(text())
}

fn list(items: Value) -> Value {
    json!({"type": "array", "items": items})
}

fn flag() -> Value {
    json!({"type": "boolean"})
}

fn count() -> Value {
    json!({"type": "integer", "minimum": 0})
}

fn count_or_null() -> Value {
    json!({"type": ["integer", "null"], "minimum": 0})
}

fn time() -> Value {
    json!({"type": "string", "format": "date-time"})
}

fn or_null(schema: Value) -> Value {
    json!({"anyOf": [schema, {"type": "null"}]})
}

fn own() -> Map<String, Value> {
    let own = [
        ("Problem", object(json!({"error": by_ref("schemas", "AgentAPIError")}))),
        ("Event", event()),
        (
            "Conversation",
            object(json!({"conversation_id": text(), "workspace_id": text(), "events": count(),
                "items": count(), "created_at": time(), "updated_at": time()})),
        ),
        ("ApprovalDecision", decision()),
        ("RunAgentInput", agui::input()),
    ];
    let own = own.into_iter().chain(resources::all()).chain(session::all()).chain(views::all());
    own.map(|(name, schema)| (name.to_owned(), schema)).collect()
}

/// Only an allowed call has other arguments.
fn decision() -> Value {
    let mut decision = object_with(
        json!({"decision": {"enum": ["allow", "deny"]},
            "nonce": {"type": "string", "description": "That of the approval."}}),
        json!({"values": {"type": "object", "description":
            "For `tool.input`: the fields of `payload.requested_schema`. Left-out fields get their defaults."},
            "args": {"type": "object", "description":
            "To allow a `tool.call` with other arguments than those of `payload`, in full. They are checked against the tool's schema and the run's grant."}}),
    );
    decision["not"] = json!({"required": ["args"], "properties": {"decision": {"const": "deny"}}});
    decision
}

fn event() -> Value {
    object_with(
        json!({"event_id": text(), "source": text(), "event_type": text(), "seq": count(),
            "created_at": time(),
            "event": {"description": "The event as it was received, or the host's own fact."}}),
        json!({
            "conversation_id": text_or_null(), "conversation_seq": {"type": ["integer", "null"]},
            "run_id": text_or_null(),
            "sent_by": {"type": "string", "description": "The limited token that sent it, as `token:NAME`."},
            "trigger": {"type": ["string", "null"],
                "description": "The trigger source; null for events of the host itself (`source` = `host`)."},
            "raw_ref": {"description": "Where the event's `data` is stored when it was too large.",
                "anyOf": [by_ref("schemas", "RawEventRef"), {"type": "null"}]},
        }),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_means_one_schema() {
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
