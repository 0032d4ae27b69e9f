//! What a person sees of a run while it works: tools, cards, and what it waits for.

use crate::fake_host::{Answer, start};
use crate::{greenroom, read, told};
use insta::assert_snapshot;
use serde_json::{Value, json};

fn frame(sequence: i64, kind: &str, at: &str, data: Value) -> String {
    let at = format!("2026-01-02T03:04:{at}Z");
    let data = json!({ "run_id": "r1", "type": kind, "sequence": sequence, "created_at": at, "data": data });
    format!("event: {kind}\nid: {sequence}\ndata: {data}\n\n")
}

fn run(status: &str, approvals: Value) -> Answer {
    let run = json!({
        "run_id": "r1", "event_id": "e1", "agent": "assistant",
        "runner_id": "plugin:greenroom/local-agent/default", "conversation_id": "c1",
        "workspace_id": "default", "status": status, "attempt": 1,
        "created_at": "2026-01-02T03:04:05.000Z", "started_at": null, "finished_at": null,
        "error": null, "usage": null, "last_sequence": 9, "approvals": approvals,
    });
    Answer::json("GET /v1/runs/r1 ", run)
}

fn accepted() -> Answer {
    let body = json!({ "event_id": "e1", "run_id": "r1", "status": "running" });
    Answer::json("POST /v1/events ", body).status(202)
}

fn asked() -> Value {
    json!({
        "approval_id": "apr_1", "nonce": "n", "status": "pending", "action": "tool.call",
        "target": { "tool_name": "project_cli", "risk": "destructive" },
        "payload": { "module": "calendar", "method": "delete", "input": { "event_id": "evt_1" } },
        "agent": "assistant", "runner_id": "plugin:greenroom/local-agent/default", "run_id": "r1",
        "conversation_id": "c1", "actor": { "actor_type": "user", "actor_id": "cli" },
        "created_at": "2026-01-02T03:04:05.000Z", "expires_at": "2026-01-02T03:34:05.000Z",
    })
}

/// A day of the calendar that is asked for, found and told.
fn day() -> String {
    let parameters = json!({ "module": "calendar", "method": "read",
        "input": { "mode": "day", "date": "2026-01-03", "timezone": "UTC" } });
    let event = json!({ "id": "evt_1", "title": "Lunch", "start_at": "2026-01-03T12:00:00Z",
        "end_at": "2026-01-03T13:00:00Z" });
    let data = json!({ "date": "2026-01-03", "timezone": "UTC", "count": 1, "items": [event] });
    let result = json!({ "module": "calendar", "method": "read", "data": data });
    let started =
        json!({ "tool_call_id": "t1", "tool_name": "project_cli", "parameters": parameters });
    let completed = json!({ "tool_call_id": "t1", "tool_name": "project_cli", "result": result });
    let failed = json!({ "tool_call_id": "t2", "tool_name": "files.read",
        "error": { "code": "TIMEOUT", "message": "it took too long" } });
    let begun =
        json!({ "tool_call_id": "t2", "tool_name": "files.read", "parameters": { "path": "a" } });
    let message = json!({ "message": { "role": "assistant", "content": "One event." } });
    frame(1, "tool.call.started", "05.100", started)
        + &frame(2, "tool.call.completed", "05.131", completed)
        + &frame(3, "tool.call.started", "05.200", begun)
        + &frame(4, "tool.call.completed", "07.200", failed)
        + &frame(8, "message.completed", "07.300", message)
        + &frame(9, "run.completed", "07.300", json!({}))
}

fn followed(question: &str) -> String {
    shown(question, day())
}

/// What is told of a run with these results.
fn shown(question: &str, results: String) -> String {
    let dir = tempfile::tempdir().unwrap();
    let answers = vec![
        accepted(),
        Answer::stream("GET /v1/runs/r1/results ", &results),
        run("completed", json!([])),
    ];
    let host = start(dir.path(), answers);
    let mut command = greenroom(dir.path(), &["send", question, "--follow"]);
    let output = command.env("LC_ALL", "C.UTF-8").output().unwrap();
    host.join().unwrap();
    read(&output)
}

