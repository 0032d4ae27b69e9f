//! The audit trail and retention, through the real binary: what runners asked for is listed, what is past its
//! time goes.

use crate::PROGRAM;
use crate::stage::{PATIENCE, Stage, config};
use greenroom_protocol::RunStatus;
use greenroom_store::commands::AcceptEvent;
use greenroom_store::types::NewItem;
use greenroom_store::{Location, Options, Store, Sync};
use greenroom_testkit::api::Failure;
use greenroom_testkit::host::TestHost;
use greenroom_testkit::http::Request;
use greenroom_testkit::wait::wait_for;
use serde_json::{Value, json};
use std::process::Command;

/// A step of the puppet: a call, and the file that gets its answer.
fn call(number: u32, method: &str, params: Value) -> Value {
    json!(["call", method, params, format!("answer-{number}")])
}

/// The records that a query finds, once there are so many.
async fn records(stage: &Stage, query: &str, count: usize) -> Vec<Value> {
    let target = format!("/v1/audit?{query}");
    wait_for(&format!("{count} of {target}"), PATIENCE, async || {
        let page = stage.api.get(&target).await;
        let items = page["items"].as_array().unwrap().clone();
        (items.len() == count).then_some(items)
    })
    .await
}

fn told(records: &[Value]) -> Vec<String> {
    let word = |record: &Value, key: &str| record[key].as_str().unwrap_or("-").to_owned();
    let line = |record: &Value| {
        ["method", "resource", "scope", "code"].map(|key| word(record, key)).join(" ")
    };
    let mut lines: Vec<String> = records.iter().map(line).collect();
    lines.sort();
    lines
}

#[tokio::test]
async fn every_call_is_listed_with_its_outcome_and_without_what_was_said() {
    let stage = Stage::open("").await;
    let secret = "what only the runner knows";
    let steps = json!([
        call(1, "state.set", json!({"scope": "conversation", "key": "k", "value": secret})),
        call(2, "state.get", json!({"scope": "conversation", "key": "other"})),
        call(3, "state.get", json!({"scope": "binding", "key": "k"})),
        call(4, "platform.request_action", json!({"action": "message.send"})),
        ["gate", "go"],
        ["end"]
    ]);
    let run_id = stage.start("audited", steps).await;
    let all = records(&stage, &format!("run_id={run_id}"), 4).await;
    let set = all.iter().find(|record| record["method"] == "state.set").unwrap();
    assert_eq!(set["run_id"], run_id.as_str());
    assert_eq!(set["attempt"], 1);
    assert_eq!(set["agent"], "puppet");
    assert_eq!(set["plugin"], "test/puppet");
    assert!(set["bytes_in"].as_i64().unwrap() > secret.len() as i64, "{set}");
    assert!(set["duration_us"].as_i64().unwrap() > 0, "{set}");
    assert!(set["at"].as_str().unwrap().ends_with('Z'), "{set}");
    assert!(!json!(all).to_string().contains(secret));
    let codes = told(&all);
    assert!(codes.contains(&"state.set k conversation ok".to_owned()), "{codes:?}");
    assert!(codes.contains(&"state.get other conversation ok".to_owned()), "{codes:?}");
    let denied = records(&stage, &format!("run_id={run_id}&denied=true"), 2).await;
    assert!(denied.iter().all(|record| record["code"] == "unauthorized"), "{denied:?}");
    assert_eq!(records(&stage, "method=state.get", 2).await.len(), 2);
    assert_eq!(records(&stage, "code=ok", 2).await.len(), 2);
    assert_eq!(records(&stage, "run_id=another", 0).await, [Value::Null; 0]);
    stage.pass("go");
    assert_eq!(stage.api.ended_run(&run_id).await.status, RunStatus::Completed);
}

