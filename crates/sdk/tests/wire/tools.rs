//! Tools of a plugin: listed, called, cancelled.

use crate::process::{Process, run_agent};
use greenroom_sdk::{NoInput, Plugin, Tool, ToolCtx, ToolError, json, testing};
use serde_json::Value;

fn call(id: i64, tool: &str, parameters: Value) -> Value {
    let params = json!({
        "tool_name": tool, "parameters": parameters, "tool_call_id": format!("c{id}"),
        "run_id": "r1", "deadline_ms": 60_000,
    });
    json!({ "jsonrpc": "2.0", "id": id, "method": "call_tool", "params": params })
}

fn give_up(id: i64) -> Value {
    json!({ "jsonrpc": "2.0", "method": "request.cancel", "params": { "request_id": id } })
}

/// Calls a tool of the probe and gives the result.
fn answer(runner: &mut Process, id: i64, tool: &str, parameters: Value) -> Value {
    runner.send(call(id, tool, parameters));
    runner.read_until(id).1["result"].take()
}

fn failed(code: &str, message: &str) -> Value {
    let error = json!({ "code": code, "message": message, "retryable": false });
    json!({ "result": null, "error": error })
}

#[test]
fn tools_are_listed() {
    let mut runner = Process::probe();
    runner.send(r#"{"jsonrpc":"2.0","id":1,"method":"list_tools","params":{}}"#);
    let tools = runner.read()["result"]["tools"].take();
    let first = json!({
        "name": "math.add",
        "description": "Adds two numbers",
        "input_schema": {
            "type": "object",
            "properties": {
                "a": { "type": "integer", "format": "int64", "description": "The first number." },
                "b": { "type": "integer", "format": "int64" },
                "detail": { "type": "string", "enum": ["short", "long"] },
            },
            "required": ["a", "b"],
        },
        "output_schema": {
            "type": "object",
            "properties": {
                "total": { "type": "integer", "format": "int64" },
                "call": { "type": "string" },
                "run": { "type": ["string", "null"] },
            },
            "required": ["total", "call"],
        },
        "risk": "read",
        "timeout_s": 5,
    });
    assert_eq!(tools[0], first);
    let nothing = json!({ "type": "object", "properties": {} });
    let second = json!({ "name": "parse", "input_schema": nothing, "risk": "external" });
    assert_eq!(tools[1], second);
    assert_eq!(tools.as_array().unwrap().len(), 6);
}

#[test]
fn a_call_returns_the_functions_output() {
    let mut runner = Process::probe();
    let sum = answer(&mut runner, 1, "math.add", json!({ "a": 40, "b": 2, "detail": "long" }));
    assert_eq!(sum, json!({ "result": { "total": 42, "call": "c1", "run": "r1" } }));
    let count = answer(&mut runner, 2, "dropped", json!({}));
    assert_eq!(count, json!({ "result": 0, "content": "0 dropped" }));
}

#[test]
fn tool_errors_have_a_code() {
    let mut runner = Process::probe();
    let wrong = answer(&mut runner, 1, "math.add", json!({ "a": 1 }));
    assert_eq!(wrong, failed("invalid_argument", "missing field `b`"));
    let max = json!({ "a": i64::MAX, "b": 1 });
    assert_eq!(answer(&mut runner, 2, "math.add", max), failed("overflow", "too much"));
    let converted = answer(&mut runner, 3, "parse", json!({}));
    assert_eq!(converted, failed("tool.error", "invalid digit found in string"));
    let panicked = answer(&mut runner, 4, "fall", json!({}));
    assert_eq!(panicked, failed("tool.error", "the tool panicked: as asked"));
    let big = answer(&mut runner, 5, "big", json!({}));
    assert_eq!(big["error"]["code"], "payload_too_large");
    assert_eq!(answer(&mut runner, 6, "dropped", json!({}))["result"], 0);
}

#[test]
fn an_invalid_call_is_rejected() {
    let mut runner = Process::probe();
    runner.send(call(1, "coffee", json!({})));
    let error = json!({ "code": -32602, "message": "unknown tool `coffee`" });
    assert_eq!(runner.read(), json!({ "jsonrpc": "2.0", "id": 1, "error": error }));
    runner.send(call(2, "parse", json!("text")));
    assert_eq!(runner.read()["error"]["code"], -32602);
    runner.send(call(3, "wait", json!({})));
    runner.send(call(3, "wait", json!({})));
    assert_eq!(runner.read()["error"]["code"], -32600);
}

#[test]
fn a_cancelled_call_is_dropped_without_a_response() {
    let mut runner = Process::probe();
    runner.send(call(1, "wait", json!({})));
    runner.send(call(2, "wait", json!({})));
    runner.send(give_up(1));
    // An unknown call: nothing happens.
    runner.send(give_up(99));
    let dropped = |runner: &mut Process| {
        for id in 10.. {
            runner.send(call(id, "dropped", json!({})));
            let (before, answer) = runner.read_until(id);
            assert_eq!(before, Vec::<Value>::new());
            if answer["result"]["result"] == 1 {
                return;
            }
        }
    };
    dropped(&mut runner);
    runner.send(r#"{"jsonrpc":"2.0","id":"bye","method":"shutdown","params":{}}"#);
    assert_eq!(runner.read(), json!({ "jsonrpc": "2.0", "id": "bye", "result": {} }));
    assert_eq!(runner.wait().code(), Some(0));
}

#[test]
fn tools_and_runs_execute_concurrently() {
    let mut runner = Process::probe();
    runner.send(run_agent(1, "waits", "", json!({ "do": "wait" })));
    runner.send(call(2, "wait", json!({})));
    assert_eq!(answer(&mut runner, 3, "dropped", json!({}))["result"], 0);
    runner.send(run_agent(4, "r2", "Ada", json!({})));
    assert_eq!(runner.read_until(4).0.len(), 4);
}

async fn nothing(_: NoInput, _: ToolCtx) -> Result<(), ToolError> {
    Ok(())
}

#[tokio::test]
async fn a_plugin_for_tools_alone_is_served_and_tested_without_a_process() {
    let plugin = || Plugin::new("me", "shelf").tool(Tool::new("nothing", nothing));
    let answer = testing::call_tool(plugin(), "nothing", json!({})).await.unwrap();
    assert_eq!((answer.result, answer.error), (Value::Null, None));
    let unknown = testing::call_tool(plugin(), "something", json!({})).await.unwrap_err();
    assert_eq!(unknown.to_string(), "unknown tool `something`");
    let run = testing::run(plugin(), "hi", Default::default()).await.unwrap_err();
    assert_eq!(run.to_string(), "the plugin offers no runner");
}

#[tokio::test]
async fn an_invalid_tool_is_not_served() {
    let refused = async |tool: Tool| {
        let plugin = Plugin::new("me", "shelf").tool(Tool::new("good", nothing)).tool(tool);
        testing::call_tool(plugin, "good", json!({})).await.unwrap_err().to_string()
    };
    assert_eq!(refused(Tool::new("good", nothing)).await, "duplicate tool `good`");
    let name =
        "invalid tool `a/b`: its name must have 1 to 128 of the characters A-Z a-z 0-9 _ . -";
    assert_eq!(refused(Tool::new("a/b", nothing)).await, name);
    async fn list(_: Vec<u8>, _: ToolCtx) -> Result<(), ToolError> {
        Ok(())
    }
    let schema = "invalid tool `list`: `input_schema` must be a JSON Schema of the type `object`";
    assert_eq!(refused(Tool::new("list", list)).await, schema);
    let empty = testing::call_tool(Plugin::new("me", "empty"), "x", json!({})).await.unwrap_err();
    assert_eq!(empty.to_string(), "the plugin has no runner and no tool");
}
