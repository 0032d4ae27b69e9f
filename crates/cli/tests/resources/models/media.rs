//! Pictures: artifacts by value in, large ones of an answer as artifacts out, and only within reach.

use super::server::{KEY, WIRES};
use super::{Server, agent, host, refusal, result, run, step};
use crate::stage::{Stage, outcome};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use greenroom_protocol::RunStatus;
use greenroom_testkit::http::Request;
use serde_json::{Value, json};

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n0000IHDR....";

async fn upload(stage: &Stage, conversation: &str) -> String {
    let target = format!("/v1/artifacts?name=a.png&conversation_id={conversation}");
    let headers = vec![("content-type", "image/png".to_owned())];
    let request = Request { method: "POST", target, headers, body: PNG.to_vec() };
    let (status, view) = stage.api.json(request).await.unwrap();
    assert_eq!(status, 201);
    view["artifact_id"].as_str().unwrap().to_owned()
}

fn shows(model: &str, artifact_id: &str) -> Value {
    let picture = json!({"type": "image", "artifact_id": artifact_id, "mime_type": "image/png"});
    let content = json!([{"type": "text", "text": "What is this?"}, picture]);
    json!({"model_id": model, "messages": [{"role": "user", "content": content}]})
}

#[tokio::test]
async fn a_picture_reaches_every_wire_and_only_from_where_the_run_may_read() {
    let server = Server::start("[[rule]]\nanswer = \"a picture\"");
    let names = WIRES.map(|(name, _)| name);
    let blind = agent("blind", &names, "").replace("grant = {", "grant = { artifacts = \"none\",");
    let config = server.models("") + &agent("asker", &names, "") + &blind;
    let stage = host(&[("key", KEY)], &config).await;
    let (ours, theirs) = (upload(&stage, "c1").await, upload(&stage, "c2").await);
    let mut steps: Vec<Value> =
        names.iter().map(|name| step("models.invoke", shows(name, &ours), name)).collect();
    steps.push(step("models.invoke", shows("chat", &theirs), "theirs"));
    steps.push(step("models.invoke", shows("chat", "art_none"), "none"));
    let played = run(&stage, "asker", "c1", steps).await;
    assert_eq!(outcome(&played), (RunStatus::Completed, ""));
    for name in names {
        let answer = result(&stage, name).await;
        assert_eq!(answer["segments"], json!([{"type": "text", "text": "a picture"}]), "{name}");
    }
    // Once per wire, by value, and never by an id that means nothing to a provider.
    assert_eq!(server.requests(&STANDARD.encode(PNG)).len(), names.len());
    assert_eq!(server.requests(&ours).len(), 0);
    assert_eq!(server.requests("").len(), names.len());
    let refused = refusal(&stage, "theirs").await;
    assert_eq!(refused["code"], "not_found");
    assert_eq!(refused, refusal(&stage, "none").await);
    // The record of a call is about its model, whatever came with it.
    let audit = stage.api.get(&format!("/v1/audit?run_id={}&limit=200", played.run_id)).await;
    let refusals = audit["items"].as_array().unwrap().iter();
    let about: Vec<&Value> = refusals
        .filter(|record| record["code"] == "not_found")
        .map(|record| &record["resource"])
        .collect();
    assert_eq!(about, ["chat", "chat"], "{audit}");
    run(&stage, "blind", "c1", vec![step("models.invoke", shows("chat", &ours), "blind")]).await;
    assert_eq!(refusal(&stage, "blind").await["code"], "unauthorized");
    assert_eq!(server.requests("").len(), names.len());
}

#[tokio::test]
async fn large_media_of_an_answer_become_artifacts_of_the_run() {
    let mut large = PNG.to_vec();
    large.resize(100_000, 7);
    let script = format!(
        "[[rule]]\nanswer = [{{ media = {{ type = \"image\", mime_type = \"image/png\", data = \"{}\" }} }}, \
         {{ media = {{ type = \"image\", mime_type = \"image/png\", data = \"{}\" }} }}]",
        STANDARD.encode(PNG),
        STANDARD.encode(&large)
    );
    let config = "[models.painter]\nprovider = \"scripted\"\nscript = \"painter.toml\"\n"
        .to_owned()
        + &agent("asker", &["painter"], "");
    let stage = host(&[("painter.toml", &script)], &config).await;
    let steps = vec![
        step("models.invoke", super::says("painter", "paint"), "whole"),
        step("models.stream", super::says("painter", "paint"), "stream"),
    ];
    let played = run(&stage, "asker", "c1", steps).await;
    assert_eq!(outcome(&played), (RunStatus::Completed, ""));
    let small = json!({"type": "image", "mime_type": "image/png", "data": STANDARD.encode(PNG)});
    for name in ["whole", "stream"] {
        let answer = result(&stage, name).await;
        let id = answer["segments"][1]["artifact_id"].as_str().unwrap();
        let kept = json!({"type": "image", "mime_type": "image/png", "artifact_id": id});
        assert_eq!(answer["segments"], json!([small, kept]), "{name}");
        let reply = stage.api.send(Request::get(format!("/v1/artifacts/{id}"))).await.unwrap();
        assert_eq!(reply.header("content-type"), Some("image/png"));
        assert_eq!(reply.body().await.unwrap(), large);
        let view = stage.api.get(&format!("/v1/artifacts/{id}/metadata")).await;
        assert_eq!(view["run_id"], json!(played.run_id));
        assert_eq!(view["conversation_id"], "c1");
    }
    let stream = stage.told("stream").await;
    let media: Vec<&Value> =
        stream["items"].as_array().unwrap().iter().filter_map(|item| item.get("segment")).collect();
    assert_eq!(json!(media), stream["result"]["segments"]);
}
