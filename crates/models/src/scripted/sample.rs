//! The smallest JSON value that fits a schema, for structured output.
//!
//! Invariant: bounded in depth and deterministic.

use serde_json::{Map, Value, json};

const DEPTH_MAX: usize = 16;

pub(super) fn sample(schema: &Value) -> Value {
    sample_at(schema, schema, 0)
}

fn sample_at(schema: &Value, root: &Value, depth: usize) -> Value {
    if depth > DEPTH_MAX {
        return Value::Null;
    }
    if let Some(target) = schema.get("$ref").and_then(Value::as_str) {
        let target = target.strip_prefix('#').and_then(|pointer| root.pointer(pointer));
        return target.map_or(Value::Null, |found| sample_at(found, root, depth + 1));
    }
    if let Some(value) = schema.get("const").or(schema.get("default")) {
        return value.clone();
    }
    if let Some(first) = schema.get("enum").and_then(|values| values.get(0)) {
        return first.clone();
    }
    for key in ["anyOf", "oneOf", "allOf"] {
        if let Some(first) = schema.get(key).and_then(|choices| choices.get(0)) {
            return sample_at(first, root, depth + 1);
        }
    }
    of_type(schema, root, depth)
}

fn of_type(schema: &Value, root: &Value, depth: usize) -> Value {
    let kind = schema.get("type");
    let kind = kind.and_then(|kind| kind.as_str().or_else(|| kind.get(0)?.as_str()));
    let number = |key: &str| schema.get(key).and_then(Value::as_u64);
    // Gemini writes types in upper case.
    match kind.unwrap_or("object").to_ascii_lowercase().as_str() {
        "object" => {
            let properties = schema.get("properties").and_then(Value::as_object);
            let fields = properties.into_iter().flatten();
            let fields =
                fields.map(|(name, field)| (name.clone(), sample_at(field, root, depth + 1)));
            Value::Object(fields.collect::<Map<_, _>>())
        }
        "array" => {
            let item =
                schema.get("items").map_or(Value::Null, |items| sample_at(items, root, depth + 1));
            let count =
                usize::try_from(number("minItems").unwrap_or(0)).unwrap_or(0).min(DEPTH_MAX);
            Value::Array(vec![item; count])
        }
        "integer" | "number" => schema.get("minimum").cloned().unwrap_or(json!(0)),
        "boolean" => json!(false),
        "null" => Value::Null,
        _ => json!("scripted"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_fits_its_schema() {
        let schema = json!({
            "type": "object",
            "properties": {
                "title": {"type": "string"},
                "kind": {"enum": ["a", "b"]},
                "count": {"type": "integer", "minimum": 3},
                "tags": {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/tag"}},
                "done": {"type": ["boolean", "null"]}
            },
            "$defs": {"tag": {"type": "object", "properties": {"name": {"const": "x"}}}}
        });
        let expected = json!({"title": "scripted", "kind": "a", "count": 3, "tags": [{"name": "x"}], "done": false});
        assert_eq!(sample(&schema), expected);
    }

    #[test]
    fn a_recursive_schema_terminates() {
        let schema = json!({"type": "object", "properties": {"next": {"$ref": "#"}}});
        assert!(sample(&schema).is_object());
    }
}
