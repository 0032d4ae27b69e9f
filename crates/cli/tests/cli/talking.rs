//! Commands that talk to a host, against one that follows a script.

use crate::fake_host::{Answer, start};
use crate::told;
use insta::assert_snapshot;
use serde_json::{Value, json};

fn run(status: &str) -> Value {
    json!({
        "run_id": "r1", "event_id": "e1", "agent": "echo", "runner_id": "plugin:greenroom/echo/default",
        "conversation_id": "c1", "workspace_id": "default", "status": status, "attempt": 1,
        "created_at": "2026-01-02T03:04:05.000Z", "started_at": "2026-01-02T03:04:05.002Z",
        "finished_at": if status == "running" { Value::Null } else { json!("2026-01-02T03:04:06.250Z") },
        "error": if status == "failed" {
            json!({ "code": "runner.crashed", "message": "the process ended", "retryable": true })
        } else {
            Value::Null
        },
        "usage": null, "last_sequence": 4,
    })
}

fn frame(sequence: i64, kind: &str, data: Value) -> String {
    let data = json!({ "run_id": "r1", "type": kind, "sequence": sequence, "data": data });
    format!("event: {kind}\nid: {sequence}\ndata: {data}\n\n")
}

fn delta(sequence: i64, text: &str) -> String {
    frame(sequence, "message.delta", json!({ "chunk": { "role": "assistant", "content": text } }))
}

fn accepted() -> Answer {
    let body = json!({ "event_id": "e1", "run_id": "r1", "status": "running" });
    Answer::json("POST /v1/events ", body).status(202)
}

