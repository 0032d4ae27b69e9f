//! Calls that somebody is asked about first, by their risk.

use crate::stage::{PATIENCE, Stage, event, outcome};
use crate::{AGENT, call, data, play};
use greenroom_protocol::RunStatus;
use greenroom_testkit::http::Request;
use greenroom_testkit::wait::wait_for;
use serde_json::{Value, json};

async fn made_event(stage: &Stage) -> Value {
    let input = json!({"title": "Sync", "start_at": "2026-04-21T10:00:00+08:00",
        "end_at": "2026-04-21T12:00:00+08:00"});
    play(stage, "ann", "c1", vec![call("made", "calendar", "create", input)]).await;
    data(stage, "made").await["id"].clone()
}

async fn asked(stage: &Stage) -> Value {
    wait_for("a question", PATIENCE, async || {
        let page = stage.api.get("/v1/approvals?status=pending").await;
        page["items"].as_array().unwrap().first().cloned()
    })
    .await
}

async fn answer(stage: &Stage, question: &Value, decision: &str) {
    let id = question["approval_id"].as_str().unwrap();
    let body = json!({"decision": decision, "nonce": question["nonce"]}).to_string();
    let answered = stage.api.json(Request::post(format!("/v1/approvals/{id}"), body)).await;
    assert_eq!(answered.unwrap().0, 200);
}

#[tokio::test]
async fn what_cannot_be_brought_back_is_done_only_once_it_is_allowed() {
    let stage = Stage::open(AGENT).await;
    let id = made_event(&stage).await;
    for (decision, left) in [("deny", 1), ("allow", 0)] {
        let delete = call(decision, "calendar", "delete", json!({"event_id": id}));
        let steps = json!([delete, ["end"]]).to_string();
        let mut sent = event("clerk", "c1", &steps);
        sent["actor"]["actor_id"] = "ann".into();
        let run_id = stage.send(&sent).await;
        let question = asked(&stage).await;
        assert_eq!(
            (&question["action"], &question["run_id"]),
            (&json!("tool.call"), &json!(run_id))
        );
        assert_eq!(question["target"]["tool_name"], "project_cli");
        assert_eq!(question["target"]["risk"], "destructive");
        assert_eq!(question["payload"]["method"], "delete");
        answer(&stage, &question, decision).await;
        let run = stage.api.ended_run(&run_id).await;
        assert_eq!(outcome(&run), (RunStatus::Completed, ""));
        let name = format!("left_{decision}");
        let day = json!({"mode": "day", "date": "2026-04-21", "timezone": "Asia/Shanghai"});
        play(&stage, "ann", "c1", vec![call(&name, "calendar", "read", day)]).await;
        assert_eq!(data(&stage, &name).await["count"], left, "{decision}");
    }
    let denied = stage.told("deny").await;
    assert_eq!(denied["error"]["data"]["code"], "unauthorized");
    assert_eq!(denied["error"]["data"]["details"]["reason"], "denied");
    data(&stage, "allow").await;
}

#[tokio::test]
async fn a_grant_may_forbid_or_ask_about_any_risk() {
    let config =
        AGENT.replace("grant = {", "grant = { risk = { read = \"ask\", write = \"never\" },");
    let stage = Stage::open(&config).await;
    let update = call("update", "memory", "update", json!({"set": {"a": 1}}));
    let read = call("read", "memory", "read", json!({}));
    let run_id =
        stage.send(&event("clerk", "c1", &json!([update, read, ["end"]]).to_string())).await;
    let question = asked(&stage).await;
    assert_eq!(question["target"]["risk"], "read");
    answer(&stage, &question, "allow").await;
    stage.api.ended_run(&run_id).await;
    let refused = stage.told("update").await;
    assert_eq!(refused["error"]["data"]["code"], "unauthorized");
    assert_eq!(refused["error"]["data"]["details"]["reason"], "not_granted");
    assert_eq!(data(&stage, "read").await["count"], 0);
}
