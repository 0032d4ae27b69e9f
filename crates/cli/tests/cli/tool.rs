//! `greenroom tool`: by hand, and as the host starts it.

use crate::fake_host::{Answer, start};
use crate::{greenroom, read, told};
use insta::assert_snapshot;
use serde_json::{Value, json};
use std::io::Write;
use std::path::Path;
use std::process::Stdio;

const RECORDS: &str = "POST /v1/tool-runtime/records";
const CREDENTIAL: &str = "grc_never_to_be_seen";

fn record() -> Value {
    json!({
        "id": "evt_1", "owner": "ann", "version": 1, "updated_at": "2026-04-20T08:00:00.000Z",
        "starts_at": 1776736800000_i64, "ends_at": 1776740400000_i64,
        "body": {"title": "Project sync", "timezone": "Asia/Shanghai"},
    })
}

/// The program as the host starts it.
fn as_child(dir: &Path, args: &[&str], methods: &str, input: &str) -> String {
    let host = std::fs::read_to_string(dir.join("greenroom-data/host.json")).unwrap();
    let host: Value = serde_json::from_str(&host).unwrap();
    let mut command = greenroom(dir, &[&["tool"], args].concat());
    command
        .env("GREENROOM_URL", host["url"].as_str().unwrap())
        .env("GREENROOM_CREDENTIAL", CREDENTIAL)
        .env("GREENROOM_METHODS", methods)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    read(&child.wait_with_output().unwrap())
}