#[test]
fn send_prints_the_id_of_the_run() {
    let dir = tempfile::tempdir().unwrap();
    let host = start(dir.path(), vec![accepted()]);
    let told = told(dir.path(), &["send", "hello", "--agent", "echo", "--event-id", "e1"]);
    assert_snapshot!(told, @r#"
    exit 0
    --- stdout
    r1
    --- stderr
    running; `greenroom runs follow r1` shows the answer
    "#);
    let requests = host.join().unwrap();
    assert!(requests[0].headers.contains(&"authorization: Bearer gr_admin".to_owned()));
    let body: Value = serde_json::from_str(&requests[0].body).unwrap();
    assert_eq!(body["event_type"], "message.received");
    assert_eq!(body["event_id"], "e1");
    assert_eq!(body["agent"], "echo");
    assert_eq!(body["conversation_id"], "cli");
    assert_eq!(body["input"]["text"], "hello");
}

#[test]
fn following_resumes_after_a_lost_connection_without_losing_or_repeating_a_character() {
    let dir = tempfile::tempdir().unwrap();
    let results = "GET /v1/runs/r1/results ";
    let end = delta(2, "llo") + &delta(3, " world") + &frame(4, "run.completed", json!({}));
    let host = start(
        dir.path(),
        vec![
            accepted(),
            Answer::stream(results, &(delta(1, "he") + &delta(2, "llo"))).breaking(),
            Answer::json(results, json!({})).status(503),
            Answer::stream(results, &end),
            Answer::json("GET /v1/runs/r1 ", run("completed")),
        ],
    );
    assert_snapshot!(told(dir.path(), &["send", "hello", "--follow"]), @r#"
    exit 0
    --- stdout
    hello world
    --- stderr
    warning: the connection to the host was lost, trying again
    "#);
    let requests = host.join().unwrap();
    let resumed = "last-event-id: 2".to_owned();
    let asked: Vec<bool> = requests.iter().map(|r| r.headers.contains(&resumed)).collect();
    assert_eq!(asked, [false, false, true, true, false]);
}

#[test]
fn a_failed_run_is_a_failure_of_the_command() {
    let dir = tempfile::tempdir().unwrap();
    let failed = json!({ "code": "runner.crashed", "message": "the process ended" });
    let host = start(
        dir.path(),
        vec![
            Answer::json("GET /v1/runs/r1 ", run("running")),
            Answer::stream(
                "GET /v1/runs/r1/results ",
                &(delta(1, "he") + &frame(4, "run.failed", failed)),
            ),
            Answer::json("GET /v1/runs/r1 ", run("failed")),
        ],
    );
    assert_snapshot!(told(dir.path(), &["runs", "follow", "r1"]), @r#"
    exit 4
    --- stdout
    he
    --- stderr
    error: the run ended as `failed`: the process ended (runner.crashed)
    hint: `greenroom runs show r1` tells its story
    "#);
    host.join().unwrap();
}

#[test]
fn json_prints_what_the_host_answered_and_every_result() {
    let dir = tempfile::tempdir().unwrap();
    let host = start(
        dir.path(),
        vec![
            accepted(),
            Answer::stream(
                "GET /v1/runs/r1/results ",
                &(delta(1, "hi") + &frame(4, "run.completed", json!({}))),
            ),
            Answer::json("GET /v1/runs/r1 ", run("completed")),
        ],
    );
    assert_snapshot!(told(dir.path(), &["send", "hello", "--follow", "--json"]), @r#"
    exit 0
    --- stdout
    {"event_id":"e1","run_id":"r1","status":"running"}
    {"run_id":"r1","type":"message.delta","data":{"chunk":{"content":"hi","role":"assistant"}},"sequence":1,"timestamp":null}
    {"run_id":"r1","type":"run.completed","data":{},"sequence":4,"timestamp":null}
    --- stderr
    "#);
    host.join().unwrap();
}

#[test]
fn an_event_that_no_agent_takes_is_told_with_a_hint() {
    let dir = tempfile::tempdir().unwrap();
    let body = json!({ "event_id": "e1", "run_id": null, "status": "unbound" });
    let host = start(dir.path(), vec![Answer::json("POST /v1/events ", body).status(202)]);
    assert_snapshot!(told(dir.path(), &["send", "hello"]), @r#"
    exit 3
    --- stdout
    --- stderr
    error: no agent takes the event `e1`
    hint: name one with `--agent`, or add an agent that matches to the configuration
    "#);
    host.join().unwrap();
}

#[test]
fn runs_are_listed_as_a_table() {
    let dir = tempfile::tempdir().unwrap();
    let page = json!({ "items": [run("running"), run("completed")], "next_cursor": "abc", "has_more": true });
    let host = start(dir.path(), vec![Answer::json("GET /v1/runs?limit=2&agent=echo ", page)]);
    assert_snapshot!(told(dir.path(), &["runs", "list", "--agent", "echo", "--limit", "2"]), @r#"
    exit 0
    --- stdout
    RUN  STATUS     AGENT  CONVERSATION  CREATED              TOOK
    r1   running    echo   c1            2026-01-02 03:04:05
    r1   completed  echo   c1            2026-01-02 03:04:05  1.2 s
    --- stderr
    hint: there is more: `--cursor abc`
    "#);
    host.join().unwrap();
}

#[test]
fn a_refusal_of_the_host_is_told_in_its_words() {
    let dir = tempfile::tempdir().unwrap();
    let error = json!({ "error": { "code": "not_found", "message": "there is no run `../../x`", "retryable": false, "details": {} } });
    let host =
        start(dir.path(), vec![Answer::json("GET /v1/runs/..%2F..%2Fx ", error).status(404)]);
    assert_snapshot!(told(dir.path(), &["runs", "show", "../../x"]), @r#"
    exit 3
    --- stdout
    --- stderr
    error: there is no run `../../x`
    "#);
    host.join().unwrap();
}

#[test]
fn history_is_shown_oldest_first() {
    let dir = tempfile::tempdir().unwrap();
    let item = |seq: i64, role: &str, text: &str| {
        json!({ "item_id": format!("i{seq}"), "conversation_id": "c 1", "seq": seq, "role": role,
                "text": text, "created_at": "2026-01-02T03:04:05.000Z" })
    };
    let page = json!({ "items": [item(2, "assistant", "first\nsecond"), item(1, "user", "hi")], "has_more": false });
    let host = start(
        dir.path(),
        vec![Answer::json("GET /v1/conversations/c%201/history?limit=20 ", page)],
    );
    assert_snapshot!(told(dir.path(), &["history", "c 1"]), @r#"
    exit 0
    --- stdout
    2026-01-02 03:04:05  user       hi
    2026-01-02 03:04:05  assistant  first
                                    second
    --- stderr
    "#);
    host.join().unwrap();
}