#[tokio::test]
async fn the_list_is_paged_and_refuses_what_it_does_not_know() {
    let stage = Stage::open("").await;
    let get = |id| call(id, "state.get", json!({"scope": "conversation", "key": format!("{id}")}));
    let steps = json!([get(1), get(2), get(3), ["gate", "go"], ["end"]]);
    let run_id = stage.start("paged", steps).await;
    let whole = records(&stage, &format!("run_id={run_id}"), 3).await;
    let (mut seen, mut next) = (Vec::new(), format!("/v1/audit?run_id={run_id}&limit=1"));
    let mut cursors = Vec::new();
    loop {
        let page = stage.api.get(&next).await;
        seen.extend(page["items"].as_array().unwrap().clone());
        let Some(cursor) = page["next_cursor"].as_str() else { break };
        next = format!("/v1/audit?run_id={run_id}&limit=1&cursor={cursor}");
        cursors.push(cursor.to_owned());
    }
    assert_eq!(seen, whole);
    for target in [
        format!("/v1/audit?cursor={}", cursors[0]),
        "/v1/audit?code=nonsense".to_owned(),
        "/v1/audit?denied=maybe".to_owned(),
        "/v1/audit?conversation_id=c".to_owned(),
    ] {
        let refused = stage.api.json(Request::get(target.as_str())).await.unwrap_err();
        let Failure::Refused { status, body } = refused else { panic!("{target}: {refused:?}") };
        assert_eq!((status, &body["error"]["code"]), (400, &json!("invalid_argument")), "{target}");
    }
    stage.pass("go");
    assert_eq!(stage.api.ended_run(&run_id).await.status, RunStatus::Completed);
}

#[expect(clippy::disallowed_methods, reason = "the program under test is started here")]
#[tokio::test]
async fn the_command_line_shows_the_trail() {
    let stage = Stage::open("").await;
    let steps = json!([
        call(1, "state.set", json!({"scope": "conversation", "key": "shown", "value": 1})),
        ["gate", "go"],
        ["end"]
    ]);
    let run_id = stage.start("shown", steps).await;
    records(&stage, &format!("run_id={run_id}"), 1).await;
    let audit = |more: &[&str]| {
        let mut command = Command::new(PROGRAM);
        command.args(["audit", "--run", &run_id, "--data"]).arg(stage.host.data()).args(more);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let table = audit(&[]);
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines.len(), 2, "{table}");
    assert!(lines[0].starts_with("AT ") && lines[0].ends_with("TOOK"), "{table}");
    assert!(lines[1].contains("state.set") && lines[1].contains("shown"), "{table}");
    let page: Value = serde_json::from_str(&audit(&["--method", "state.set", "--json"])).unwrap();
    assert_eq!(page["items"][0]["run_id"], run_id.as_str());
    let none: Value = serde_json::from_str(&audit(&["--denied", "--json"])).unwrap();
    assert_eq!(none["items"], json!([]));
    stage.pass("go");
    assert_eq!(stage.api.ended_run(&run_id).await.status, RunStatus::Completed);
}

#[tokio::test]
async fn what_is_past_its_time_goes_while_the_host_runs() {
    let retention = "[retention]\nevents_days = 1\ntranscript_days = 1\ncollect_every_s = 1\n";
    let mut host = TestHost::prepare(PROGRAM, &config("", retention));
    std::fs::create_dir(host.folder().join("puppet")).unwrap();
    std::fs::create_dir_all(host.data()).unwrap();
    let location = Location::Sqlite(host.data().join("greenroom.db"));
    let store = Store::open(&Options { location, sync: Sync::Normal }).unwrap();
    store.commit(old_event()).await.unwrap();
    store.close();
    drop(store);
    host.start_again().await;
    let api = host.api();
    wait_for("the body to go", PATIENCE, async || {
        let event = api.get("/v1/events/old").await;
        event["event"].is_null().then_some(())
    })
    .await;
    wait_for("the item to go", PATIENCE, async || {
        api.history("old").await.is_empty().then_some(())
    })
    .await;
}

/// An event of 1970 that no agent took.
fn old_event() -> AcceptEvent {
    AcceptEvent {
        workspace_id: "default".to_owned(),
        source: "api".to_owned(),
        limited_to: None,
        event_id: "old".to_owned(),
        body_hash: [0; 32],
        event_type: "message.received".to_owned(),
        conversation_id: Some("old".to_owned()),
        body: r#"{"event":{"event_id":"old"},"trigger":"api"}"#.to_owned(),
        run: None,
        item: Some(NewItem {
            item_id: "item-old".to_owned(),
            thread_id: None,
            session: String::new(),
            role: "user",
            event_id: Some("old".to_owned()),
            run_id: None,
            actor_id: None,
            text: Some("long ago".to_owned()),
            body: r#"{"segments":[],"artifacts":[],"metadata":{}}"#.to_owned(),
        }),
        artifacts: Vec::new(),
        uploads: Vec::new(),
        sent_by: None,
        now_ms: 1_000,
    }
}
