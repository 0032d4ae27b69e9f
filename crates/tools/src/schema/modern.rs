//! Schemas of older drafts, rewritten for the draft that providers and our own checks expect.
//!
//! Invariant: a schema that is valid by JSON Schema 2020-12 is not changed.

use super::{SCHEMA_DEPTH_MAX, depth};
use serde_json::{Map, Value};

/// Keywords that hold one schema, several, or several by name.
const ONE: [&str; 10] = [
    "additionalProperties",
    "contains",
    "else",
    "if",
    "items",
    "not",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
];
const SEVERAL: [&str; 4] = ["allOf", "anyOf", "oneOf", "prefixItems"];
const NAMED: [&str; 5] =
    ["$defs", "definitions", "dependentSchemas", "patternProperties", "properties"];
/// Drafts that are known by their `$schema`.
const DRAFTS: [&str; 5] = ["draft-04", "draft-06", "draft-07", "2019-09", "2020-12"];

/// The same schema by JSON Schema 2020-12; one that cannot be rewritten is returned as it is, to be refused.
pub fn modern(mut schema: Value) -> Value {
    if depth(&schema) > SCHEMA_DEPTH_MAX || is_modern(&schema) {
        return schema;
    }
    rewrite(&mut schema);
    schema
}

fn is_modern(schema: &Value) -> bool {
    let named = schema.get("$schema").and_then(Value::as_str);
    let is_known = named.is_none_or(|named| DRAFTS.iter().any(|draft| named.contains(draft)));
    is_known && jsonschema::draft202012::meta::is_valid(schema)
}

fn rewrite(schema: &mut Value) {
    let Value::Object(fields) = schema else { return };
    fields.remove("$schema");
    limits(fields);
    identity(fields);
    tuples(fields);
    dependencies(fields);
    required(fields);
    if fields.get("type").is_some_and(|kind| kind == "any") {
        fields.remove("type");
    }
    if let Some(divisor) = fields.remove("divisibleBy") {
        fields.entry("multipleOf").or_insert(divisor);
    }
    for (name, value) in fields {
        match value {
            value if ONE.contains(&name.as_str()) => rewrite(value),
            Value::Array(schemas) if SEVERAL.contains(&name.as_str()) => {
                schemas.iter_mut().for_each(rewrite);
            }
            Value::Object(schemas) if NAMED.contains(&name.as_str()) => {
                schemas.values_mut().for_each(rewrite);
            }
            _ => {}
        }
    }
}

/// `"minimum": 0, "exclusiveMinimum": true` becomes `"exclusiveMinimum": 0`.
fn limits(fields: &mut Map<String, Value>) {
    for (limit, exclusive) in [("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")] {
        let Some(Value::Bool(is_exclusive)) = fields.get(exclusive).cloned() else { continue };
        fields.remove(exclusive);
        if let Some(bound) = fields.get(limit).cloned().filter(|_| is_exclusive) {
            fields.remove(limit);
            fields.insert(exclusive.to_owned(), bound);
        }
    }
}

/// `"id": "#name"` becomes an anchor; other ids name places that are never loaded.
fn identity(fields: &mut Map<String, Value>) {
    let Some(Value::String(id)) = fields.get("id") else { return };
    let anchor = id.strip_prefix('#').map(str::to_owned);
    fields.remove("id");
    if let Some(anchor) = anchor.filter(|anchor| !anchor.is_empty()) {
        fields.insert("$anchor".to_owned(), anchor.into());
    }
}

/// `"items": […]` becomes `prefixItems`, and what follows them `items`.
fn tuples(fields: &mut Map<String, Value>) {
    let rest = fields.remove("additionalItems");
    if !fields.get("items").is_some_and(Value::is_array) {
        return;
    }
    if let Some(items) = fields.remove("items") {
        fields.insert("prefixItems".to_owned(), items);
    }
    if let Some(rest) = rest {
        fields.insert("items".to_owned(), rest);
    }
}

