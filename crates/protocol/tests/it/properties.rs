//! No input makes a parser panic, and values survive a round trip.

use greenroom_protocol::payload::Payload;
use greenroom_protocol::result::kind;
use greenroom_protocol::wire::Incoming;
use greenroom_protocol::{AgentRunnerManifest, DeltaRef, NewEvent, RawResult, RunnerId};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// Any JSON, with the protocol's own words more often than by chance.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        prop_oneof!["assistant", "runner", "image", "plugin:a/b/c", "1", ""].prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 48, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((any_key(), inner), 0..8)
                .prop_map(|fields| Value::Object(fields.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

fn any_key() -> impl Strategy<Value = String> {
    let words = [
        "id",
        "name",
        "label",
        "type",
        "event_type",
        "input",
        "contents",
        "chunk",
        "content",
        "role",
        "message",
        "scope",
        "key",
        "value",
        "code",
        "action",
        "context",
        "permissions",
        "models",
        "sequence",
        "run_id",
        "data",
        "size_bytes",
        "artifact_id",
        "protocol_version",
        "actor",
    ];
    prop_oneof![4 => prop::sample::select(words.to_vec()).prop_map(str::to_owned), 1 => any::<String>()]
}

fn parse_everything(text: &str) {
    for result_kind in kind::STABLE.into_iter().chain(["x.unknown"]) {
        let _ = Payload::parse(result_kind, Some(text));
    }
    let _ = DeltaRef::parse(text);
    let _ = RunnerId::parse(text);
    let _ = NewEvent::parse(text.as_bytes());
    let _ = AgentRunnerManifest::parse(text).map(|manifest| manifest.warnings());
    let _ = RawResult::parse(text);
    let _ = Incoming::parse(text);
}

proptest! {
    #[test]
    fn bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..256)) {
        let _ = NewEvent::parse(&bytes);
        parse_everything(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn json_never_panics(value in any_json()) {
        parse_everything(&value.to_string());
    }

    #[test]
    fn a_parsed_runner_id_is_unchanged(text in "plugin:[a-zA-Z0-9._/-]{0,40}|\\PC{0,40}") {
        if let Ok(id) = RunnerId::parse(&text) {
            prop_assert_eq!(id.as_str(), text.as_str());
            prop_assert_eq!(format!("plugin:{}/{}", id.plugin(), id.runner()), text);
            prop_assert!(!id.runner().contains('/'));
        }
    }

    #[test]
    fn events_survive_a_round_trip(
        text in any::<Option<String>>(), data in any_json(), field in any_key(), time in any::<Option<i32>>(),
    ) {
        let event = json!({"event_type": "message.received", "event_time": time, "data": {"x": data},
            "input": {"text": text}, "actor": {"actor_type": "user", format!("x_{field}"): data}});
        let read = NewEvent::parse(event.to_string().as_bytes()).expect("it is valid");
        let written = serde_json::to_vec(&read).expect("it can be written");
        prop_assert_eq!(NewEvent::parse(&written).expect("it is still valid"), read);
    }

    #[test]
    fn a_manifest_preserves_unknown_fields(value in any_json(), field in any_key()) {
        let field = format!("x_{field}");
        let manifest = json!({"id": "plugin:a/b/c", "name": "c", "label": "C", (field.clone()): value,
            "capabilities": {(field.clone()): value}, "context": {(field.clone()): value}});
        let read = AgentRunnerManifest::parse(&manifest.to_string()).expect("it is valid");
        let expected: Value = serde_json::from_str(&value.to_string()).expect("JSON");
        for kept in [&read.extra, &read.capabilities.extra, &read.context.extra] {
            prop_assert_eq!(&kept[&field], &expected);
        }
        let written = serde_json::to_string(&read).expect("it can be written");
        prop_assert_eq!(AgentRunnerManifest::parse(&written).expect("it is still valid"), read);
    }
}
