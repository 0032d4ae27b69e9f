//! The document in the form that client generators understand.
//!
//! Invariant: the meaning stays; a value is valid exactly if it was before.

use super::schemas::PREFIX;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// An object of any content. Some generators make a class of each, and two of the same name fail.
const ANY_OBJECT: &str = "JsonObject";

/// Leaves out schemas that no route uses (`docs/schema` has all of them), writes `true` as `{}`, and puts the defaults
/// of request bodies into words: several generators take a property with a default for one that is always there, and
/// would ask the sender for it.
pub(super) fn simplify(document: &mut Value) {
    merge_references(document);
    let mut sent = BTreeSet::new();
    for body in request_bodies(&document["paths"]) {
        follow(document, body, &mut sent);
    }
    let mut used = BTreeSet::new();
    follow(document, &document["paths"], &mut used);
    if let Some(schemas) = document["components"]["schemas"].as_object_mut() {
        schemas.retain(|name, _| used.contains(name));
        schemas.insert(ANY_OBJECT.to_owned(), any_object());
        for (name, schema) in schemas.iter_mut().filter(|(name, _)| *name != ANY_OBJECT) {
            write_out(schema);
            if sent.contains(name) {
                describe_defaults(schema);
            }
        }
    }
}

fn request_bodies(paths: &Value) -> impl Iterator<Item = &Value> {
    let operations = paths.as_object().into_iter().flat_map(Map::values);
    let operations = operations.filter_map(Value::as_object).flat_map(Map::values);
    operations.filter_map(|operation| operation.get("requestBody"))
}

/// Adds the names of all schemas that `value` refers to, directly or not.
fn follow(document: &Value, value: &Value, names: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            if let Some(Value::String(reference)) = fields.get("$ref") {
                let is_new = match reference.strip_prefix(PREFIX) {
                    Some(name) => names.insert(name.to_owned()),
                    None => true,
                };
                let target = reference.strip_prefix('#').and_then(|it| document.pointer(it));
                if let (true, Some(target)) = (is_new, target) {
                    follow(document, target, names);
                }
            }
            fields.values().for_each(|value| follow(document, value, names));
        }
        Value::Array(items) => items.iter().for_each(|value| follow(document, value, names)),
        _ => {}
    }
}

fn any_object() -> Value {
    json!({"type": "object", "additionalProperties": true})
}

/// `{}` for every subschema that is `true`, and a reference for every object of any content.
fn write_out(schema: &mut Value) {
    for_each_property(schema, &mut |property| {
        if *property == Value::Bool(true) {
            *property = json!({});
        } else if *property == any_object() {
            *property = json!({"$ref": format!("{PREFIX}{ANY_OBJECT}")});
        }
    });
}

/// Adds what a reference stands for to the properties beside it, which generators would drop.
fn merge_references(document: &mut Value) {
    let Some(schemas) = document["components"]["schemas"].as_object_mut() else { return };
    let all = schemas.clone();
    let named = |reference: &Value| all.get(reference.as_str()?.strip_prefix(PREFIX)?).cloned();
    for schema in schemas.values_mut() {
        for_each_property(schema, &mut |property| {
            let Some(beside) = property.as_object().filter(|it| it.contains_key("properties"))
            else {
                return;
            };
            let Some(Value::Object(mut merged)) = beside.get("$ref").and_then(&named) else {
                return;
            };
            for (key, value) in beside.iter().filter(|(key, _)| *key != "$ref") {
                match (merged.get_mut(key), value) {
                    (Some(Value::Object(own)), Value::Object(more)) => own.extend(more.clone()),
                    (Some(Value::Array(own)), Value::Array(more)) => own.extend(more.clone()),
                    _ => drop(merged.insert(key.clone(), value.clone())),
                }
            }
            *property = Value::Object(merged);
        });
    }
}

fn describe_defaults(schema: &mut Value) {
    for_each_property(schema, &mut |property| {
        let Some(fields) = property.as_object_mut() else { return };
        let default = match fields.remove("default") {
            Some(Value::String(text)) => text,
            Some(default @ (Value::Number(_) | Value::Bool(_))) => default.to_string(),
            _ => return,
        };
        let about = fields.get("description").and_then(Value::as_str).unwrap_or_default();
        let about = format!("{about} Default: `{default}`.");
        fields.insert("description".to_owned(), about.trim_start().into());
    });
}

/// Calls `change` for every property, list item and alternative in a schema, the outer ones first.
fn for_each_property(schema: &mut Value, change: &mut impl FnMut(&mut Value)) {
    let Some(fields) = schema.as_object_mut() else { return };
    if let Some(Value::Object(properties)) = fields.get_mut("properties") {
        for property in properties.values_mut() {
            change(property);
            for_each_property(property, change);
        }
    }
    if let Some(items) = fields.get_mut("items") {
        change(items);
        for_each_property(items, change);
    }
    for choice in ["anyOf", "oneOf", "allOf"] {
        for schema in fields.get_mut(choice).and_then(Value::as_array_mut).into_iter().flatten() {
            change(schema);
            for_each_property(schema, change);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_with_properties_beside_it_is_written_out() {
        let mut document = json!({"components": {"schemas": {
            "Base": {"type": "object", "properties": {"a": {}}, "required": ["a"]},
            "Choice": {"oneOf": [{"$ref": format!("{PREFIX}Base"),
                "properties": {"b": {}}, "required": ["b"]}]}}}});
        merge_references(&mut document);
        let merged =
            json!({"type": "object", "properties": {"a": {}, "b": {}}, "required": ["a", "b"]});
        assert_eq!(document["components"]["schemas"]["Choice"], json!({"oneOf": [merged]}));
    }

    #[test]
    fn unused_schemas_and_defaults_of_requests_are_left_out() {
        let reference = |name: &str| json!({"$ref": format!("{PREFIX}{name}")});
        let property = json!({"properties": {"a": {"type": "string", "default": "x"}, "b": true}});
        let mut document = json!({
            "paths": {"/x": {"post": {
                "requestBody": {"content": {"application/json": {"schema": reference("Sent")}}},
                "responses": {"200": {"$ref": "#/components/responses/Fine"}}}}},
            "components": {
                "responses": {"Fine": {"content": {"application/json": {"schema": reference("Read")}}}},
                "schemas": {
                    "Sent": {"properties": {"part": reference("Part")}},
                    "Part": property, "Read": property, "Unused": {}}},
        });
        simplify(&mut document);
        let expected = json!({
            "JsonObject": any_object(),
            "Sent": {"properties": {"part": reference("Part")}},
            "Part": {"properties": {"a": {"type": "string", "description": "Default: `x`."}, "b": {}}},
            "Read": {"properties": {"a": {"type": "string", "default": "x"}, "b": {}}}});
        assert_eq!(document["components"]["schemas"], expected);
    }
}
