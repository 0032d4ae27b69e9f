//! Streaming calls: items before the response, in order, bounded, cancelled.

use crate::calls::{answer, expect_call};
use crate::process::{Process, completed, failed, message, run_agent};
use serde_json::{Value, json};

const STREAM: &str = "artifacts.open_stream";

fn item(runner: &mut Process, id: &Value, item: Value) {
    let params = json!({ "request_id": id, "item": item });
    runner.send(json!({ "jsonrpc": "2.0", "method": "stream.item", "params": params }));
}

fn piece(runner: &mut Process, id: &Value, offset: usize, text: &str) {
    use base64::Engine;
    let data_base64 = base64::engine::general_purpose::STANDARD.encode(text);
    item(runner, id, json!({ "offset": offset, "data_base64": data_base64 }));
}

fn open(method: &str) -> (Process, Value) {
    let mut runner = Process::probe();
    runner.send(run_agent(1, "r1", "", json!({ "do": "ask", "method": method })));
    let id = runner.read()["id"].clone();
    (runner, id)
}

fn given_up(id: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "method": "request.cancel", "params": { "request_id": id } })
}

#[test]
fn the_items_of_a_model_come_before_its_response() {
    let (mut runner, id) = open("models.stream");
    let items = [
        json!({ "type": "text_delta", "text": "你" }),
        json!({ "type": "tool_call_end", "id": "t1", "name": "add", "args": { "a": 1 } }),
        json!({ "type": "usage", "input_tokens": 3 }),
        json!({ "type": "finish", "reason": "stop" }),
    ];
    for each in &items {
        item(&mut runner, &id, each.clone());
    }
    // Items of unknown calls are ignored.
    item(&mut runner, &json!(999), json!({}));
    item(&mut runner, &json!("text"), json!({}));
    let response = json!({ "segments": [{ "type": "text", "text": "你" }], "metadata": {} });
    answer(&mut runner, id, response.clone());
    let (results, _) = runner.read_until(1);
    let text = json!({ "items": items, "response": response }).to_string();
    assert_eq!(results, [message("r1", 1, &text), completed("r1", 2)]);
}

#[test]
fn an_artifact_is_streamed_in_pieces() {
    let (mut runner, id) = open(STREAM);
    piece(&mut runner, &id, 0, "hello, ");
    piece(&mut runner, &id, 7, "world");
    answer(&mut runner, id, json!({ "size_bytes": 12, "sha256": "00" }));
    let (results, _) = runner.read_until(1);
    let text = r#"{"offset":12,"pieces":["hello, ","world"]}"#;
    assert_eq!(results, [message("r1", 1, text), completed("r1", 2)]);
}

#[test]
fn a_missing_piece_and_an_early_end_are_errors() {
    let (mut runner, id) = open(STREAM);
    piece(&mut runner, &id, 0, "hello, ");
    piece(&mut runner, &id, 8, "world");
    let (messages, _) = runner.read_until(1);
    let text = "unexpected response to `artifacts.open_stream`: a piece is missing";
    assert_eq!(messages, [given_up(&id), failed("r1", 1, "runtime_error", text)]);

    let (mut runner, id) = open(STREAM);
    piece(&mut runner, &id, 0, "hello");
    answer(&mut runner, id, json!({ "size_bytes": 12, "sha256": "00" }));
    let (messages, _) = runner.read_until(1);
    let text = "unexpected response to `artifacts.open_stream`: it ended early";
    assert_eq!(messages, [failed("r1", 1, "runtime_error", text)]);
}

#[test]
fn an_error_after_some_items_ends_the_stream() {
    let (mut runner, id) = open("models.stream");
    item(&mut runner, &id, json!({ "type": "text_delta", "text": "a" }));
    let data = json!({ "code": "rate_limited", "message": "slow down", "retryable": false });
    let error = json!({ "code": -32000, "message": "slow down", "data": data });
    runner.send(json!({ "jsonrpc": "2.0", "id": id, "error": error }));
    let (results, _) = runner.read_until(1);
    assert_eq!(results, [failed("r1", 1, "rate_limited", "slow down")]);
}

#[test]
fn a_stream_is_cancelled_at_the_deadline() {
    let mut runner = Process::probe();
    let mut request = run_agent(1, "r1", "", json!({ "do": "ask", "method": STREAM }));
    request["params"]["context"]["runtime"]["metadata"]["remaining_ms"] = json!(50);
    runner.send(request);
    let params = json!({ "run_id": "r1", "artifact_id": "a1", "offset": 0 });
    let id = expect_call(&mut runner, STREAM, params);
    piece(&mut runner, &id, 0, "hello");
    let (messages, _) = runner.read_until(1);
    let text = "the run's deadline passed while waiting for `artifacts.open_stream`";
    assert_eq!(messages, [given_up(&id), failed("r1", 1, "deadline_exceeded", text)]);
}

#[test]
fn a_cancelled_run_cancels_its_stream() {
    let (mut runner, id) = open("models.stream");
    runner.send(r#"{"jsonrpc":"2.0","method":"run.cancel","params":{"run_id":"r1"}}"#);
    let (messages, _) = runner.read_until(1);
    assert_eq!(messages, [given_up(&id), failed("r1", 1, "cancelled", "the run was cancelled")]);
}
