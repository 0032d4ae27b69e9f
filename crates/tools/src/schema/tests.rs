use super::*;
use proptest::prelude::*;
use serde_json::json;

fn refused(schema: Value) -> BadSchema {
    Schema::compile(&schema).map(|_| ()).unwrap_err()
}

#[test]
fn valid_arguments_pass() {
    let schema = Schema::compile(&json!({
        "type": "object",
        "properties": {"path": {"type": "string"}, "limit": {"type": "integer", "minimum": 1}},
        "required": ["path"],
        "additionalProperties": false,
    }))
    .unwrap();
    assert_eq!(schema.check(&json!({"path": "a", "limit": 3})), Ok(()));
}

#[test]
fn the_error_names_the_field_and_carries_the_schema_unchanged() {
    let source = json!({
        "type": "object",
        "properties": {
            "filter": {"type": "object", "properties": {"tags": {"type": "array", "items": {"type": "string"}}}},
            "limit": {"type": ["integer", "null"], "minimum": 1, "maximum": 9, "default": 5},
        },
        "required": ["filter"],
        "additionalProperties": false,
    });
    let schema = Schema::compile(&source).unwrap();
    let cases = [
        (
            json!({"filter": {"tags": ["a", 7]}}),
            "filter.tags[1]",
            "`filter.tags[1]`: the value is not of type \"string\"",
        ),
        (json!({}), "filter", "`filter`: is required"),
        (json!({"filter": {}, "limti": 3}), "limti", "`limti`: is not a known field"),
        (
            json!({"filter": {}, "limit": 10}),
            "limit",
            "`limit`: the value is greater than the maximum of 9",
        ),
        (json!([]), "", "the value is not of type \"object\""),
    ];
    for (args, field, message) in cases {
        let failure = schema.check(&args).unwrap_err();
        assert_eq!(failure.code, "INVALID_ARGUMENT");
        assert_eq!(failure.message, message);
        assert_eq!(failure.details["field"], field);
        assert_eq!(failure.details["input_schema"], source);
    }
}

#[test]
fn all_mistakes_are_reported_at_once() {
    let schema = Schema::compile(&json!({
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
    }))
    .unwrap();
    let failure = schema.check(&json!({"a": "x", "b": "y"})).unwrap_err();
    assert_eq!(
        failure.message,
        "`a`: the value is not of type \"integer\"; `b`: the value is not of type \"integer\""
    );
}

#[test]
fn of_alternatives_the_mistake_of_the_nearest_is_reported() {
    let schema = Schema::compile(&json!({
        "type": "object",
        "properties": {"shape": {"oneOf": [
            {"type": "object", "properties": {"kind": {"const": "circle"}, "radius": {"type": "number"}}, "required": ["kind", "radius"]},
            {"type": "object", "properties": {"kind": {"const": "square"}, "side": {"type": "number"}}, "required": ["kind", "side"]},
            {"type": "null"},
        ]}},
    }))
    .unwrap();
    let failure = schema.check(&json!({"shape": {"kind": "square", "side": "long"}})).unwrap_err();
    assert_eq!(failure.message, "`shape.side`: the value is not of type \"number\"");
}

#[test]
fn a_reference_outside_the_schema_is_refused() {
    let remote = [
        "https://example.com/schema.json",
        "http://127.0.0.1:1/x",
        "file:///etc/passwd",
        "other.json",
        "//example.com/x",
    ];
    for target in remote {
        assert_eq!(
            refused(json!({"properties": {"a": {"$ref": target}}})),
            BadSchema::Remote(target.to_owned())
        );
        assert_eq!(
            refused(json!({"$defs": {"unused": {"items": {"$ref": target}}}})),
            BadSchema::Remote(target.to_owned())
        );
    }
    let hidden = json!({"$schema": "https://example.com/meta", "type": "object"});
    assert!(matches!(refused(hidden), BadSchema::Invalid(_)));
    let base = json!({"properties": {"a": {"$id": "https://example.com/", "$ref": "#/b"}}});
    assert!(Schema::compile(&base).is_err());
    assert_eq!(
        refused(json!({"properties": {"a": {"$ref": "#/$defs/none"}}})),
        BadSchema::Dangling("#/$defs/none".to_owned())
    );
}

#[test]
fn a_property_that_is_named_like_a_keyword_is_a_property() {
    let schema = Schema::compile(&json!({
        "type": "object",
        "properties": {"$ref": {"type": "string"}, "$id": {"type": "string"}, "id": {"type": "string"}},
        "examples": [{"$ref": "https://example.com"}],
    }))
    .unwrap();
    assert_eq!(schema.check(&json!({"$ref": "x", "id": "https://example.com"})), Ok(()));
}

#[test]
fn an_exponential_schema_is_refused_at_once() {
    let mut defs = serde_json::Map::new();
    for step in 0..40 {
        let next = format!("#/$defs/n{}", step + 1);
        defs.insert(format!("n{step}"), json!({"allOf": [{"$ref": next}, {"$ref": next}]}));
    }
    defs.insert("n40".to_owned(), json!({"type": "string"}));
    assert_eq!(refused(json!({"$ref": "#/$defs/n0", "$defs": defs})), BadSchema::TooCostly);
}

