//! One agent in full, and which agent would take an event.

use crate::stage::{READER, SENDER, Stage, message};
use crate::views::{AGENTS, ended, unnamed};
use greenroom_testkit::http::Request;
use serde_json::{Value, json};

#[tokio::test]
async fn an_agent_is_shown_in_full_without_secrets() {
    let stage = Stage::with(AGENTS).await;
    // The runner says what it is once it has started.
    ended(&stage, &message("c1", "hello")).await;
    let agent = stage.ask_as(Some(READER), Request::get("/v1/agents/desk")).await.body;
    assert_eq!(agent["config"], json!({"modes": true, "key": "secret-of-the-desk"}));
    assert_eq!((&agent["built_in"], &agent["runner_available"]), (&json!(false), &json!(true)));
    assert_eq!(agent["policy"]["history"], "conversation");
    assert_eq!(agent["grant"]["agent"], "desk");
    assert_eq!(agent["manifest"]["id"], "plugin:greenroom/echo/default");
    let fields = agent["manifest"]["config_schema"].as_array().unwrap();
    assert!(fields.iter().any(|field| field["name"] == "modes"), "{fields:?}");
    assert_eq!(
        (&agent["runner"]["status"], &agent["runner"]["runners"]),
        (&json!("ready"), &Value::Null)
    );
    let config = format!(
        "[agents.leaky]\nrunner = \"plugin:greenroom/echo/default\"\nevents = []\n\
        config = {{ note = \"{SENDER}\" }}\n"
    );
    let stage = Stage::with(&config).await;
    let leaky = stage.get("/v1/agents/leaky").await.body;
    assert_eq!(leaky["config"], json!({"note": "[redacted]"}));
    stage.get("/v1/agents/nobody").await.refused(404, "not_found");
    let sender = stage.ask_as(Some(SENDER), Request::get("/v1/agents/leaky")).await;
    sender.refused(403, "unauthorized");
}

#[tokio::test]
async fn a_dry_run_tells_who_would_take_an_event_and_changes_nothing() {
    let stage = Stage::with(AGENTS).await;
    let asked = async |event: &Value| {
        let request = Request::post("/v1/bindings/try", event.to_string());
        stage.ask_as(Some(READER), request).await
    };
    let tried = asked(&unnamed("c1", "vip", "hello")).await.body;
    assert_eq!((&tried["agent"], &tried["outcome"]), (&json!("vip"), &json!("run")));
    assert_eq!(tried["reason"], "narrower_scope");
    let candidates: Vec<Value> = tried["candidates"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| json!([it["agent"], it["matches"], it["chosen"], it["why"]]))
        .collect();
    let expected = json!([
        ["vip", true, true, ["ok"]],
        ["desk", true, false, ["less_narrow"]],
        ["assistant", true, false, ["less_narrow"]],
        ["game", false, false, ["only_when_named"]],
        ["echo", false, false, ["only_when_named"]],
    ]);
    let expected = expected.as_array().unwrap();
    assert!(expected.iter().all(|one| candidates.contains(one)), "{candidates:?}");
    assert_eq!(candidates.len(), expected.len(), "{candidates:?}");
    assert_eq!(candidates[0], expected[0]);
    let binding =
        json!({"queue": "parallel", "deadline_s": 42, "on_interrupt": "fail", "delivery": null});
    assert_eq!(tried["binding"], binding);
    let tried = asked(&unnamed("c1", "u1", "hello")).await.body;
    assert_eq!((&tried["agent"], &tried["reason"]), (&json!("desk"), &json!("before_built_in")));
    let nobody = asked(&json!({"event_type": "tick"})).await.body;
    assert_eq!((&nobody["agent"], &nobody["outcome"]), (&Value::Null, &json!("unbound")));
    let unknown = asked(&json!({"event_type": "tick", "agent": "who"})).await.body;
    assert_eq!(unknown["outcome"], "unknown_agent");
    asked(&json!({"event": "tick"})).await.refused(400, "invalid_argument");
    asked(&json!({"event_type": "tick", "delivery": {"surface": "no"}}))
        .await
        .refused(400, "invalid_argument");
    stage.is_untouched_and_well().await;
    let tried = asked(&message("c1", "hello")).await.body;
    assert_eq!((&tried["reason"], &tried["grant"]["agent"]), (&json!("named"), &json!("game")));
    assert_eq!(
        tried["resources"]["storage"],
        json!({"plugin": true, "workspace": false, "binding": false})
    );
    let sender = stage.ask_as(Some(SENDER), Request::post("/v1/bindings/try", "{}")).await;
    sender.refused(403, "unauthorized");
}
