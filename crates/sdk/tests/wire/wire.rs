//! The wire itself: greeting, discovery, mistakes, the end.

use crate::process::{Process, run_agent};
use serde_json::json;

#[test]
fn a_host_greets_the_runner_and_learns_what_it_offers() {
    let mut runner = Process::probe();
    runner.send(
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocol_version":"1","host":{"name":"greenroom","version":"0.1.0"}}}"#,
    );
    let plugin = json!({ "author": "test", "name": "probe", "version": "1.2.3" });
    let greeting = json!({ "protocol_version": "1", "plugin": plugin });
    assert_eq!(runner.read(), json!({ "jsonrpc": "2.0", "id": 1, "result": greeting }));

    runner.send(r#"{"jsonrpc":"2.0","id":"two","method":"list_agent_runners","params":{}}"#);
    let answer = runner.read();
    assert_eq!(answer["id"], "two");
    let runners = answer["result"]["runners"].as_array().unwrap();
    assert_eq!(runners.len(), 1);
    assert_eq!(runners[0]["id"], "plugin:test/probe/default");
    assert_eq!(runners[0]["name"], "default");
    assert_eq!(runners[0]["label"], "Probe");
    assert_eq!(runners[0]["protocol_version"], "1");
    assert_eq!(runners[0]["capabilities"]["streaming"], true);
    assert_eq!(runners[0]["permissions"]["models"], json!([]));
    // It does not ask for tools by reference: that is said, not left to a default.
    assert_eq!(runners[0]["context"].get("wants_static_context_refs"), None);
    assert_eq!(runners[0]["context"]["owns_compaction"], true);
}

#[test]
fn another_major_version_is_refused() {
    let mut runner = Process::probe();
    runner.send(
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocol_version":"2","host":{"name":"h","version":"0"}}}"#,
    );
    assert_eq!(runner.read()["error"]["code"], -32602);
}

#[test]
fn mistakes_of_the_host_are_answered_and_survived() {
    let mut runner = Process::probe();
    runner.send("this is not JSON");
    let answer = runner.read();
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(null), &json!(-32700)));

    runner.send_bytes(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}\n");
    assert_eq!(runner.read()["error"]["code"], -32700);

    runner.send(r#"{"jsonrpc":"2.0","id":{},"method":"initialize"}"#);
    assert_eq!(runner.read()["error"]["code"], -32600);

    runner.send(r#"{"jsonrpc":"2.0","id":2,"method":"make_coffee","params":{}}"#);
    let answer = runner.read();
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(2), &json!(-32601)));

    runner.send(r#"{"jsonrpc":"2.0","id":3,"method":"run_agent","params":{"runner_id":"x"}}"#);
    let answer = runner.read();
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(3), &json!(-32602)));

    let mut foreign = run_agent(4, "r1", "x", json!({}));
    foreign["params"]["runner_id"] = json!("plugin:test/probe/other");
    runner.send(foreign);
    let answer = runner.read();
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(4), &json!(-32602)));

    // Unknown notifications and empty lines have no answer; the next request has.
    runner.send(r#"{"jsonrpc":"2.0","method":"weather.changed","params":{}}"#);
    runner.send("");
    runner.send(r#"{"jsonrpc":"2.0","id":5,"method":"list_agent_runners"}"#);
    assert_eq!(runner.read()["id"], 5);
}

#[test]
fn shutdown_is_answered_and_ends_the_process() {
    let mut runner = Process::probe();
    runner.send(run_agent(1, "r1", "", json!({ "do": "wait" })));
    runner.send(r#"{"jsonrpc":"2.0","id":2,"method":"shutdown","params":{}}"#);
    let (before, answer) = runner.read_until(2);
    assert_eq!(answer, json!({ "jsonrpc": "2.0", "id": 2, "result": {} }));
    let codes: Vec<_> = before.iter().map(|line| &line["params"]["data"]["code"]).collect();
    assert_eq!(codes, [&json!("cancelled"), &json!(null)]);
    assert_eq!(runner.wait().code(), Some(0));
}

#[test]
fn the_end_of_stdin_ends_the_process() {
    let mut runner = Process::probe();
    runner.send(run_agent(1, "r1", "", json!({ "do": "never_look" })));
    runner.close_stdin();
    assert_eq!(runner.wait().code(), Some(0));
}
