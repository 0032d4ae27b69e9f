//! `greenroom send` with events of every kind, against a host that follows a script.

use crate::fake_host::{Answer, start};
use crate::talking::accepted;
use crate::told;
use insta::assert_snapshot;
use serde_json::{Value, json};

#[test]
fn any_event_can_be_sent() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("alert.json"), "{\"host\": \"db1\"}\n").unwrap();
    let host = start(dir.path(), vec![accepted(), accepted()]);
    let data = r#"{"severity":"high"}"#;
    let subject = r#"{"subject_type":"issue","subject_id":"7"}"#;
    let issue = ["--type", "issue.opened", "--data", data, "--subject", subject];
    // A folder is the host's, as for every other command.
    let sent = told(dir.path(), &[&["send", "--data", "greenroom-data"][..], &issue].concat());
    assert!(sent.starts_with("exit 0"), "{sent}");
    let alert = ["send", "disk full", "--type", "alert.raised", "--data", "@alert.json"];
    let about = ["--source", "monitor", "--thread", "t1", "--actor", "nagios"];
    let sent = told(dir.path(), &[&alert[..], &about].concat());
    assert!(sent.starts_with("exit 0"), "{sent}");
    let requests = host.join().unwrap();
    let body = |number: usize| -> Value { serde_json::from_str(&requests[number].body).unwrap() };
    let (issue, alert) = (body(0), body(1));
    assert_eq!(issue["event_type"], "issue.opened");
    assert_eq!(issue["data"], json!({"severity": "high"}));
    assert_eq!((&issue["subject"]["subject_id"], &issue["source"]), (&json!("7"), &json!("api")));
    assert!(issue["input"]["text"].is_null(), "{issue}");
    assert_eq!(
        (&alert["event_type"], &alert["source"]),
        (&json!("alert.raised"), &json!("monitor"))
    );
    assert_eq!((&alert["thread_id"], &alert["data"]), (&json!("t1"), &json!({"host": "db1"})));
    assert_eq!(alert["actor"]["actor_id"], "nagios");
    assert_eq!(alert["input"]["text"], "disk full");
}

#[test]
fn a_mistake_in_the_data_of_an_event_is_pointed_at() {
    let dir = tempfile::tempdir().unwrap();
    let args = ["send", "--type", "issue.opened", "--data", r#"{"severity": high}"#];
    assert_snapshot!(told(dir.path(), &args), @r#"
    exit 2
    --- stdout
    --- stderr
    error: `--data` is not valid JSON: expected value at line 1 column 14
      {"severity": high}
                   ^
    hint: quote it for the shell with `'…'`, or put it in a file: `@FILE`
    "#);
    assert_snapshot!(told(dir.path(), &["send", "--type", "x", "--data", "[1]"]), @r#"
    exit 2
    --- stdout
    --- stderr
    error: `--data` must be a JSON object, not a list
    hint: write it as `{"name": value}`
    "#);
    assert_snapshot!(told(dir.path(), &["send"]), @r"
    exit 2
    --- stdout
    --- stderr
    error: the message is missing
    hint: write it after `send`, or choose another event type with `--type`
    ");
}

#[test]
fn a_warning_of_the_host_is_printed_beside_the_answer() {
    let dir = tempfile::tempdir().unwrap();
    let body = json!({ "event_id": "e1", "run_id": "r1", "status": "running",
        "warnings": ["agent `triage` does not list it"] });
    let host = start(dir.path(), vec![Answer::json("POST /v1/events ", body).status(202)]);
    assert_snapshot!(told(dir.path(), &["send", "hello", "--agent", "triage"]), @r"
    exit 0
    --- stdout
    r1
    --- stderr
    warning: agent `triage` does not list it
    running; `greenroom runs follow r1` shows the answer
    ");
    host.join().unwrap();
}
