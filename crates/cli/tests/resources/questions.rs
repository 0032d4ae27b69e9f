//! MCP servers that ask the user during a call, and the older servers that they often are.

use crate::approvals::asked;
use crate::mcp::use_tool;
use crate::play;
use crate::programs::{prepared, program, python};
use crate::stage::{PATIENCE, Stage, event, outcome};
use greenroom_protocol::RunStatus;
use greenroom_testkit::api::Failure;
use greenroom_testkit::http::Request;
use greenroom_testkit::wait::wait_for;
use serde_json::{Value, json};

async fn stage(more: &str) -> Stage {
    let config = format!(
        r#"
{more}
[tools.shop]
command = ["{}", "{}"]
paths = ["{}"]
network = false
risk = "read"
[agents.clerk]
runner = "plugin:test/puppet/main"
events = []
deadline_s = 60
grant = {{ tools = ["shop.*"] }}
"#,
        python(),
        program("asking.py").display(),
        program("").display(),
    );
    Stage::with(prepared(&config)).await
}

async fn begin(stage: &Stage, name: &str, tool: &str) -> String {
    let steps = json!([use_tool(name, &format!("shop.{tool}"), json!({})), ["end"]]);
    stage.send(&event("clerk", "c1", &steps.to_string())).await
}

async fn answer(stage: &Stage, question: &Value, body: Value) -> (u16, Value) {
    let mut body = body;
    body["nonce"] = question["nonce"].clone();
    let id = question["approval_id"].as_str().unwrap();
    let request = Request::post(format!("/v1/approvals/{id}"), body.to_string());
    match stage.api.json(request).await {
        Ok(answer) => answer,
        Err(Failure::Refused { status, body }) => (status, body),
        Err(failure) => panic!("{failure:?}"),
    }
}

/// What the server got.
async fn said(stage: &Stage, name: &str, run_id: &str) -> Value {
    let run = stage.api.ended_run(run_id).await;
    assert_eq!(outcome(&run), (RunStatus::Completed, ""), "{run:?}");
    let told = stage.told(name).await;
    let text = told["result"]["result"]["content"][0]["text"].as_str();
    serde_json::from_str(text.unwrap_or_else(|| panic!("{told}"))).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_is_stored_checked_and_answered_once() {
    let stage = stage("").await;
    let run_id = begin(&stage, "said", "form").await;
    let question = asked(&stage).await;
    assert_eq!(question["action"], "tool.input");
    assert_eq!(question["target"]["server"], "shop");
    assert_eq!(question["target"]["tool_name"], "shop.form");
    assert_eq!(question["payload"]["message"], "Who are you?");
    assert_eq!(question["payload"]["requested_schema"]["required"], json!(["name"]));
    for wrong in [json!({}), json!({"name": ""}), json!({"name": "Ann", "size": "huge"})] {
        let (status, refused) =
            answer(&stage, &question, json!({"decision": "allow", "values": wrong})).await;
        assert_eq!((status, &refused["error"]["code"]), (400, &json!("invalid_argument")));
    }
    let values = json!({"name": "Ann"});
    let given = json!({"decision": "allow", "values": values});
    let (status, answered) = answer(&stage, &question, given.clone()).await;
    assert_eq!(status, 200);
    // Fields that were left out have their defaults.
    let whole = json!({"name": "Ann", "size": "large", "loud": false});
    assert_eq!(answered["payload"]["answer"], whole);
    assert_eq!(answer(&stage, &question, given).await.0, 200, "the same answer again");
    let other = json!({"decision": "allow", "values": {"name": "Bob"}});
    assert_eq!(answer(&stage, &question, other).await.0, 409);
    assert_eq!(said(&stage, "said", &run_id).await, json!({"action": "accept", "content": whole}));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_is_declined_or_expires() {
    let stage = stage("[approvals]\nexpires_s = 5").await;
    let run_id = begin(&stage, "said", "form").await;
    let question = asked(&stage).await;
    assert_eq!(answer(&stage, &question, json!({"decision": "deny"})).await.0, 200);
    assert_eq!(said(&stage, "said", &run_id).await, json!({"action": "decline"}));
    let run_id = begin(&stage, "expired", "form").await;
    let expired = wait_for("the question to expire", PATIENCE, async || {
        let page = stage.api.get(&format!("/v1/approvals?run_id={run_id}")).await;
        let question = page["items"].as_array().unwrap().first().cloned();
        question.filter(|question| question["status"] == "expired")
    });
    expired.await;
    assert_eq!(said(&stage, "expired", &run_id).await, json!({"action": "cancel"}));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_is_shown_and_only_a_web_address() {
    let stage = stage("").await;
    let run_id = begin(&stage, "said", "url").await;
    let question = asked(&stage).await;
    let payload = json!({"mode": "url", "message": "Pay here", "url": "https://pay.example/x"});
    assert_eq!(question["payload"], payload);
    assert_eq!(answer(&stage, &question, json!({"decision": "allow"})).await.0, 200);
    assert_eq!(said(&stage, "said", &run_id).await, json!({"action": "accept"}));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_hostile_questions_reaches_nobody() {
    let stage = stage("").await;
    let run_id = begin(&stage, "said", "flood").await;
    assert_eq!(said(&stage, "said", &run_id).await, json!([-32602]));
    let page = stage.api.get("/v1/approvals").await;
    assert_eq!(page["items"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_older_server_is_used_with_its_own_handshake_and_schemas() {
    let stage = stage("").await;
    let steps = vec![
        use_tool("good", "shop.old", json!({"count": 1, "note": null})),
        use_tool("bad", "shop.old", json!({"count": 0})),
        use_tool("null", "shop.old", json!({"count": null})),
    ];
    play(&stage, "ann", "c1", steps).await;
    // A null for an optional argument is left out.
    let good = stage.told("good").await;
    assert_eq!(good["result"]["result"]["content"][0]["text"], r#"{"count": 1}"#, "{good}");
    for wrong in ["bad", "null"] {
        let told = stage.told(wrong).await;
        assert_eq!(told["result"]["error"]["code"], "INVALID_ARGUMENT", "{told}");
    }
    let servers = stage.api.get("/v1/tool-servers").await;
    let shop = servers["items"].as_array().unwrap().iter().find(|one| one["name"] == "shop");
    assert_eq!(shop.unwrap()["protocol_version"], "2025-06-18");
    assert_eq!(shop.unwrap()["warnings"], json!([]));
}
