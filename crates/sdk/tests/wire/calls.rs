//! Calls from a run to the host.

use crate::process::{Process, completed, failed, message, run_agent};
use serde_json::{Value, json};

/// Expects a call with these parameters and returns its id.
pub(crate) fn expect_call(runner: &mut Process, method: &str, params: Value) -> Value {
    let call = runner.read();
    assert_eq!((&call["method"], &call["params"]), (&json!(method), &params));
    call["id"].clone()
}

pub(crate) fn answer(runner: &mut Process, id: Value, result: Value) {
    runner.send(json!({ "jsonrpc": "2.0", "id": id, "result": result }));
}

#[test]
fn state_is_read_written_listed_and_removed() {
    let mut runner = Process::probe();
    runner.send(run_agent(1, "r1", "", json!({ "do": "state" })));
    let key = json!({ "run_id": "r1", "scope": "conversation", "key": "count" });

    let id = expect_call(&mut runner, "state.get", key.clone());
    answer(&mut runner, id, json!({ "value": 41, "version": 5 }));
    let mut write = key.clone();
    write["value"] = json!(42);
    let id = expect_call(&mut runner, "state.set", write);
    answer(&mut runner, id, json!({ "version": 6 }));
    let list = json!({ "run_id": "r1", "scope": "conversation", "prefix": "co" });
    let id = expect_call(&mut runner, "state.list", list);
    answer(&mut runner, id, json!({ "items": [{ "key": "count", "value": 42, "version": 6 }] }));
    let id = expect_call(&mut runner, "state.delete", key);
    answer(&mut runner, id, json!({ "deleted": true }));

    let (results, _) = runner.read_until(1);
    let text = "count 42, version 6, 1 key, deleted true";
    assert_eq!(results, [message("r1", 1, text), completed("r1", 2)]);
}

#[test]
fn a_rejected_call_keeps_the_hosts_code() {
    let mut runner = Process::probe();
    runner.send(run_agent(1, "r1", "", json!({ "do": "call" })));
    let params = json!({ "run_id": "r1", "model_id": "m" });
    let id = expect_call(&mut runner, "models.invoke", params);
    let data = json!({
        "code": "unauthorized", "message": "not granted", "retryable": false, "details": {},
    });
    let error = json!({ "code": -32000, "message": "not granted", "data": data });
    runner.send(json!({ "jsonrpc": "2.0", "id": id, "error": error }));
    let (results, _) = runner.read_until(1);
    assert_eq!(results, [failed("r1", 1, "unauthorized", "not granted")]);
}

#[test]
fn a_call_is_cancelled_at_the_runs_deadline() {
    let mut runner = Process::probe();
    let mut request = run_agent(1, "r1", "", json!({ "do": "call" }));
    request["params"]["context"]["runtime"]["metadata"]["remaining_ms"] = json!(50);
    runner.send(request);
    let id = expect_call(&mut runner, "models.invoke", json!({ "run_id": "r1", "model_id": "m" }));
    let given_up = runner.read();
    let expected =
        json!({ "jsonrpc": "2.0", "method": "request.cancel", "params": { "request_id": id } });
    assert_eq!(given_up, expected);
    let (results, _) = runner.read_until(1);
    let text = "the run's deadline passed while waiting for `models.invoke`";
    assert_eq!(results, [failed("r1", 1, "deadline_exceeded", text)]);
}

#[test]
fn a_cancelled_run_cancels_its_call() {
    let mut runner = Process::probe();
    runner.send(run_agent(1, "r1", "", json!({ "do": "call" })));
    let id = runner.read()["id"].clone();
    runner.send(r#"{"jsonrpc":"2.0","method":"run.cancel","params":{"run_id":"r1"}}"#);
    let (messages, _) = runner.read_until(1);
    let given_up =
        json!({ "jsonrpc": "2.0", "method": "request.cancel", "params": { "request_id": id } });
    let expected = [given_up, failed("r1", 1, "cancelled", "the run was cancelled")];
    assert_eq!(messages, expected);
}
