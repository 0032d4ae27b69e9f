//! Random inputs: every method answers, in the right shape.

use super::*;
use proptest::prelude::*;

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "\\PC{0,40}".prop_map(Value::from),
        "[0-9]{4}-[0-9]{2}-[0-9]{2}(T[0-9]{2}:[0-9]{2}:[0-9]{2}(\\.[0-9]{0,12})?(Z|[+-][0-9]{2}:[0-9]{2})?)?"
            .prop_map(Value::from),
        prop_oneof!["UTC", "Asia/Shanghai", "day", "range", "event", "rec_1", "\\.\\./etc"].prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map("[a-z]{1,3}", inner, 0..4).prop_map(|map| json!(map)),
        ]
    })
}

fn any_input() -> impl Strategy<Value = Value> {
    let field = prop_oneof![
        "mode",
        "date",
        "timezone",
        "start_at",
        "end_at",
        "event_id",
        "title",
        "location",
        "notes",
        "if_version",
        "with",
        "contact_id",
        "query",
        "limit",
        "cursor",
        "keys",
        "set",
        "delete",
        "[a-z]{1,5}",
    ];
    proptest::collection::btree_map(field, any_value(), 0..6).prop_map(|map| json!(map))
}

proptest! {
    #[test]
    fn every_input_gets_an_answer_in_shape(input in any_input(), index in 0..10_usize) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let spec = &specs()[index];
        let records = InMemory::new("u1");
        let result = runtime.block_on(route(spec.module, spec.method, &input, &MethodSet::all(), &records));
        let answer = result.to_value();
        match &result {
            CliResult::Done { .. } => prop_assert!(answer["data"].is_object()),
            CliResult::Failed(failure) => {
                prop_assert!(failure.details["module"] == spec.module);
                prop_assert!(failure.details["method"] == spec.method);
                prop_assert!(failure.code != "INVALID_ACTION_INPUT" || failure.details["input_schema"].is_object());
            }
        }
        let read = CliResult::read(spec.module, spec.method, answer.to_string().as_bytes()).unwrap();
        prop_assert_eq!(&read, &result);
        let output = crate::post::finish(TOOL_NAME, "call_1", &Object::new(), read.into_output());
        prop_assert!(serde_json::from_str::<Value>(&crate::post::content(&output)).is_ok());
        if let Some(hints) = &output.ui_hints {
            prop_assert!(crate::ui::compile(hints, &crate::ui::Options::default()).is_some());
        }
    }
}
