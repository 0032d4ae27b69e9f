//! Calls that somebody allows with other arguments than they asked for, over HTTP and on the command line.

use crate::approvals::{asked, made_event, tool_items};
use crate::stage::{Stage, event, outcome};
use crate::{AGENT, call, data};
use greenroom_protocol::RunStatus;
use greenroom_testkit::api::Failure;
use greenroom_testkit::http::Request;
use serde_json::{Value, json};

fn delete(id: &Value) -> Value {
    json!({"module": "calendar", "method": "delete", "input": {"event_id": id}})
}

/// A run of `ann` that asks to delete an event that does not exist.
async fn begin(stage: &Stage, name: &str) -> String {
    let wanted = call(name, "calendar", "delete", json!({"event_id": "none"}));
    let mut sent = event("clerk", "c1", &json!([wanted, ["end"]]).to_string());
    sent["actor"]["actor_id"] = "ann".into();
    stage.send(&sent).await
}

async fn answer(stage: &Stage, question: &Value, mut body: Value) -> (u16, Value) {
    body["nonce"] = question["nonce"].clone();
    let id = question["approval_id"].as_str().unwrap();
    let request = Request::post(format!("/v1/approvals/{id}"), body.to_string());
    match stage.api.json(request).await {
        Ok(answer) => answer,
        Err(Failure::Refused { status, body }) => (status, body),
        Err(failure) => panic!("{failure:?}"),
    }
}

#[expect(clippy::disallowed_methods, reason = "the program under test is started here")]
fn greenroom(stage: &Stage, args: &[&str]) -> String {
    let output = std::process::Command::new(crate::PROGRAM)
        .args(args)
        .arg("--data")
        .arg(stage.host.data())
        .env_remove("GREENROOM_URL")
        .output()
        .unwrap();
    let both = [output.stdout, output.stderr].concat();
    format!("{}: {}", output.status.code().unwrap(), String::from_utf8(both).unwrap())
}

#[tokio::test]
async fn a_call_is_allowed_with_other_arguments_within_schema_and_grant() {
    let stage = Stage::open(AGENT).await;
    let id = made_event(&stage).await;
    let run_id = begin(&stage, "other").await;
    let question = asked(&stage).await;
    for (body, said) in [
        (json!({"decision": "allow", "args": {"module": "calendar"}}), "`args`: "),
        (json!({"decision": "allow", "args": delete(&json!(7))}), "`args`: "),
        (
            json!({"decision": "allow", "args": {"module": "contacts", "method": "create",
                "input": {"name": "Bob"}}}),
            "`args`: ",
        ),
        (json!({"decision": "allow", "args": [1]}), "the body must be"),
        (json!({"decision": "deny", "args": delete(&id)}), "`args` belong to"),
    ] {
        let (status, refused) = answer(&stage, &question, body.clone()).await;
        let error = &refused["error"];
        assert_eq!((status, &error["code"]), (400, &json!("invalid_argument")), "{body}");
        assert!(error["message"].as_str().unwrap().starts_with(said), "{body}: {error}");
    }
    let given = json!({"decision": "allow", "args": delete(&id)});
    let (status, allowed) = answer(&stage, &question, given.clone()).await;
    assert_eq!(status, 200, "{allowed}");
    let kept = [&allowed["payload"], &allowed["target"]["asked_payload"], &allowed["subject"]];
    assert_eq!(kept, [&delete(&id), &delete(&json!("none")), &Value::Null]);
    assert_eq!(answer(&stage, &question, given).await.0, 200, "the same answer again");
    let another = json!({"decision": "allow", "args": delete(&json!("third"))});
    assert_eq!(answer(&stage, &question, another).await.0, 409);
    let run = stage.api.ended_run(&run_id).await;
    assert_eq!(outcome(&run), (RunStatus::Completed, ""));
    data(&stage, "other").await;
    // The conversation and the log say what was done, and what had been asked for.
    let items = tool_items(&stage, "c1").await;
    let output = &items.last().unwrap().metadata["tool_agent_output"];
    assert_eq!((&output["tool_call_args"], &output["status"]), (&delete(&id), &json!("success")));
    let log = stage.api.events().await;
    let fact = log.iter().find(|event| event["event_type"] == "approval.allowed").unwrap();
    let fact = &fact["event"];
    let said = [&fact["edited"], &fact["payload"], &fact["target"]["asked_payload"]];
    assert_eq!(said, [&json!(true), &delete(&id), &delete(&json!("none"))]);
}

#[tokio::test]
async fn the_command_line_gives_other_arguments_and_shows_both() {
    let stage = Stage::open(AGENT).await;
    let id = made_event(&stage).await;
    let run_id = begin(&stage, "other").await;
    let question = asked(&stage).await;
    let approval = question["approval_id"].as_str().unwrap();
    let wrong = greenroom(&stage, &["approvals", "allow", approval, "--args", "[1]"]);
    assert!(wrong.starts_with("2: error: `--args` is not a JSON object"), "{wrong}");
    let invalid = delete(&json!(7)).to_string();
    let refused = greenroom(&stage, &["approvals", "allow", approval, "--args", &invalid]);
    assert!(refused.starts_with("1: error: `args`: "), "{refused}");
    let args = delete(&id).to_string();
    let allowed = greenroom(&stage, &["approvals", "allow", approval, "--args", &args]);
    assert_eq!(allowed, format!("0: approval {approval} allowed\n"));
    let run = stage.api.ended_run(&run_id).await;
    assert_eq!(outcome(&run), (RunStatus::Completed, ""));
    data(&stage, "other").await;
    let shown = greenroom(&stage, &["approvals", "show", approval]);
    assert!(shown.contains(&format!("  payload       {args}\n")), "{shown}");
    let asked = delete(&json!("none"));
    assert!(shown.contains(&format!("  edited from   {asked}\n")), "{shown}");
}
