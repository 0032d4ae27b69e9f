//! What the run of a limited sender reaches (decision 020).

use crate::stage::{Stage, TOKEN, event};
use greenroom_testkit::http::{Request, send};
use serde_json::{Value, json};

const MORE: &str = r#"
[agents.wide]
runner = "plugin:test/puppet/main"
events = []
grant = { history = "workspace", event_log = "workspace", artifacts = "workspace" }
[tokens.web]
role = "sender"
agents = ["puppet", "wide"]
token = { file = "token" }
"#;

/// Sends an event with the limited token and waits for the end of its run.
async fn send_limited(stage: &Stage, event: &Value) -> String {
    let place = std::fs::read_to_string(stage.host.data().join("host.json")).unwrap();
    let place: Value = serde_json::from_str(&place).unwrap();
    let address = place["address"].as_str().unwrap().parse().unwrap();
    let request = Request::post("/v1/events", event.to_string())
        .header("content-type", "application/json")
        .header("authorization", format!("Bearer {TOKEN}"));
    let response = send(address, &request).await.unwrap();
    assert_eq!(response.status, 202);
    let answer: Value = serde_json::from_slice(&response.body().await.unwrap()).unwrap();
    let run_id = answer["run_id"].as_str().unwrap().to_owned();
    stage.api.ended_run(&run_id).await;
    run_id
}

#[tokio::test(flavor = "multi_thread")]
async fn the_run_of_a_limited_sender_reads_no_other_conversation() {
    let stage = Stage::open(MORE).await;
    let steps = json!([["message", "the word is heron"], ["end"]]);
    let theirs = stage.start("c1", steps).await;
    stage.api.ended_run(&theirs).await;
    let upload = Request::post("/v1/artifacts?conversation_id=c1&name=heron.txt", "heron");
    let (status, artifact) = stage.api.json(upload).await.unwrap();
    assert_eq!(status, 201, "{artifact}");
    for agent in ["puppet", "wide"] {
        let call = |method: &str, params: Value| {
            json!(["call", method, params, format!("{agent}-{method}")])
        };
        let calls = [
            ("history.page", json!({})),
            ("history.page", json!({"conversation_id": "c1"})),
            ("artifacts.metadata", json!({"artifact_id": artifact["artifact_id"]})),
            ("artifacts.read_range", json!({"artifact_id": artifact["artifact_id"]})),
        ];
        for (method, params) in calls {
            let name = format!("{agent}-{method}");
            let steps = json!([call(method, params.clone()), ["end"]]);
            send_limited(&stage, &event(agent, "c1", &steps.to_string())).await;
            let told = stage.told(&name).await;
            let found = told.to_string();
            // Its own steps repeat the word that it looks for.
            assert!(!found.contains("the word is heron"), "{agent} {method} {params}: {found}");
            assert!(!found.contains("heron.txt"), "{agent} {method} {params}: {found}");
            std::fs::remove_file(stage.host.folder().join("puppet").join(&name)).unwrap();
        }
    }
    assert_eq!(stage.api.history("c1").await.len(), 2, "nothing was added");
    // The same agent reads it for a sender without limits.
    let steps = json!([["call", "history.page", {"conversation_id": "c1"}, "admin"], ["end"]]);
    let run = stage.send(&event("wide", "elsewhere", &steps.to_string())).await;
    stage.api.ended_run(&run).await;
    assert!(stage.told("admin").await.to_string().contains("the word is heron"));
}
