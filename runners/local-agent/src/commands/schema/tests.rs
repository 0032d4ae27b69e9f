//! Interpretation of typed text by schemas.

use super::*;
use crate::commands::line;

fn schema(properties: Value, required: Value) -> Schema {
    let schema = json!({"type": "object", "properties": properties, "required": required,
        "$defs": {"Size": {"type": "integer"}}});
    Schema(schema)
}

/// What `v=TEXT` is under a schema for `v`.
fn read(field: Value, typed: &str) -> Value {
    let line = format!("v={typed}");
    let words = line::words(&line);
    schema(json!({"v": field}), json!([])).read(&["v"], &words[0].given)
}

#[test]
fn text_is_read_as_its_schema_says() {
    for (field, typed, expected) in [
        (json!({"type": "integer"}), "42", json!(42)),
        (json!({"type": "integer"}), "\"42\"", json!(42)),
        (json!({"type": "integer"}), "18446744073709551615", json!(u64::MAX)),
        (json!({"type": "integer"}), "4.5", json!("4.5")),
        (json!({"type": "number"}), "4.5", json!(4.5)),
        (json!({"type": "number"}), "NaN", json!("NaN")),
        (json!({"type": "boolean"}), "yes", json!(true)),
        (json!({"type": "boolean"}), "maybe", json!("maybe")),
        (json!({"type": "string"}), "42", json!("42")),
        (json!({"type": "string"}), "[1]", json!("[1]")),
        (json!({"enum": ["low", "High", 3]}), "high", json!("High")),
        (json!({"enum": ["low", "High", 3]}), "3", json!(3)),
        (json!({"type": ["string", "null"]}), "null", Value::Null),
        (json!({"type": ["string", "null"]}), "\"null\"", json!("null")),
        (json!({"type": "array", "items": {"type": "integer"}}), "1,2", json!([1, 2])),
        (json!({"type": "array", "items": {"type": "string"}}), "\"a, b\"", json!(["a, b"])),
        (json!({"type": "array"}), "[1, \"b\"]", json!([1, "b"])),
        (
            json!({"type": "array", "items": {"type": "string"}}),
            "甲\u{ff0c}乙",
            json!(["甲", "乙"]),
        ),
        (json!({"type": "object"}), "{\"a\": 1}", json!({"a": 1})),
        (json!({"$ref": "#/$defs/Size"}), "7", json!(7)),
        (json!({"anyOf": [{"type": "string"}, {"type": "integer"}]}), "7", json!(7)),
        (json!({"anyOf": [{"type": "string"}, {"type": "integer"}]}), "\"7\"", json!("7")),
        (json!({"oneOf": [{"$ref": "#/$defs/Size"}, {"const": "big"}]}), "big", json!("big")),
        (json!({}), "{\"a\": [1]}", json!({"a": [1]})),
        (json!({}), "plain", json!("plain")),
        (json!(true), "7", json!(7)),
    ] {
        assert_eq!(read(field.clone(), typed), expected, "{field} {typed}");
    }
}

#[test]
fn a_recursive_reference_is_ignored() {
    let schema = Schema(json!({"properties": {"v": {"$ref": "#/properties/v"}}}));
    let words = line::words("v=1");
    assert_eq!(schema.read(&["v"], &words[0].given), json!(1));
}

#[test]
fn free_text_is_for_the_one_required_field_or_the_first_that_takes_text() {
    let text = json!({"type": "string"});
    let number = json!({"type": "integer"});
    let open = |schema: &Schema, given: Value| {
        let given = given.as_object().cloned().unwrap_or_default();
        schema.open_field(&given).map(|field| field.name.to_owned())
    };
    let note = schema(json!({"a": text, "text": text, "n": number}), json!(["n", "text"]));
    assert_eq!(open(&note, json!({})).as_deref(), Some("text"));
    assert_eq!(open(&note, json!({"text": "x"})).as_deref(), Some("n"));
    assert_eq!(open(&note, json!({"text": "x", "n": 1})).as_deref(), Some("a"));
    assert_eq!(open(&schema(json!({"n": number}), json!([])), json!({})), None);
}

#[test]
fn an_informal_contract_is_a_schema() {
    let schema = Schema::from_contract(&json!({
        "mode": "string enum(day|range|event)",
        "limit": "integer 1 to 100, optional, default 20",
        "with": "array of 1 to 50 strings: actor ids",
        "notes": "string or null, optional",
        "date": "string date YYYY-MM-DD, required with mode=day, else absent",
    }));
    let required: Vec<&str> =
        schema.fields().iter().filter(|field| field.is_required).map(|field| field.name).collect();
    assert_eq!(required, ["mode", "with"]);
    let read = |key: &str, typed: &str| {
        let line = format!("{key}={typed}");
        schema.read(&[key], &line::words(&line)[0].given)
    };
    assert_eq!(read("mode", "DAY"), json!("day"));
    assert_eq!(read("limit", "5"), json!(5));
    assert_eq!(read("with", "u1,u2"), json!(["u1", "u2"]));
    assert_eq!(read("notes", "null"), Value::Null);
    assert_eq!(read("date", "2026-01-02"), json!("2026-01-02"));
}

/// `calendar.create` and `calendar.share`, as the host describes them.
#[test]
fn free_text_then_formats_then_dependent_fields() {
    let required = |contract: Value, given: Value| {
        let given = given.as_object().cloned().unwrap_or_default();
        let schema = Schema::from_contract(&contract);
        let names = schema.missing(&given).into_iter().map(str::to_owned);
        (names.collect::<Vec<_>>(), schema.open_field(&given).map(|field| field.name.to_owned()))
    };
    let create = json!({
        "title": "string, 1 to 200 characters",
        "start_at": "string RFC 3339 time with zone, e.g. 2026-04-21T10:00:00+08:00",
        "end_at": "string RFC 3339 time with zone, after start_at",
        "timezone": "string IANA time zone, optional: in which the event is shown",
        "location": "string, optional, up to 500 characters",
    });
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let expected = (names(&["title", "start_at", "end_at"]), Some("title".to_owned()));
    assert_eq!(required(create.clone(), json!({})), expected);
    let expected = (names(&["start_at", "end_at"]), Some("start_at".to_owned()));
    assert_eq!(required(create, json!({"title": "Lunch"})), expected);
    let share = json!({
        "event_id": "string, id of the event",
        "with": "array of 1 to 50 strings: actor ids of the people to invite",
    });
    let expected = (names(&["event_id", "with"]), Some("event_id".to_owned()));
    assert_eq!(required(share, json!({})), expected);
    // A schema has an order of its own.
    let sum = json!({"type": "object", "required": ["b", "a"],
        "properties": {"a": {"type": "string"}, "b": {"type": "string"}}});
    assert_eq!(required(sum, json!({})), (names(&["b", "a"]), Some("b".to_owned())));
}

#[test]
fn a_schema_of_strings_is_not_informal() {
    for schema in [
        json!({"type": "object"}),
        json!({"type": "object", "description": "string of pearls"}),
        json!({"description": "Takes nothing", "type": "object", "title": "None"}),
        json!({"$ref": "#/$defs/Input"}),
        json!({"title": "Anything"}),
    ] {
        assert_eq!(Schema::from_contract(&schema), Schema(schema));
    }
    let fields = |contract: Value| {
        let schema = Schema::from_contract(&contract);
        schema.fields().iter().map(|field| field.name.to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(fields(json!({"type": "string enum(a|b)"})), ["type"]);
    assert_eq!(fields(json!({"title": "string", "type": "object or null"})), ["title", "type"]);
    assert_eq!(fields(json!({})), [""; 0]);
}
