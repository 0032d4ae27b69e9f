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

pub(crate) fn accepted() -> Answer {
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
fn a_partial_answer_that_a_restarted_host_kept_is_not_printed_again() {
    let dir = tempfile::tempdir().unwrap();
    let results = "GET /v1/runs/r1/results ";
    let kept = json!({ "message": { "role": "assistant", "content": "The wea" } });
    let failed = json!({ "code": "runner.crashed", "message": "the process ended" });
    let end = frame(65, "message.completed", kept) + &frame(66, "run.failed", failed);
    let host = start(
        dir.path(),
        vec![
            accepted(),
            Answer::stream(results, &(delta(1, "The wea") + &delta(2, "ther is"))).breaking(),
            Answer::stream(results, &end),
            Answer::json("GET /v1/runs/r1 ", run("failed")),
        ],
    );
    let told = told(dir.path(), &["send", "hello", "--follow"]);
    host.join().unwrap();
    assert!(told.starts_with("exit 4\n--- stdout\nThe weather is\n--- stderr\n"), "{told}");
}

#[test]
fn hidden_characters_of_an_answer_are_shown() {
    let dir = tempfile::tempdir().unwrap();
    let answer = "pay \u{202e}gnp.exe \u{1b}[2J\u{200b} שלום 👩\u{200d}👧";
    let whole = json!({ "message": { "role": "assistant", "content": answer } });
    let results = delta(1, answer)
        + &frame(2, "message.completed", whole)
        + &frame(3, "run.completed", json!({}));
    let host = start(
        dir.path(),
        vec![
            accepted(),
            Answer::stream("GET /v1/runs/r1/results ", &results),
            Answer::json("GET /v1/runs/r1 ", run("completed")),
        ],
    );
    let told = told(dir.path(), &["send", "hello", "--follow"]);
    host.join().unwrap();
    let shown = "pay <U+202E>gnp.exe <U+001B>[2J<U+200B> שלום 👩\u{200d}👧\n--- stderr";
    assert!(told.starts_with(&format!("exit 0\n--- stdout\n{shown}")), "{told}");
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
    warning: lost the connection to the host, reconnecting
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
    hint: `greenroom runs show r1` shows the details
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
    error: event `e1` was stored, but no agent matches it
    hint: choose one with `--agent`, or configure an agent that matches
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
    hint: `greenroom runs list` lists them
    "#);
    host.join().unwrap();
}

#[test]
fn whoever_names_an_agent_that_does_not_exist_learns_which_do() {
    let dir = tempfile::tempdir().unwrap();
    let error = json!({ "error": { "code": "not_found", "message": "no agent is called `ecko`", "retryable": false, "details": {} } });
    let agents = json!({ "items": [{ "name": "assistant" }, { "name": "echo" }] });
    let host = start(
        dir.path(),
        vec![
            Answer::json("POST /v1/events ", error).status(404),
            Answer::json("GET /v1/agents ", agents),
        ],
    );
    assert_snapshot!(told(dir.path(), &["send", "hello", "--agent", "ecko", "--json"]), @r#"
    exit 3
    --- stdout
    {"error":{"code":"not_found","details":{},"message":"no agent is called `ecko`","retryable":false}}
    --- stderr
    error: no agent is called `ecko`
    hint: available: `assistant`, `echo`
    "#);
    host.join().unwrap();
}

#[test]
fn cancelling_a_run_that_has_ended_says_that_nothing_was_done() {
    let dir = tempfile::tempdir().unwrap();
    let host = start(
        dir.path(),
        vec![
            Answer::json("GET /v1/runs/r1 ", run("completed")),
            Answer::json("POST /v1/runs/r1/cancel ", run("completed")),
        ],
    );
    assert_snapshot!(told(dir.path(), &["runs", "cancel", "r1"]), @r#"
    exit 0
    --- stdout
    --- stderr
    run `r1` already ended as completed
    "#);
    host.join().unwrap();
}

#[test]
fn more_items_than_a_page_holds_are_read_page_by_page() {
    let dir = tempfile::tempdir().unwrap();
    let page = |next: Option<&str>| json!({ "items": [run("completed")], "next_cursor": next, "has_more": next.is_some() });
    let host = start(
        dir.path(),
        vec![
            Answer::json("GET /v1/runs?limit=200 ", page(Some("p2"))),
            Answer::json("GET /v1/runs?limit=200&cursor=p2 ", page(None)),
        ],
    );
    let told = told(dir.path(), &["runs", "list", "--limit", "500"]);
    assert_eq!(told.matches("r1 ").count(), 2, "{told}");
    host.join().unwrap();
}

#[test]
fn runners_are_listed_with_what_went_wrong() {
    let dir = tempfile::tempdir().unwrap();
    let runner = |name: &str, status: &str, error: Value, failure: Value| json!({ "name": name, "status": status, "plugin": null, "runners": [], "restarts": 2, "last_error": error, "last_failure": failure });
    let failure = json!({ "at": "2026-11-16T15:00:00.000Z", "message": "it ended with 1" });
    let items = json!({ "items": [
        runner("a", "ready", json!("its new files do not start"), Value::Null),
        runner("b", "backing_off", json!("it ended with 1"), failure.clone()),
        runner("c", "ready", Value::Null, failure),
        runner("d", "ready", Value::Null, Value::Null),
    ] });
    let host = start(dir.path(), vec![Answer::json("GET /v1/runners ", items)]);
    assert_snapshot!(told(dir.path(), &["runner", "list"]), @r#"
    exit 0
    --- stdout
    NAME  STATUS       WIRE  PLUGIN  RUNNERS  ASKS FOR  LAST ERROR
    a     ready                                         its new files do not start
    b     backing_off                                   it ended with 1
    c     ready                                         restarted 2x, last 2026-11-16T15:00:00.000Z: it ended with 1
    d     ready
    --- stderr
    "#);
    host.join().unwrap();
}

#[test]
fn a_plugin_with_several_runners_has_a_row_for_each() {
    let dir = tempfile::tempdir().unwrap();
    let offered = |name: &str, permissions: Value| json!({ "id": format!("plugin:acme/zoo/{name}"), "permissions": permissions });
    let runners = [offered("cat", json!({"models": ["invoke"]})), offered("dog", json!({}))];
    let items = json!({ "items": [{ "name": "zoo", "status": "ready", "plugin": "acme/zoo", "runners": runners }] });
    let host = start(dir.path(), vec![Answer::json("GET /v1/runners ", items)]);
    assert_snapshot!(told(dir.path(), &["runner", "list"]), @r#"
    exit 0
    --- stdout
    NAME  STATUS  WIRE    PLUGIN    RUNNERS              ASKS FOR        LAST ERROR
    zoo   ready   native  acme/zoo  plugin:acme/zoo/cat  models: invoke
                                    plugin:acme/zoo/dog  nothing
    --- stderr
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
    let page = json!({ "items": [item(1, "user", "hi"), item(2, "assistant", "first\nsecond")], "has_more": false });
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