#[test]
fn a_schema_that_refers_to_itself_at_the_same_value_is_refused() {
    assert!(matches!(refused(json!({"$ref": "#"})), BadSchema::Endless(_)));
    let ring = json!({"$ref": "#/$defs/a", "$defs": {
        "a": {"anyOf": [{"type": "string"}, {"$ref": "#/$defs/b"}]},
        "b": {"not": {"$ref": "#/$defs/a"}},
    }});
    assert!(matches!(refused(ring), BadSchema::Endless(_)));
}

#[test]
fn a_tree_may_refer_to_itself() {
    let schema = Schema::compile(&json!({
        "type": "object",
        "properties": {"left": {"$ref": "#"}, "right": {"$ref": "#"}, "value": {"type": "integer"}},
    }))
    .unwrap();
    let mut tree = json!({"value": "wrong"});
    for _ in 0..60 {
        tree = json!({"left": tree, "right": {"value": 1}});
    }
    let failure = schema.check(&tree).unwrap_err();
    assert!(failure.message.contains("is not of type \"integer\""), "{}", failure.message);
}

#[test]
fn arguments_that_are_too_expensive_for_a_recursive_schema_are_refused() {
    let schema = Schema::compile(&json!({
        "type": "object",
        "properties": {"c": {"allOf": [{"$ref": "#"}, {"$ref": "#"}, {"$ref": "#"}]}},
    }))
    .unwrap();
    assert_eq!(schema.check(&json!({"c": {"c": {"c": {}}}})), Ok(()));
    let mut deep = json!({});
    for _ in 0..80 {
        deep = json!({"c": deep});
    }
    assert_eq!(
        schema.check(&deep).unwrap_err().message,
        "the arguments are too large or too deep for the schema"
    );
}

#[test]
fn giant_and_deep_schemas_are_refused() {
    let wide: Vec<String> = (0..30_000).map(|n| format!("value {n}")).collect();
    assert_eq!(refused(json!({"enum": wide})), BadSchema::TooLarge);
    let mut deep = json!({"type": "string"});
    for _ in 0..60 {
        deep = json!({"properties": {"a": deep}});
    }
    assert_eq!(refused(deep), BadSchema::TooDeep);
    assert_eq!(refused(json!(true)), BadSchema::NotAnObject);
    assert!(matches!(refused(json!({"type": "objekt"})), BadSchema::Invalid(_)));
}

#[test]
fn a_pattern_that_backtracks_endlessly_is_stopped() {
    let schema = Schema::compile(&json!({
        "type": "object",
        "properties": {"a": {"type": "string", "pattern": "^(?=(a+)+$)(a|aa)+$"}},
    }));
    let Ok(schema) = schema else { return };
    let text = format!("{}!", "a".repeat(40));
    assert!(schema.check(&json!({"a": text})).is_err());
}

/// Hostile schemas: keywords anywhere, references to anywhere.
fn any_schema() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!(true)),
        Just(json!({})),
        Just(json!({"type": "string", "pattern": "^(a+)+$"})),
        Just(json!({"type": "integer", "multipleOf": 0.1})),
        Just(json!({"enum": [1, "a", null]})),
        prop_oneof!["#", "#/\\$defs/[ab]", "#/properties/a", "#a", "[a-z]{3}:", "#/%61"]
            .prop_map(|target| json!({"$ref": target})),
        any::<i64>().prop_map(|number| json!(number)),
    ];
    leaf.prop_recursive(4, 40, 4, |inner| {
        let keyword = prop_oneof![
            "properties",
            "items",
            "allOf",
            "anyOf",
            "oneOf",
            "not",
            "if",
            "then",
            "\\$defs",
            "patternProperties",
            "additionalProperties",
            "prefixItems",
            "dependentSchemas",
            "contains",
            "\\$anchor",
            "required",
        ];
        prop_oneof![
            proptest::collection::btree_map(keyword, inner.clone(), 0..4)
                .prop_map(|map| json!(map)),
            proptest::collection::btree_map("[ab]", inner.clone(), 0..3).prop_map(|map| json!(map)),
            proptest::collection::vec(inner, 0..3).prop_map(|list| json!(list)),
        ]
    })
}

fn any_args() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!(null)),
        any::<i32>().prop_map(Value::from),
        "[a!]{0,30}".prop_map(Value::from)
    ];
    leaf.prop_recursive(8, 60, 3, |inner| {
        prop_oneof![
            proptest::collection::btree_map("[abc]", inner.clone(), 0..3)
                .prop_map(|map| json!(map)),
            proptest::collection::vec(inner, 0..3).prop_map(|list| json!(list)),
        ]
    })
}

proptest! {
    #[test]
    fn any_schema_and_arguments_are_handled(schema in any_schema(), args in any_args()) {
        if let Ok(schema) = Schema::compile(&schema) {
            let _ = schema.check(&args);
        }
    }
}
