//! What the server checks beyond the shape of a request: lengths, characters, ranges, and which fields go together.
//!
//! Invariant: every rule here is enforced by the server; `tests/outside` sends what the document allows and fails on
//! an answer of 400. A length counts characters here and bytes in the server.

use crate::artifacts::LIFETIME_S_MAX;
use crate::openapi::parts::{PLAIN, cursor_rules};
use greenroom_host::{RECORD_LINKS_MAX, RECORD_NAME_BYTES_MAX};
use greenroom_protocol::api::artifacts::ARTIFACT_NAME_BYTES_MAX;
use greenroom_protocol::event::{EVENT_ID_BYTES_MAX, EVENT_TIME_RANGE};
use serde_json::{Map, Value, json};

/// A web or data URL.
pub(super) const MEDIA_URL: &str = "^([hH][tT][tT][pP][sS]?://|[dD][aA][tT][aA]:)";

/// Adds the rules to the schemas of the protocol that are sent in requests.
pub(super) fn add(schemas: &mut Map<String, Value>) {
    let names: [(&str, &[&str]); 4] = [
        ("NewEvent", &EVENT_NAMES),
        ("EventDelivery", &["surface"]),
        ("ActorContext", &["actor_type", "actor_id"]),
        ("SubjectContext", &["subject_type"]),
    ];
    for (schema, properties) in names {
        for property in properties {
            restrict(schemas, schema, property, &name());
        }
    }
    let (first, last) = (EVENT_TIME_RANGE.start(), EVENT_TIME_RANGE.end());
    restrict(schemas, "NewEvent", "event_time", &json!({"minimum": first, "maximum": last}));
    restrict(schemas, "NewEvent", "source", &json!({"not": {"const": "host"}}));
    restrict(schemas, "ArtifactRef", "size_bytes", &json!({"maximum": i64::MAX}));
    restrict(schemas, "MediaElement", "url", &json!({"pattern": MEDIA_URL}));
    if let Some(media) = schemas.get_mut("MediaElement") {
        media_has_a_source(media);
    }
    if let Some(op) = schemas.get_mut("RecordOp") {
        record_operation(op);
    }
}

const EVENT_NAMES: [&str; 10] = [
    "event_type",
    "event_id",
    "source",
    "source_event_type",
    "locale",
    "bot_id",
    "workspace_id",
    "conversation_id",
    "thread_id",
    "agent",
];

/// A name or an id of an event.
pub(in crate::openapi) fn name() -> Value {
    json!({"minLength": 1, "maxLength": EVENT_ID_BYTES_MAX, "pattern": PLAIN})
}

/// The file name of an upload.
pub(in crate::openapi) fn file_name() -> Value {
    json!({"type": "string", "minLength": 1, "maxLength": ARTIFACT_NAME_BYTES_MAX,
        "pattern": r"^[^/\\\u0000-\u001f\u007f-\u009f]*$", "not": {"enum": [".", ".."]}})
}

/// Seconds until an upload expires.
pub(in crate::openapi) fn lifetime() -> Value {
    json!({"type": "integer", "minimum": 1, "maximum": LIFETIME_S_MAX})
}

fn restrict(schemas: &mut Map<String, Value>, schema: &str, property: &str, rules: &Value) {
    let property = schemas.get_mut(schema).map(|schema| &mut schema["properties"][property]);
    extend(property, rules);
}

fn extend(schema: Option<&mut Value>, rules: &Value) {
    if let (Some(Value::Object(fields)), Value::Object(rules)) = (schema, rules) {
        fields.extend(rules.clone());
    }
}

/// At least one of the three sources; inline bytes have a type.
fn media_has_a_source(media: &mut Value) {
    let absent = || json!({"type": "null"});
    media["not"] = json!({"properties":
        {"artifact_id": absent(), "url": absent(), "data_base64": absent()}});
    media["if"] = json!({"required": ["data_base64"],
        "properties": {"data_base64": {"type": "string"}}});
    media["then"] = json!({"required": ["mime_type"],
        "properties": {"mime_type": {"type": "string"}}});
}

fn record_operation(op: &mut Value) {
    let name = json!({"minLength": 1, "maxLength": RECORD_NAME_BYTES_MAX, "pattern": PLAIN});
    for form in op["oneOf"].as_array_mut().into_iter().flatten() {
        let Some(properties) = form["properties"].as_object_mut() else { continue };
        for (key, property) in properties {
            match key.as_str() {
                "module" | "id" => extend(Some(property), &name),
                "with" => {
                    property["maxItems"] = RECORD_LINKS_MAX.into();
                    extend(property.get_mut("items"), &name);
                }
                "limit" => property["maximum"] = u32::MAX.into(),
                "cursor" => extend(Some(property), &cursor_rules()),
                "from" | "to" | "starts_at" | "ends_at" | "if_version" => {
                    extend(Some(property), &json!({"minimum": i64::MIN, "maximum": i64::MAX}));
                }
                _ => {}
            }
        }
    }
}
