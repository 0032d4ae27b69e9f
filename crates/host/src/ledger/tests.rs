//! What a run's results lead to, by DESIGN §§3–4 and CONTRACT §3.

mod secrets;

use super::*;
use greenroom_protocol::payload::StateScope;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeSet;

fn identity() -> Arc<Identity> {
    Arc::new(Identity {
        workspace_id: "default".into(),
        run_id: "r1".into(),
        event_id: "e1".into(),
        agent: "a".into(),
        runner_id: "plugin:a/b/c".into(),
        conversation_id: Some("c1".into()),
        ..Identity::default()
    })
}

fn ledger() -> Ledger {
    let scopes = BTreeSet::from([StateScope::Conversation]);
    let state = StateRights { scopes, value_bytes_max: 100, owner_bytes_max: Some(1000) };
    let redactor = Redactor::new();
    redactor.set_secrets(&["s3cret-value".to_owned()]);
    let actions = ActionRights::default();
    let tool_calls = Default::default();
    let terms = Terms { state, actions, result_bytes_max: 1000, redactor, tool_calls };
    Ledger::new(identity(), terms, (0, 8))
}

fn result(kind: &str, data: Value, sequence: Option<i64>) -> RawResult {
    let mut result = json!({"run_id": "r1", "type": kind, "data": data});
    if let Some(sequence) = sequence {
        result["sequence"] = sequence.into();
    }
    serde_json::from_value(result).unwrap()
}

fn delta(text: &str) -> RawResult {
    result("message.delta", json!({"chunk": {"role": "assistant", "content": text}}), None)
}

fn completed(text: &str) -> RawResult {
    result("message.completed", json!({"message": {"role": "assistant", "content": text}}), None)
}

fn end() -> RawResult {
    result("run.completed", json!({"finish_reason": "stop"}), None)
}

fn shown(records: &[ResultRecord]) -> Vec<(i64, &str)> {
    records.iter().map(|record| (record.sequence, &*record.kind)).collect()
}

fn notes(pending: &Pending) -> Vec<&str> {
    pending.diagnostics.iter().map(|note| note.kind.as_str()).collect()
}

#[test]
fn deltas_are_published_at_once_and_everything_after_another_result_waits() {
    let mut ledger = ledger();
    let intake =
        ledger.take_in(vec![delta("a"), delta("b"), completed("ab"), delta("c"), end()], 0);
    assert_eq!(shown(&intake.live), [(1, "message.delta"), (2, "message.delta")]);
    assert_eq!(
        shown(&intake.held),
        [(3, "message.completed"), (4, "message.delta"), (5, "run.completed")]
    );
    let pending = ledger.commit();
    let texts: Vec<_> = pending.changes.items.iter().map(|item| item.text.clone()).collect();
    assert_eq!(texts, [Some("ab".to_owned()), Some("c".to_owned())]);
    assert_eq!(pending.terminal.unwrap().status, RunStatus::Completed);
    assert_eq!(pending.chunk.unwrap().last_seq, 5);
}

#[test]
fn no_delta_is_shown_beyond_the_reserved_numbers() {
    let mut ledger = ledger();
    let many = (0..10).map(|_| delta("x")).collect();
    let intake = ledger.take_in(many, 0);
    assert_eq!(intake.live.last().unwrap().sequence, 8);
    assert_eq!(shown(&intake.held), [(9, "message.delta"), (10, "message.delta")]);
    assert!(ledger.commit().reserved_seq >= 10);
}

#[test]
fn deltas_without_a_completed_message_become_one_transcript_item_at_the_end() {
    let mut ledger = ledger();
    ledger.take_in(vec![delta("hel"), delta("lo"), end()], 0);
    let pending = ledger.commit();
    assert_eq!(pending.changes.items.len(), 1);
    assert_eq!(pending.changes.items[0].text.as_deref(), Some("hello"));
    assert_eq!(pending.changes.items[0].role, "assistant");
}