fn dependencies(fields: &mut Map<String, Value>) {
    let Some(Value::Object(dependencies)) = fields.remove("dependencies") else { return };
    let (mut needed, mut schemas) = (Map::new(), Map::new());
    for (name, dependency) in dependencies {
        match dependency {
            Value::String(one) => drop(needed.insert(name, Value::Array(vec![one.into()]))),
            Value::Array(several) => drop(needed.insert(name, several.into())),
            schema => drop(schemas.insert(name, schema)),
        }
    }
    for (name, found) in [("dependentRequired", needed), ("dependentSchemas", schemas)] {
        if !found.is_empty() {
            fields.insert(name.to_owned(), found.into());
        }
    }
}

/// `"required": true` of a property moves into the list of its object.
fn required(fields: &mut Map<String, Value>) {
    if fields.get("required").is_some_and(Value::is_boolean) {
        fields.remove("required");
    }
    let Some(Value::Object(properties)) = fields.get_mut("properties") else { return };
    let mut names = Vec::new();
    for (name, property) in properties {
        let Value::Object(property) = property else { continue };
        if let Some(Value::Bool(is_required)) = property.get("required").cloned() {
            property.remove("required");
            names.extend(is_required.then(|| Value::from(name.as_str())));
        }
    }
    if names.is_empty() {
        return;
    }
    if let Value::Array(known) =
        fields.entry("required").or_insert_with(|| Value::Array(Vec::new()))
    {
        names.retain(|name| !known.contains(name));
        known.extend(names);
    }
}

#[cfg(test)]
mod tests {
    use super::super::Schema;
    use super::*;
    use serde_json::json;

    #[test]
    fn schemas_of_older_drafts_are_taken_and_mean_the_same() {
        let old = json!({"$schema": "http://json-schema.org/draft-04/schema#", "id": "http://example.com/s",
            "type": "object", "properties": {
                "count": {"type": "integer", "minimum": 0, "exclusiveMinimum": true, "required": true},
                "share": {"type": "number", "maximum": 1, "exclusiveMaximum": false, "divisibleBy": 0.5},
                "pair": {"type": "array", "items": [{"type": "string"}, {"$ref": "#/definitions/n"}],
                    "additionalItems": false},
                "id": {"type": "string"}, "any": {"type": "any"}},
            "dependencies": {"share": "count", "pair": ["id"]},
            "definitions": {"n": {"id": "#n", "type": "integer"}}});
        assert!(Schema::compile(&old).is_err());
        let schema = Schema::compile(&modern(old)).unwrap();
        for good in [
            json!({"count": 1}),
            json!({"count": 1, "share": 1, "any": null}),
            json!({"count": 1, "id": "x", "pair": ["a", 1]}),
        ] {
            assert!(schema.check(&good).is_ok(), "{good}");
        }
        for bad in [
            json!({}),
            json!({"count": 0}),
            json!({"count": 1, "share": 0.3}),
            json!({"count": 1, "pair": ["a", 1]}),
            json!({"count": 1, "id": "x", "pair": ["a", "b"]}),
            json!({"count": 1, "id": "x", "pair": ["a", 1, 2]}),
            json!({"count": 1, "id": 7}),
        ] {
            assert!(schema.check(&bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn an_unknown_draft_is_read_as_the_newest_one() {
        let unknown = json!({"$schema": "https://example.com/our-own", "type": "object"});
        assert!(Schema::compile(&modern(unknown)).is_ok());
    }

    #[test]
    fn a_schema_of_today_is_not_changed() {
        for today in [
            json!({"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object",
                "$defs": {"a": {"$anchor": "a", "prefixItems": [true], "items": false}}}),
            json!({"$schema": "http://json-schema.org/draft-07/schema#", "type": "object",
                "properties": {"id": {"type": "string"}, "required": {"type": "boolean"}}}),
        ] {
            assert_eq!(modern(today.clone()), today);
        }
    }
}
