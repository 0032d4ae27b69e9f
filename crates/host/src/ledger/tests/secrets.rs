//! Secrets do not pass the ledger.

use super::*;

const SECRET: &str = "s3cret-value";

fn text_of(records: &[ResultRecord]) -> String {
    let content = |record: &ResultRecord| {
        let data: Value = serde_json::from_str(record.data.get()).unwrap();
        data["chunk"]["content"].as_str().unwrap_or_default().to_owned()
    };
    records.iter().map(content).collect()
}

fn delta_of(message: &str, text: &str) -> RawResult {
    let chunk = json!({"role": "assistant", "content": text, "message_id": message});
    result("message.delta", json!({ "chunk": chunk }), None)
}

#[test]
fn a_secret_that_is_split_over_deltas_is_removed() {
    for cut in 0..=SECRET.len() {
        let (one, other) = SECRET.split_at(cut);
        let mut ledger = ledger();
        let first = ledger.take_in(vec![delta("it is "), delta(one)], 0);
        let second = ledger.take_in(vec![delta(other), delta("!")], 0);
        let shown = text_of(&first.live) + &text_of(&second.live);
        let expected = if cut == 1 { "it is s[redacted]!" } else { "it is [redacted]!" };
        assert_eq!(shown, expected, "cut at {cut}");
        ledger.take_in(vec![end()], 0);
        let pending = ledger.commit();
        assert_eq!(pending.changes.items[0].text.as_deref(), Some(expected));
        assert!(!pending.chunk.unwrap().body.contains(SECRET));
    }
}

#[test]
fn held_back_text_is_released_before_anything_else() {
    let mut ledger = ledger();
    let intake = ledger.take_in(vec![delta("a s3"), delta("cr"), completed("a s3cr"), end()], 0);
    assert_eq!(
        shown(&intake.live),
        [(1, "message.delta"), (2, "message.delta"), (3, "message.delta")]
    );
    assert_eq!(text_of(&intake.live), "a s3cr");
    assert_eq!(shown(&intake.held), [(4, "message.completed"), (5, "run.completed")]);
    let mut ended = self::ledger();
    ended.take_in(vec![delta("a s3")], 0);
    let error = crate::run::failure("cancelled", "cancelled".into(), false);
    let held = ended.end(RunStatus::Cancelled, error, 0);
    assert_eq!(shown(&held), [(2, "message.delta"), (3, "run.failed")]);
    assert_eq!(text_of(&held), "s3");
    assert_eq!(ended.commit().changes.items[0].text.as_deref(), Some("a s3"));
}

#[test]
fn a_secret_split_by_another_result_is_not_joined() {
    for cut in 1..SECRET.len() {
        let (one, other) = SECRET.split_at(cut);
        let mut ledger = ledger();
        let between = result("x.y", json!({}), None);
        let intake = ledger.take_in(vec![delta(one), between, delta(other), end()], 0);
        let shown = text_of(&intake.live) + &text_of(&intake.held);
        assert!(shown.ends_with("[redacted]") && shown.len() < 16, "{shown}");
        let pending = ledger.commit();
        assert_eq!(pending.changes.items[0].text.as_deref(), Some(shown.as_str()));
    }
}

#[test]
fn messages_streamed_at_the_same_time_are_separate_texts() {
    let mut ledger = ledger();
    let results = vec![
        delta_of("a", "s3cret"),
        delta_of("b", "nothing "),
        delta_of("a", "-value"),
        delta_of("b", "here"),
    ];
    let intake = ledger.take_in(results, 0);
    assert_eq!(text_of(&intake.live), "nothing [redacted]here");
    let many = (0..40).map(|n| delta_of(&format!("m{n}"), "s3")).collect();
    let intake = ledger.take_in(many, 0);
    let shown = text_of(&intake.live) + &text_of(&intake.held);
    let rest = text_of(&ledger.take_in(vec![end()], 0).held);
    assert_eq!(shown + &rest, "s3".repeat(40));
}

#[test]
fn deltas_keep_their_other_fields() {
    let mut ledger = ledger();
    let data = json!({"chunk": {"role": "assistant", "content": "it is s3cret-value.",
        "message_id": "m s3cret-value", "lang": "en"}, "more": ["s3cret-value", 1]});
    let intake = ledger.take_in(vec![result("message.delta", data, None)], 0);
    let data: Value = serde_json::from_str(intake.live[0].data.get()).unwrap();
    let expected = json!({"chunk": {"role": "assistant", "content": "it is [redacted].",
        "message_id": "m [redacted]", "lang": "en"}, "more": ["[redacted]", 1]});
    assert_eq!(data, expected);
}

#[test]
fn results_without_secrets_keep_their_exact_text() {
    let mut ledger = ledger();
    let data = r#"{ "chunk": {"content":"caf\u00e9 1.50", "role":"assistant"} }"#;
    let text = format!(r#"{{"run_id":"r1","type":"message.delta","data":{data}}}"#);
    let intake = ledger.take_in(vec![serde_json::from_str(&text).unwrap()], 0);
    assert_eq!(intake.live[0].data.get(), data);
}

#[test]
fn a_secret_is_removed_from_all_effects_of_a_result() {
    let mut ledger = ledger();
    let hidden = r#"{"run_id":"r1","type":"tool.call.completed","data":{"tool_call_id":"t",
        "tool_name":"x","result":{"s3cret-value":"\u00733cret-value"},"error":null}}"#;
    let mut counted = end();
    counted.usage = Some(RawValue::from_string(r#"{"s3cret-value":1}"#.to_owned()).unwrap());
    let results = vec![
        completed("so s3cret-value"),
        serde_json::from_str(hidden).unwrap(),
        result(
            "state.updated",
            json!({"scope": "conversation", "key": SECRET, "value": [SECRET]}),
            None,
        ),
        result("state.updated", json!({"scope": SECRET, "key": "k", "value": 1}), None),
        result(
            "action.requested",
            json!({"action": "message.send", "payload": {"text": SECRET}}),
            None,
        ),
        result("artifact.created", json!({"artifact_id": "a1", "name": SECRET}), None),
        result("acme.s3cret-value", json!({"deep": [{"k": "x s3cret-value"}]}), None),
        counted,
    ];
    let intake = ledger.take_in(results, 0);
    assert_eq!(intake.held.len(), 7);
    let pending = ledger.commit();
    let told = format!(
        "{:?} {:?} {:?} {:?} {:?}",
        intake.held, pending.chunk, pending.changes, pending.diagnostics, pending.terminal
    );
    assert!(!told.contains(SECRET), "{told}");
    assert_eq!(pending.changes.state[0].name, "[redacted]");
    assert_eq!(pending.changes.items[0].text.as_deref(), Some("so [redacted]"));
}

#[test]
fn run_errors_and_diagnostics_are_cleaned_before_they_are_cut() {
    let mut ledger = ledger();
    ledger.note("k", &format!("{}{SECRET}", "x".repeat(995)), 0);
    let error = crate::run::failure("runner.error", format!("no: {SECRET}"), false);
    ledger.end(RunStatus::Failed, error, 0);
    let pending = ledger.commit();
    assert!(pending.diagnostics[0].message.ends_with("x[reda"), "{:?}", pending.diagnostics);
    assert_eq!(pending.terminal.unwrap().error.unwrap().message, "no: [redacted]");
}