#[test]
fn the_message_of_run_completed_is_not_repeated() {
    let with_message = || {
        result("run.completed", json!({"message": {"role": "assistant", "content": "hi"}}), None)
    };
    let mut alone = ledger();
    alone.take_in(vec![with_message()], 0);
    assert_eq!(alone.commit().changes.items.len(), 1);
    let mut after_another = ledger();
    after_another.take_in(vec![completed("hi")], 0);
    assert_eq!(after_another.commit().changes.items.len(), 1);
    after_another.take_in(vec![with_message()], 0);
    assert!(after_another.commit().changes.items.is_empty());
}

#[test]
fn results_after_the_terminal_take_no_number() {
    let mut ledger = ledger();
    let intake = ledger.take_in(vec![end(), delta("late"), end()], 0);
    assert_eq!(shown(&intake.held), [(1, "run.completed")]);
    assert!(intake.live.is_empty());
    assert_eq!(notes(&ledger.commit()), ["after_terminal", "after_terminal"]);
}

#[test]
fn what_a_runner_sends_after_a_cancel_is_a_diagnostic() {
    let mut ledger = ledger();
    let error = crate::run::failure("cancelled", "cancelled".into(), false);
    ledger.end(RunStatus::Cancelled, error, 0);
    let intake = ledger.take_in(
        vec![delta("x"), result("run.failed", json!({"code": "cancelled", "message": "m"}), None)],
        0,
    );
    assert!(intake.live.is_empty() && intake.held.is_empty());
    assert_eq!(notes(&ledger.commit()), ["after_terminal", "after_terminal"]);
}

#[test]
fn the_runners_own_numbers_drop_its_duplicates_and_gaps_are_fine() {
    let mut ledger = ledger();
    let counted = |n: i64| result("x.y", json!({}), Some(n));
    let intake = ledger.take_in(vec![counted(1), counted(1), counted(5), counted(4)], 0);
    let kept: Vec<_> = intake.held.iter().map(|r| (r.sequence, r.runner_sequence)).collect();
    assert_eq!(kept, [(1, Some(1)), (2, Some(5))]);
    let pending = ledger.commit();
    assert_eq!(notes(&pending), ["unknown_type", "duplicate", "unknown_type", "duplicate"]);
}

#[test]
fn invalid_and_ungranted_results_are_dropped_and_recorded() {
    let mut ledger = ledger();
    let state = |scope: &str, key: &str| {
        result("state.updated", json!({"scope": scope, "key": key, "value": 1}), None)
    };
    let bad = vec![
        result("message.delta", json!({"chunk": {"content": 5}}), None),
        result("message.completed", json!({}), None),
        state("galaxy", "k"),
        state("conversation", ""),
        state("binding", "k"),
        state("actor", "k"),
        result(
            "state.updated",
            json!({"scope": "conversation", "key": "k", "value": "x".repeat(200)}),
            None,
        ),
    ];
    let intake = ledger.take_in(bad, 0);
    assert!(intake.live.is_empty() && intake.held.is_empty());
    let pending = ledger.commit();
    assert_eq!(
        notes(&pending),
        [
            "invalid_result",
            "invalid_result",
            "invalid_result",
            "invalid_result",
            "refused_result",
            "refused_result",
            "refused_result"
        ]
    );
    assert!(pending.chunk.is_none() && pending.changes.state.is_empty());
    ledger.take_in(vec![state("conversation", "k")], 0);
    assert_eq!(ledger.commit().changes.state[0].name, "k");
}

#[test]
fn a_result_over_its_limit_ends_the_run() {
    let mut ledger = ledger();
    let intake = ledger.take_in(vec![completed(&"x".repeat(2000)), delta("late")], 0);
    assert_eq!(shown(&intake.held), [(1, "run.failed")]);
    let terminal = ledger.commit().terminal.unwrap();
    assert_eq!(terminal.error.unwrap().code, "runner.overflow");
}

