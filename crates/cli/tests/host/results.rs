//! Results that break the rules: dropped, kept as diagnostics or fatal to their run, as DESIGN §4 says.
//!
//! Invariant: whatever a runner sends, numbers rise without a second meaning and there is one terminal.

use crate::stage::{Stage, event, outcome};
use greenroom_protocol::RunStatus::{Completed, Failed};
use greenroom_testkit::http::Request;
use greenroom_testkit::reader::Frames;
use serde_json::{Value, json};

/// The types of the stored results.
async fn kinds(stage: &Stage, run_id: &str) -> Vec<String> {
    stage.api.results(run_id).await.into_iter().map(|result| result.kind).collect()
}

async fn diagnostic_kinds(stage: &Stage, run_id: &str) -> Vec<String> {
    stage.diagnostics(run_id).await.into_iter().map(|(kind, _)| kind).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn results_for_another_run_change_nothing() {
    let more = r#"
[runners.other]
command = ["python3", "PUPPET"]
dir = "other"
env = { NAME = "other" }
[agents.other]
runner = "plugin:test/other/main"
events = []
"#;
    let more = more.replace("PUPPET", crate::stage::runners().join("puppet.py").to_str().unwrap());
    let stage = Stage::open(&more).await;
    let victim = stage.start_waiting().await;
    let forged = json!({"message": {"role": "assistant", "content": "forged"}});
    let other_run = json!({ "run_id": victim });
    let steps = json!([
        ["result", "message.completed", forged, other_run],
        ["result", "run.failed", {"code": "forged", "message": "forged"}, other_run],
        ["result", "message.completed", forged, {"run_id": "no-such-run"}],
        ["message", "mine"],
        ["end"],
    ]);
    let run_id = stage.send(&event("other", "forger", &steps.to_string())).await;
    assert_eq!(outcome(&stage.api.ended_run(&run_id).await), (Completed, ""));
    assert_eq!(stage.api.answers("forger").await, ["mine"]);
    stage.finish_waiting(&victim).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn results_after_the_terminal_take_no_number_and_are_kept_as_diagnostics() {
    let stage = Stage::open("").await;
    let late = json!({"message": {"role": "assistant", "content": "too late"}});
    let failed = json!({"code": "too.late", "message": "too late"});
    let steps = json!([
        ["message", "in time"],
        ["end"],
        ["gate", "over"],
        ["result", "message.completed", late],
        ["result", "run.failed", failed],
    ]);
    let run_id = stage.start("c", steps).await;
    let ended = stage.api.ended_run(&run_id).await;
    assert_eq!(outcome(&ended), (Completed, ""));
    stage.pass("over");
    assert_eq!(diagnostic_kinds(&stage, &run_id).await, ["after_terminal", "after_terminal"]);
    assert_eq!(kinds(&stage, &run_id).await, ["message.completed", "run.completed"]);
    assert_eq!(stage.api.answers("c").await, ["in time"]);
    let run = stage.api.run(&run_id).await;
    assert_eq!(outcome(&run), (Completed, ""));
    assert_eq!(run.last_sequence, ended.last_sequence);
}

#[tokio::test(flavor = "multi_thread")]
async fn repeated_runner_sequences_are_dropped_and_missing_ones_are_no_matter() {
    let stage = Stage::open("").await;
    let delta = |text: &str, sequence: i64| {
        let data = json!({"chunk": {"role": "assistant", "content": text}});
        json!(["result", "message.delta", data, {"sequence": sequence}])
    };
    let steps = json!([
        delta("one ", 1),
        delta("one ", 1),
        delta("two ", 2),
        delta("three", 5),
        delta("two ", 2),
        ["end"]
    ]);
    let run = stage.play(steps).await;
    assert_eq!(outcome(&run), (Completed, ""));
    assert_eq!(stage.answers_of(&run).await, ["one two three"]);
    let results = stage.api.results(&run.run_id).await;
    let numbers: Vec<_> = results.iter().map(|result| result.runner_sequence).collect();
    assert_eq!(numbers, [Some(1), Some(2), Some(5), None]);
    assert!(results.is_sorted_by(|one, next| one.sequence < next.sequence), "{results:?}");
    assert_eq!(diagnostic_kinds(&stage, &run.run_id).await, ["duplicate", "duplicate"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_without_a_terminal_fails_and_keeps_its_text() {
    let stage = Stage::open("").await;
    let run = stage.play(json!([["say", "that is "], ["say", "all"]])).await;
    assert_eq!(outcome(&run), (Failed, "runner.no_terminal"));
    assert_eq!(stage.answers_of(&run).await, ["that is all"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_as_the_answer_of_run_agent_fails_the_run() {
    let stage = Stage::open("").await;
    let run = stage.play(json!([["say", "so far"], ["error", -32050, "my model is gone"]])).await;
    assert_eq!(outcome(&run), (Failed, "runner.error"));
    assert_eq!(run.error.as_ref().unwrap().message, "my model is gone");
    assert_eq!(stage.answers_of(&run).await, ["so far"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runners_own_failure_keeps_its_code() {
    let stage = Stage::open("").await;
    let data = json!({"code": "acme.no_model", "error": "no model", "retryable": true});
    let run = stage.play(json!([["result", "run.failed", data]])).await;
    assert_eq!(outcome(&run), (Failed, "acme.no_model"));
    let error = run.error.unwrap();
    assert_eq!((error.message.as_str(), error.retryable), ("no model", true));
}

/// One bad result, then a good answer: the bad one is not stored, is told about, and costs nothing else.
async fn is_dropped(stage: &Stage, kind: &str, data: &Value, diagnostic: &str) {
    let run = stage.play(json!([["result", kind, data], ["message", "good"], ["end"]])).await;
    let told = format!("{kind} {:.200}", data.to_string());
    assert_eq!(outcome(&run), (Completed, ""), "{told}");
    assert_eq!(kinds(stage, &run.run_id).await, ["message.completed", "run.completed"], "{told}");
    assert_eq!(diagnostic_kinds(stage, &run.run_id).await, [diagnostic], "{told}");
    assert_eq!(stage.answers_of(&run).await, ["good"], "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_payloads_are_dropped_and_recorded() {
    let stage = Stage::open("").await;
    let invalid = [
        ("message.delta", json!({"chunk": {"role": "assistant", "content": 5}})),
        ("message.delta", json!({})),
        ("message.completed", json!({"message": "text"})),
        ("message.completed", json!({"message": {"role": "robot", "content": "x"}})),
        ("artifact.created", json!({"artifact_id": 5})),
        ("artifact.created", json!({"artifact_id": "a", "sha256": "short"})),
        ("action.requested", json!({"target": {}})),
        ("run.completed", json!({"message": {"content": 5}})),
        ("run.failed", json!({"code": "has spaces", "message": "x"})),
        ("run.failed", json!({"code": 5})),
        ("run.restarted", json!({"attempt": 2})),
        ("two words", json!({})),
    ];
    for (kind, data) in invalid {
        is_dropped(&stage, kind, &data, "invalid_result").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn state_that_is_malformed_or_not_granted_is_dropped_and_recorded() {
    let stage = Stage::open("").await;
    let invalid = [
        json!({"scope": "galaxy", "key": "k", "value": 1}),
        json!({"scope": "conversation", "key": "", "value": 1}),
        json!({"scope": "conversation", "key": "k".repeat(257), "value": 1}),
        json!({"scope": "conversation", "key": "k", "value": "v".repeat(256 * 1024)}),
        json!({"scope": "conversation", "value": 1}),
    ];
    for data in invalid {
        is_dropped(&stage, "state.updated", &data, "invalid_result").await;
    }
    // Not among what a grant gives when its key is absent; and no subject in the event.
    for scope in ["binding", "subject"] {
        let data = json!({"scope": scope, "key": "k", "value": 1});
        is_dropped(&stage, "state.updated", &data, "refused_result").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn state_that_is_granted_is_what_the_next_run_sees() {
    let stage = Stage::open("").await;
    let update = |scope: &str, key: &str, value: Value| json!(["result", "state.updated", {"scope": scope, "key": key, "value": value}]);
    let steps = json!([
        update("conversation", "k", json!({"n": 1})),
        update("conversation", "gone", json!(1)),
        update("conversation", "gone", Value::Null),
        update("actor", "name", json!("Ann")),
        update("runner", "count", json!(7)),
        ["end"],
    ]);
    let run_id = stage.start("one", steps).await;
    assert_eq!(outcome(&stage.api.ended_run(&run_id).await), (Completed, ""));
    let look = json!([["tell", "state"], ["end"]]);
    let mut seen = Vec::new();
    for conversation in ["one", "two"] {
        let run_id = stage.start(conversation, look.clone()).await;
        stage.api.ended_run(&run_id).await;
        let told: Value = serde_json::from_str(&stage.api.answers(conversation).await[0]).unwrap();
        seen.push(["conversation", "actor", "runner"].map(|scope| told[scope].clone()));
    }
    let (actor, runner) = (json!({"name": "Ann"}), json!({"count": 7}));
    assert_eq!(seen[0], [json!({"k": {"n": 1}}), actor.clone(), runner.clone()]);
    assert_eq!(seen[1], [json!({}), actor, runner]);
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_types_are_kept_and_warned_about() {
    let stage = Stage::open("").await;
    let data = json!({"text": "hm", "深": [1, null]});
    let run =
        stage.play(json!([["result", "acme.thought", data], ["message", "x"], ["end"]])).await;
    assert_eq!(outcome(&run), (Completed, ""));
    let results = stage.api.results(&run.run_id).await;
    assert_eq!(results[0].kind, "acme.thought");
    assert_eq!(Value::Object(results[0].data.clone()), data);
    assert_eq!(diagnostic_kinds(&stage, &run.run_id).await, ["unknown_type"]);
    assert_eq!(stage.answers_of(&run).await, ["x"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_over_its_size_overflows_its_run_and_no_other() {
    let stage = Stage::open_with("result_bytes = 2048\ncancel_grace_s = 1", "").await;
    let beside = stage.start_waiting().await;
    let run = stage.play(json!([["say", "first"], ["message", "x".repeat(3000)], ["end"]])).await;
    assert_eq!(outcome(&run), (Failed, "runner.overflow"));
    assert_eq!(stage.answers_of(&run).await, ["first"]);
    stage.finish_waiting(&beside).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_text_without_its_message_is_kept_as_bytes_and_shown_by_its_beginning() {
    let stage = Stage::open_with("result_bytes = 4096", "").await;
    let part = "x".repeat(3000);
    let failed = json!(["result", "run.failed", {"code": "runner.failed", "message": "no more"}]);
    let run = stage.play(json!([["say", part], ["say", part], ["say", part], failed])).await;
    assert_eq!(run.status, Failed);
    let items = stage.api.history(run.conversation_id.as_deref().unwrap()).await;
    let item = items.last().unwrap();
    assert_eq!(item.text.as_deref(), Some(format!("{} …", "x".repeat(2048)).as_str()));
    assert_eq!(item.metadata["truncated"], true);
    assert_eq!(item.artifacts.len(), 1);
}

/// A complete message may wait for the end that comes behind it; nobody has to wait for that, and nothing
/// overtakes it.
#[tokio::test(flavor = "multi_thread")]
async fn a_message_is_shown_before_what_comes_behind_it_and_without_it_too() {
    let stage = Stage::open("").await;
    let page = json!({"conversation_id": "c", "limit": 10});
    let steps = json!([
        ["message", "one"],
        ["say", "two"],
        ["message", "two"],
        ["gate", "go"],
        ["message", "three"],
        ["call", "history.page", page, "seen"],
        ["say", "four"],
        ["end"],
    ]);
    let event = event("puppet", "c", &steps.to_string());
    let request = Request::post("/v1/events", event.to_string());
    let answer = stage.api.send(request.header("Accept", "text/event-stream")).await.unwrap();
    let mut frames = Frames::new(answer);
    let mut shown = Vec::new();
    while let Some(frame) = frames.next().await.unwrap() {
        shown.push((frame.id, frame.event));
        if shown.len() == 4 {
            // Nothing comes behind the second message until it was shown.
            stage.pass("go");
        }
    }
    let kinds = shown.iter().map(|(_, kind)| kind.as_str());
    let (delta, message) = ("message.delta", "message.completed");
    let expected = ["accepted", message, delta, message, message, delta, "run.completed"];
    assert_eq!(kinds.collect::<Vec<_>>(), expected);
    let numbers: Vec<_> = shown.iter().skip(1).map(|(id, _)| id.as_str()).collect();
    assert_eq!(numbers, ["1", "2", "3", "4", "5", "6"]);
    // A call does not wait for what may come behind the message that was sent before it.
    assert_eq!(stage.told("seen").await["result"]["items"], json!([]));
    assert_eq!(stage.api.answers("c").await, ["one", "two", "three", "four"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_the_terminal_repeats_is_in_the_transcript_once() {
    let stage = Stage::open("").await;
    let message = json!({"role": "assistant", "content": "the answer"});
    let steps = json!([
        ["result", "message.completed", {"message": message}],
        ["gate", "stored"],
        ["result", "run.completed", {"finish_reason": "stop", "message": message}],
    ]);
    let run_id = stage.start("c", steps).await;
    greenroom_testkit::wait::wait_for("the message", crate::stage::PATIENCE, async || {
        (!stage.api.results(&run_id).await.is_empty()).then_some(())
    })
    .await;
    stage.pass("stored");
    assert_eq!(outcome(&stage.api.ended_run(&run_id).await), (Completed, ""));
    assert_eq!(stage.api.answers("c").await, ["the answer"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_only_the_terminal_carries_is_in_the_transcript() {
    let stage = Stage::open("").await;
    let message = json!({"role": "assistant", "content": "the answer"});
    let run = stage.play(json!([["result", "run.completed", {"message": message}]])).await;
    assert_eq!(outcome(&run), (Completed, ""));
    assert_eq!(stage.answers_of(&run).await, ["the answer"]);
}

/// A line of the wire that carries a result of the run.
fn line(kind: &str, data: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","method":"run.result","params":{{"run_id":"RUN","type":"{kind}","data":{data}}}}}"#
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn data_that_later_readers_could_not_read_is_dropped_and_recorded() {
    let stage = Stage::open("").await;
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let lines = [
        line("state.updated", &format!(r#"{{"scope":"conversation","key":"k","value":{deep}}}"#)),
        line("acme.thought", &format!(r#"{{"deep":{deep}}}"#)),
        line("message.delta", r#"{"chunk":{"content":"\ud800"}}"#),
        line("message.completed", r#"{"message":{"role":"assistant","content":"\ud800"}}"#),
        line("acme.thought", r#"{"half":"\ud800"}"#),
        line("acme.thought", r#"{"number":1e999}"#),
        line("acme.thought", "[1]"),
    ];
    for line in lines {
        let run = stage.play(json!([["line", line], ["message", "good"], ["end"]])).await;
        assert_eq!(outcome(&run), (Completed, ""), "{line:.200}");
        assert_eq!(kinds(&stage, &run.run_id).await, ["message.completed", "run.completed"]);
        assert_eq!(diagnostic_kinds(&stage, &run.run_id).await, ["invalid_result"], "{line:.200}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn odd_texts_are_kept_as_they_can_be() {
    let stage = Stage::open("").await;
    let run = stage
        .play(json!([["say", "a\u{0}b "], ["say", ""], ["say", "𝄞\r\n\u{2028}"], ["end"]]))
        .await;
    assert_eq!(outcome(&run), (Completed, ""));
    assert_eq!(stage.answers_of(&run).await, ["a\u{fffd}b 𝄞\r\n\u{2028}"]);
    let results = stage.api.results(&run.run_id).await;
    let pieces =
        results[..3].iter().map(|result| result.data["chunk"]["content"].as_str().unwrap());
    assert_eq!(pieces.collect::<Vec<_>>(), ["a\u{0}b ", "", "𝄞\r\n\u{2028}"]);
}