#[test]
fn without_a_method_it_lists_what_there_is() {
    assert_snapshot!(told(Path::new("."), &["tool"]), @r#"
    exit 0
    --- stdout
    MODULE    METHOD         RISK         ABOUT
    calendar  read           read         Events of a day or of a range of time, or one event
    calendar  create         write        Add an event
    calendar  update         write        Change some fields of an event
    calendar  delete         destructive  Remove an event
    calendar  share          external     Invite people to an event
    calendar  accept_invite  write        Accept an invitation to an event
    calendar  reject_invite  write        Reject an invitation to an event
    contacts  read           read         Contacts by id, by words, or all of them
    memory    read           read         Facts that are remembered, by key, by words, or all of them
    memory    update         write        Remember facts, forget others
    --- stderr
    hint: `greenroom tool MODULE` shows the inputs of its methods
    "#);
    assert_snapshot!(told(Path::new("."), &["tool", "memory"]), @r#"
    exit 0
    --- stdout
    memory read: Facts that are remembered, by key, by words, or all of them (read)
      keys: array of 1 to 50 strings, optional: these facts; not together with query
      query: string, optional: facts that hold all of these words
    memory update: Remember facts, forget others (write)
      set: object of key: value, optional: facts to remember; a value is JSON of up to 4096 bytes, not null
      delete: array of strings, optional: keys to forget; set and delete together name 1 to 50 keys
    --- stderr
    "#);
    assert_snapshot!(told(Path::new("."), &["tool", "calender"]), @r#"
    exit 2
    --- stdout
    --- stderr
    error: there is no module `calender`
    hint: did you mean `calendar`?
    "#);
    assert_snapshot!(told(Path::new("."), &["tool", "calendar.read"]), @r#"
    exit 2
    --- stdout
    --- stderr
    error: there is no module `calendar.read`
    hint: write `greenroom tool calendar read`
    "#);
}

#[test]
fn by_hand_it_works_for_the_actor_that_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let host = start(dir.path(), vec![Answer::json(RECORDS, json!({"items": [record()]}))]);
    let input = r#"{"mode":"day","date":"2026-04-21","timezone":"Asia/Shanghai"}"#;
    let args = [
        "tool",
        "calendar",
        "read",
        "--input",
        input,
        "--actor",
        "ann",
        "--workspace",
        "w1",
        "--json",
    ];
    let told = told(dir.path(), &args);
    assert_snapshot!(told, @r#"
    exit 0
    --- stdout
    {"data":{"count":1,"date":"2026-04-21","end_at":"2026-04-22T00:00:00+08:00","has_more":false,"items":[{"end_at":"2026-04-21T11:00:00+08:00","id":"evt_1","owner":"ann","start_at":"2026-04-21T10:00:00+08:00","timezone":"Asia/Shanghai","title":"Project sync","updated_at":"2026-04-20T08:00:00.000Z","version":1}],"mode":"day","start_at":"2026-04-21T00:00:00+08:00","timezone":"Asia/Shanghai"},"method":"read","module":"calendar","ok":true}
    --- stderr
    "#);
    let requests = host.join().unwrap();
    assert_eq!(requests[0].line, format!("{RECORDS}?workspace_id=w1 HTTP/1.1"));
    assert!(requests[0].headers.contains(&"authorization: Bearer gr_admin".to_owned()));
    assert!(requests[0].headers.contains(&"x-greenroom-actor: ann".to_owned()));
    let asked: Value = serde_json::from_str(&requests[0].body).unwrap();
    assert_eq!(
        asked,
        json!({"op": "list", "module": "calendar", "from": 1776700800000_i64, "to": 1776787200000_i64, "limit": 201})
    );
}

#[test]
fn an_actor_that_is_none_is_named_as_the_mistake() {
    let args = ["tool", "memory", "read", "--actor", "a\nb"];
    assert_snapshot!(told(Path::new("."), &args), @r#"
    exit 1
    --- stdout
    --- stderr
    error: `--actor` is not an id: "a\nb"
    hint: an id is not empty and has one line
    "#);
}

#[test]
fn a_person_is_told_what_the_method_takes() {
    let dir = tempfile::tempdir().unwrap();
    let host = start(dir.path(), Vec::new());
    assert_snapshot!(told(dir.path(), &["tool", "calendar", "delete", "--input", r#"{"id":"evt_1"}"#]), @r#"
    exit 1
    --- stdout
    --- stderr
    error: calendar.delete input does not match method schema: unknown field `id`, expected `event_id` or `if_version` (INVALID_ACTION_INPUT)
    hint: the inputs are
      event_id: string, id of the event
      if_version: integer, optional: only if the event still has this version
    "#);
    assert_snapshot!(told(dir.path(), &["tool", "calendar", "delete", "--input", "evt_1"]), @r#"
    exit 2
    --- stdout
    --- stderr
    error: the input is not JSON
      caused by: expected value at line 1 column 1
    hint: write e.g. `--input '{"mode":"event","event_id":"…"}'`
    "#);
    host.join().unwrap();
}

#[test]
fn a_child_uses_its_credential_and_says_only_its_result() {
    let dir = tempfile::tempdir().unwrap();
    let host =
        start(dir.path(), vec![Answer::json(RECORDS, json!({"record": record(), "links": []}))]);
    let input = r#"{"mode":"event","event_id":"evt_1"}"#;
    let told = as_child(dir.path(), &["calendar", "read"], "calendar.read", input);
    assert_snapshot!(told, @r#"
    exit 0
    --- stdout
    {"data":{"attendees":[],"end_at":"2026-04-21T11:00:00+08:00","id":"evt_1","owner":"ann","start_at":"2026-04-21T10:00:00+08:00","timezone":"Asia/Shanghai","title":"Project sync","updated_at":"2026-04-20T08:00:00.000Z","version":1},"method":"read","module":"calendar","ok":true}
    --- stderr
    "#);
    let requests = host.join().unwrap();
    assert_eq!(requests[0].line, format!("{RECORDS} HTTP/1.1"));
    assert!(requests[0].headers.contains(&format!("authorization: Bearer {CREDENTIAL}")));
    assert!(!requests[0].headers.iter().any(|header| header.starts_with("x-greenroom-actor")));
}

#[test]
fn a_child_refuses_what_its_whitelist_does_not_name() {
    let dir = tempfile::tempdir().unwrap();
    let host = start(dir.path(), Vec::new());
    let delete = r#"{"event_id":"evt_1"}"#;
    assert_snapshot!(as_child(dir.path(), &["calendar", "delete"], "calendar.read", delete), @r#"
    exit 1
    --- stdout
    {"error":{"allowed_methods":["calendar.read"],"close_matches":[],"code":"METHOD_NOT_ALLOWED","message":"`calendar.delete` may not be used here","method":"delete","module":"calendar"},"ok":false}
    --- stderr
    "#);
    let nothing = as_child(dir.path(), &["calendar", "read"], "", delete);
    assert!(nothing.contains("METHOD_NOT_ALLOWED"), "{nothing}");
    let pretender = ["calendar", "read", "--actor", "eve", "--data", "."];
    let none = as_child(dir.path(), &pretender, "memory.read", delete);
    assert!(none.contains("METHOD_NOT_ALLOWED"), "{none}");
    host.join().unwrap();
}

#[test]
fn a_child_never_says_its_credential() {
    let dir = tempfile::tempdir().unwrap();
    let refused = json!({"error": {"code": "unauthorized", "message": "the credential is not valid", "retryable": false, "details": {}}});
    let host = start(
        dir.path(),
        vec![Answer::json(RECORDS, refused).status(401), Answer::json(RECORDS, json!("?"))],
    );
    let input = r#"{"event_id":"evt_1"}"#;
    let told = [
        as_child(dir.path(), &["calendar", "delete"], "calendar.*", input),
        as_child(dir.path(), &["calendar", "delete"], "calendar.*", input),
    ];
    host.join().unwrap();
    // Nobody listens any more.
    let gone = as_child(dir.path(), &["calendar", "delete"], "calendar.*", input);
    let garbage = as_child(dir.path(), &["calendar", "delete"], "calendar.*", "{");
    assert!(told[0].contains("UNAUTHORIZED"), "{}", told[0]);
    assert!(told[1].contains("UNAVAILABLE"), "{}", told[1]);
    assert!(gone.contains("UNAVAILABLE"), "{gone}");
    assert!(garbage.contains("INVALID_ACTION_INPUT"), "{garbage}");
    for told in [&told[0], &told[1], &gone, &garbage] {
        assert!(told.starts_with("exit 1"), "{told}");
        assert!(!told.contains("grc_"), "{told}");
    }
}