#[test]
fn a_failure_always_has_code_message_and_retryable() {
    let mut ledger = ledger();
    let failed = result("run.failed", json!({"code": "my.code", "error": "why", "extra": 1}), None);
    let intake = ledger.take_in(vec![failed], 0);
    let data: Value = serde_json::from_str(intake.held[0].data.get()).unwrap();
    assert_eq!(
        data,
        json!({"code": "my.code", "error": "why", "extra": 1, "message": "why", "retryable": false})
    );
    assert_eq!(ledger.commit().terminal.unwrap().status, RunStatus::Failed);
}

#[test]
fn a_failure_that_says_cancelled_is_a_cancelled_run() {
    for (code, status) in
        [("cancelled", RunStatus::Cancelled), ("deadline_exceeded", RunStatus::Timeout)]
    {
        let mut ledger = ledger();
        ledger.take_in(vec![result("run.failed", json!({"code": code, "message": "m"}), None)], 0);
        assert_eq!(ledger.commit().terminal.unwrap().status, status);
    }
}

#[test]
fn published_results_fit_one_line() {
    let mut ledger = ledger();
    let raw = "{\"run_id\":\"r1\",\"type\":\"x.y\",\"data\":{\n\"a\":\r\n1}}";
    let intake = ledger.take_in(vec![serde_json::from_str(raw).unwrap()], 0);
    assert_eq!(intake.held[0].data.get(), "{\"a\":1}");
}

proptest! {
    #[test]
    fn whatever_a_runner_sends_numbers_increase_and_the_run_ends_at_most_once(
        steps in prop::collection::vec((0..7_usize, prop::option::of(0..6_i64), any::<bool>()), 1..80)
    ) {
        let mut ledger = ledger();
        let (mut numbers, mut terminals) = (Vec::new(), 0);
        for (pick, sequence, commit) in steps {
            let mut one = match pick {
                0 => delta("x"),
                1 => completed("y"),
                2 => end(),
                3 => result("run.failed", json!({"code": "c", "message": "m"}), None),
                4 => result("anything", json!({"n": 1}), None),
                5 => result("message.completed", json!("not an object"), None),
                _ => result("state.updated", json!({"scope": "conversation", "key": "k", "value": null}), None),
            };
            one.sequence = sequence;
            let intake = ledger.take_in(vec![one], 0);
            for record in intake.live.iter().chain(&intake.held) {
                numbers.push(record.sequence);
                terminals += usize::from(record.kind.starts_with("run."));
            }
            if commit {
                ledger.commit();
            }
        }
        prop_assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]));
        prop_assert!(terminals <= 1);
    }
}

#[test]
fn a_large_unfinished_text_waits_to_be_stored_and_comes_before_the_failure() {
    let surfaced = Identity { surface: Some("s".into()), ..(*identity()).clone() };
    let mut ledger = ledger();
    ledger.identity = Arc::new(surfaced);
    ledger.take_in(vec![delta(&"a".repeat(600)), delta(&"a".repeat(600))], 0);
    ledger.end(RunStatus::Failed, crate::run::failure("x", "y".to_owned(), false), 0);
    let mut folded = ledger.take_folded().unwrap();
    assert_eq!(folded.messages[0].content.text(), "a".repeat(1200));
    folded.messages[0] = Message::assistant("aa …".to_owned());
    ledger.put_folded(&folded);
    let changes = ledger.commit().changes;
    let texts: Vec<_> = changes.items.iter().map(|item| item.text.as_deref()).collect();
    assert_eq!(texts, [Some("aa …")]);
    let kinds = changes.deliveries.iter().map(|delivery| {
        let payload: Value = serde_json::from_str(&delivery.payload).unwrap();
        payload["type"].clone()
    });
    assert_eq!(kinds.collect::<Vec<_>>(), ["message.completed", "run.failed"]);
}