/// A run of which nothing comes until the host was asked why, with these answers.
fn silent(question: &str, looks: Vec<Answer>) -> String {
    let dir = tempfile::tempdir().unwrap();
    let end = frame(9, "run.completed", "09.000", json!({}));
    let results = Answer::stream("GET /v1/runs/r1/results ", &end).held(1 + looks.len());
    let mut answers = vec![accepted(), results, run("running", json!([]))];
    answers.extend(looks);
    answers.push(run("completed", json!([])));
    let host = start(dir.path(), answers);
    let mut command = greenroom(dir.path(), &["send", question, "--follow"]);
    let output = command.env("LC_ALL", "C.UTF-8").output().unwrap();
    host.join().unwrap();
    read(&output)
}

#[test]
fn tool_calls_and_their_cards_stand_beside_the_answer() {
    assert_snapshot!(followed("what is on tomorrow?"), @r#"
    exit 0
    --- stdout
    One event.
    --- stderr
    → calendar.read {"date":"2026-01-03","mode":"day","timezone":"UTC"}
    ✓ calendar.read ok, 31 ms
      │ Events
      │ 2026-01-03
      │ UTC
      │ • Lunch
      │   2026-01-03 12:00 – 13:00 (UTC)
    → files.read {"path":"a"}
    ✗ files.read failed, 2.0 s: it took too long (TIMEOUT)
    "#);
}

#[test]
fn a_run_that_says_nothing_is_told_of() {
    let results = frame(1, "run.completed", "05.100", json!({}));
    let told = shown("hello", results.clone());
    let hint =
        "hint: the run completed without an answer; `greenroom runs show r1` shows the details";
    assert!(told.contains(hint), "{told}");
    let told = shown("你好", results);
    assert!(told.contains("没有输出回答") && told.contains("runs show r1"), "{told}");
    assert!(!followed("what is on tomorrow?").contains("without an answer"));
}

#[test]
fn whoever_asks_in_chinese_is_told_in_chinese() {
    let told = followed("明天有什么安排");
    for part in
        ["✓ calendar.read 完成\u{ff0c}31 ms", "│ 日程", "✗ files.read 失败\u{ff0c}2.0 s\u{ff1a}"]
    {
        assert!(told.contains(part), "{part}: {told}");
    }
    assert!(told.contains("--- stdout\nOne event.\n--- stderr"), "{told}");
}

#[test]
fn a_run_that_waits_says_for_whom_and_what_answers_it() {
    let dir = tempfile::tempdir().unwrap();
    let pending = json!([{ "approval_id": "apr_1", "status": "pending", "action": "tool.call" }]);
    let results = "GET /v1/runs/r1/results ";
    let host = start(
        dir.path(),
        vec![
            accepted(),
            // Nothing comes until the host was asked why.
            Answer::stream(results, &frame(9, "run.completed", "09.000", json!({}))).held(2),
            run("running", pending),
            Answer::json("GET /v1/approvals/apr_1 ", asked()),
            run("completed", json!([])),
        ],
    );
    let mut command = greenroom(dir.path(), &["send", "delete it", "--follow"]);
    let output = command.env("LC_ALL", "C.UTF-8").output().unwrap();
    host.join().unwrap();
    assert_snapshot!(read(&output), @r#"
    exit 0
    --- stdout
    --- stderr
    ? waits for approval: calendar.delete {"event_id":"evt_1"} (destructive, until 2026-01-02 03:34:05 UTC)
      This cannot be undone.
      allow: `greenroom approvals allow apr_1`
      deny:  `greenroom approvals deny apr_1`
    "#);
}

#[test]
fn an_approval_is_shown_by_what_it_is_about_in_the_zone_and_language_of_the_reader() {
    let mut about = asked();
    about["subject"] = json!({"records": [{"id": "evt_1", "title": "dinner",
        "start_at": "2026-04-21T19:00:00+08:00", "end_at": "2026-04-21T20:00:00+08:00"}]});
    let page = json!({ "items": [about], "next_cursor": null, "has_more": false });
    for (locale, expected) in [
        ("C.UTF-8", ["“dinner”, Tue 2026-04-21 13:00–14:00 (UTC+02:00)", "This cannot be undone."]),
        ("zh_CN.UTF-8", ["“dinner”，2026-04-21 周二 13:00–14:00（UTC+02:00）", "此操作无法撤销。"]),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let host = start(
            dir.path(),
            vec![
                Answer::json("GET /v1/approvals?limit=20&status=pending ", page.clone()),
                Answer::json("GET /v1/approvals/apr_1 ", page["items"][0].clone()),
            ],
        );
        for args in [&["approvals"][..], &["approvals", "show", "apr_1"]] {
            let mut command = greenroom(dir.path(), args);
            let output = command.env("LC_ALL", locale).env("TZ", "Europe/Berlin").output().unwrap();
            let told = read(&output);
            for part in expected {
                assert!(told.contains(part), "{part}: {told}");
            }
            let allow = told.find("greenroom approvals allow apr_1").unwrap();
            assert!(allow < told.find("greenroom approvals deny apr_1").unwrap(), "{told}");
        }
        host.join().unwrap();
    }
}

#[test]
fn a_run_that_waits_for_a_starting_server_says_so() {
    let servers = json!({ "items": [{ "name": "files", "status": "starting" }, { "name": "web", "status": "ready" }] });
    let looks = vec![Answer::json("GET /v1/tool-servers ", servers)];
    let told = silent("你好", looks);
    assert!(
        told.contains("… 正在等待工具服务器 `files` 启动\n") && !told.contains("web"),
        "{told}"
    );
}

#[test]
fn a_run_whose_runner_does_not_start_says_why() {
    let runner = json!({ "name": "mine", "plugin": "greenroom/local-agent", "status": "backing_off",
        "last_error": "runner `mine` exited with code 1: no module named x" });
    let other = json!({ "name": "other", "plugin": "a/b", "status": "starting" });
    let looks = vec![
        Answer::json("GET /v1/tool-servers ", json!({ "items": [] })),
        Answer::json("GET /v1/runners ", json!({ "items": [other, runner] })),
    ];
    assert_snapshot!(silent("hello", looks), @r"
    exit 0
    --- stdout
    --- stderr
    … waits for its runner to restart: runner `mine` exited with code 1: no module named x
    ");
}

#[test]
fn a_run_whose_runner_has_never_connected_says_so() {
    let runner = json!({ "name": "far", "plugin": null, "status": "disconnected" });
    let other = json!({ "name": "other", "plugin": "a/b", "status": "ready" });
    let looks = vec![
        Answer::json("GET /v1/tool-servers ", json!({ "items": [] })),
        Answer::json("GET /v1/runners ", json!({ "items": [other, runner] })),
    ];
    let told = silent("你好", looks);
    assert!(told.contains("… 正在等待运行器 `far` 连接\n"), "{told}");
}

#[test]
fn approvals_are_listed_with_the_method_its_input_and_who_asks() {
    let dir = tempfile::tempdir().unwrap();
    let page = json!({ "items": [asked()], "next_cursor": null, "has_more": false });
    let host =
        start(dir.path(), vec![Answer::json("GET /v1/approvals?limit=20&status=pending ", page)]);
    assert_snapshot!(told(dir.path(), &["approvals"]), @r#"
    exit 0
    --- stdout
    APPROVAL  STATUS   ASKED            WITH                  AGENT      FOR       CONVERSATION  EXPIRES
    apr_1     pending  calendar.delete  {"event_id":"evt_1"}  assistant  user cli  c1            2026-01-02 03:34:05
    --- stderr
    apr_1:
      This cannot be undone.
      allow: `greenroom approvals allow apr_1`
      deny:  `greenroom approvals deny apr_1`
    hint: `greenroom approvals show apr_1` shows the details
    "#);
    host.join().unwrap();
}
