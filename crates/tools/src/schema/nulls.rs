//! `null` for an argument that is optional: models send it where they mean to leave the argument out.
//!
//! Invariant: a `null` that the schema allows, and one for a required argument, stays.

use serde_json::{Map, Value};

/// References that are followed from one schema to the next.
const STEPS_MAX: usize = 16;

/// Removes them from the arguments, also from nested ones.
pub fn leave_out_nulls(schema: &Value, args: &mut Map<String, Value>) {
    in_object(schema, schema, args, STEPS_MAX);
}

fn in_object(root: &Value, schema: &Value, args: &mut Map<String, Value>, depth: usize) {
    let Some(schema) = resolved(root, schema) else { return };
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return };
    let required = schema.get("required").and_then(Value::as_array);
    args.retain(|name, value| {
        let is_required =
            required.is_some_and(|required| required.iter().any(|known| known == name));
        let property = properties.get(name);
        !value.is_null()
            || is_required
            || property.is_none_or(|property| allows_null(root, property, STEPS_MAX))
    });
    if depth == 0 {
        return;
    }
    for (name, value) in args {
        let Some(property) = properties.get(name) else { continue };
        match value {
            Value::Object(inner) => in_object(root, property, inner, depth - 1),
            Value::Array(items) => {
                let Some(each) = resolved(root, property).and_then(|list| list.get("items")) else {
                    continue;
                };
                for item in items.iter_mut().filter_map(Value::as_object_mut) {
                    in_object(root, each, item, depth - 1);
                }
            }
            _ => {}
        }
    }
}

/// A schema without `$ref`; `None` if it leads nowhere.
fn resolved<'s>(root: &'s Value, mut schema: &'s Value) -> Option<&'s Value> {
    for _ in 0..STEPS_MAX {
        match schema.get("$ref").and_then(Value::as_str) {
            Some(pointer) => schema = root.pointer(pointer.strip_prefix('#')?)?,
            None => return Some(schema),
        }
    }
    None
}

/// In doubt it does: then the argument stays.
fn allows_null(root: &Value, schema: &Value, steps: usize) -> bool {
    let Some(schema) = resolved(root, schema).filter(|_| steps > 0) else { return true };
    let is_null = |kind: &Value| kind == "null";
    let by_type = match schema.get("type") {
        Some(Value::Array(kinds)) => kinds.iter().any(is_null),
        Some(kind) => is_null(kind),
        None => true,
    };
    let by_value = match (schema.get("enum").and_then(Value::as_array), schema.get("const")) {
        (Some(values), _) => values.contains(&Value::Null),
        (None, Some(value)) => value.is_null(),
        (None, None) => true,
    };
    let some = |name: &str| match schema.get(name).and_then(Value::as_array) {
        Some(schemas) => schemas.iter().any(|schema| allows_null(root, schema, steps - 1)),
        None => true,
    };
    let all = schema.get("allOf").and_then(Value::as_array);
    let by_all =
        all.is_none_or(|schemas| schemas.iter().all(|schema| allows_null(root, schema, steps - 1)));
    by_type && by_value && some("anyOf") && some("oneOf") && by_all
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn left(schema: &Value, args: Value) -> Value {
        let Value::Object(mut args) = args else { panic!("arguments are an object") };
        leave_out_nulls(schema, &mut args);
        args.into()
    }

    #[test]
    fn a_null_for_an_optional_argument_is_left_out() {
        let schema = json!({"type": "object", "required": ["needed"], "properties": {
            "needed": {"type": "string"}, "text": {"type": "string"},
            "choice": {"enum": ["a", "b"]}, "either": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            "several": {"type": ["string", "null"]}, "anything": {},
            "own": {"$ref": "#/$defs/own"},
            "list": {"type": "array", "items": {"$ref": "#/$defs/own"}}},
            "$defs": {"own": {"type": "object", "properties": {"n": {"type": "integer"}}}}});
        let given = json!({"needed": null, "text": null, "choice": null, "either": null,
            "several": null, "anything": null, "own": {"n": null, "m": null}, "extra": null,
            "list": [{"n": null}, {"n": 1}, null]});
        let expected = json!({"needed": null, "either": null, "several": null, "anything": null,
            "own": {"m": null}, "extra": null, "list": [{}, {"n": 1}, null]});
        assert_eq!(left(&schema, given), expected);
        assert_eq!(left(&schema, json!({"own": null})), json!({}));
    }

    #[test]
    fn schemas_that_refer_to_themselves_end() {
        let schema = json!({"properties": {"a": {"$ref": "#/properties/a"},
            "b": {"anyOf": [{"$ref": "#/properties/b"}]}}});
        let args = json!({"a": null, "b": null});
        assert_eq!(left(&schema, args.clone()), args);
    }
}
