//! Runs and their ends, as the host sees them.

use crate::process::{Process, completed, delta, failed, message, result, run_agent};
use serde_json::{Value, json};

fn done(id: i64) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "result": {} })
}

#[test]
fn a_run_streams_its_answer_and_completes() {
    let mut runner = Process::probe();
    runner.send(run_agent(7, "r1", "Ada", json!({})));
    let (results, answer) = runner.read_until(7);
    let expected = [
        delta("r1", 1, "Hello, "),
        delta("r1", 2, "Ada"),
        message("r1", 3, "Hello, Ada"),
        completed("r1", 4),
    ];
    assert_eq!(results, expected);
    assert_eq!(answer, done(7));
}

#[test]
fn a_stream_of_results_is_sent_unchanged() {
    let mut runner = Process::probe();
    runner.send(run_agent(1, "r1", "", json!({ "do": "stream" })));
    let (results, _) = runner.read_until(1);
    assert_eq!(results, [delta("r1", 1, "a"), delta("r1", 2, "b"), completed("r1", 3)]);
}

#[test]
fn every_result_type_has_the_shape_of_the_contract() {
    let mut runner = Process::probe();
    runner.send(run_agent(1, "r1", "", json!({ "do": "every_result" })));
    let (results, _) = runner.read_until(1);
    let started = json!({ "tool_call_id": "c1", "tool_name": "search", "parameters": {"q": "x"} });
    let ended = json!({
        "tool_call_id": "c1", "tool_name": "search", "result": ["y"], "error": null,
    });
    let artifact = json!({
        "name": "a.txt", "mime_type": "text/plain", "size_bytes": 2, "content_base64": "aGk=",
    });
    let action = json!({ "action": "message.send", "target": { "id": "t" }, "payload": {} });
    let mut last = completed("r1", 8);
    last["params"]["usage"] = json!({ "total_tokens": 3 });
    let expected = [
        delta("r1", 1, "d"),
        message("r1", 2, "m"),
        result("r1", 3, "tool.call.started", started),
        result("r1", 4, "tool.call.completed", ended),
        result("r1", 5, "artifact.created", artifact),
        result("r1", 6, "state.updated", json!({ "scope": "actor", "key": "k", "value": 7 })),
        result("r1", 7, "action.requested", action),
        last,
    ];
    assert_eq!(results, expected);
}

#[test]
fn a_failure_keeps_its_code_and_a_panic_harms_no_other_run() {
    let mut runner = Process::probe();
    runner.send(run_agent(1, "waits", "", json!({ "do": "wait" })));
    runner.send(run_agent(2, "r2", "", json!({ "do": "fail" })));
    let (results, answer) = runner.read_until(2);
    let data = json!({ "code": "probe.failed", "message": "as asked", "retryable": true });
    assert_eq!(results, [result("r2", 1, "run.failed", data)]);
    assert_eq!(answer, done(2));

    runner.send(run_agent(3, "r3", "", json!({ "do": "panic" })));
    let (results, answer) = runner.read_until(3);
    let expected = failed("r3", 1, "runner.error", "the runner panicked: as asked");
    assert_eq!(results, [expected]);
    assert_eq!(answer, done(3));

    runner.send(r#"{"jsonrpc":"2.0","method":"run.cancel","params":{"run_id":"waits"}}"#);
    let (results, _) = runner.read_until(1);
    assert_eq!(results, [failed("waits", 1, "cancelled", "the run was cancelled")]);
}

#[test]
fn a_run_that_ignores_cancellation_is_dropped_after_its_grace_period() {
    let mut runner = Process::probe();
    runner.send(run_agent(1, "r1", "", json!({ "do": "never_look" })));
    runner.send(
        r#"{"jsonrpc":"2.0","method":"run.cancel","params":{"run_id":"r1","reason":"user"}}"#,
    );
    let (results, answer) = runner.read_until(1);
    assert_eq!(results, [failed("r1", 1, "cancelled", "the run was cancelled")]);
    assert_eq!(answer, done(1));
}

#[test]
fn concurrent_runs_keep_their_order() {
    let mut runner = Process::probe();
    for number in 1..=100 {
        runner.send(run_agent(number, &format!("r{number}"), "you", json!({})));
    }
    let messages: Vec<Value> = (0..500).map(|_| runner.read()).collect();
    for number in 1..=100 {
        let run_id = format!("r{number}");
        let own = messages
            .iter()
            .filter(|line| line["params"]["run_id"] == *run_id || line["id"] == number);
        let expected = [
            delta(&run_id, 1, "Hello, "),
            delta(&run_id, 2, "you"),
            message(&run_id, 3, "Hello, you"),
            completed(&run_id, 4),
            done(number),
        ];
        assert_eq!(own.cloned().collect::<Vec<_>>(), expected);
    }
}

#[test]
fn a_run_id_is_rejected_while_running_but_may_be_reused() {
    let mut runner = Process::probe();
    runner.send(run_agent(1, "r1", "", json!({ "do": "wait" })));
    runner.send(run_agent(2, "r1", "", json!({})));
    let (_, answer) = runner.read_until(2);
    assert_eq!(answer["error"]["code"], -32602);
    runner.send(r#"{"jsonrpc":"2.0","method":"run.cancel","params":{"run_id":"r1"}}"#);
    runner.read_until(1);
    runner.send(run_agent(3, "r1", "again", json!({})));
    let (results, _) = runner.read_until(3);
    assert_eq!(results.last(), Some(&completed("r1", 4)));
}

#[test]
fn what_a_runner_prints_does_not_reach_the_wire() {
    let mut runner = Process::probe();
    runner.send(run_agent(1, "r1", "", json!({ "do": "print" })));
    let (results, _) = runner.read_until(1);
    assert_eq!(results, [message("r1", 1, "printed"), completed("r1", 2)]);
}
