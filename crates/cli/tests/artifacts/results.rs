//! What is large in results and events is kept as artifacts.

use crate::stage::{PNG, Stage, event};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

#[tokio::test]
async fn inline_bytes_of_a_result_become_an_artifact() {
    let stage = Stage::open("").await;
    let png = STANDARD.encode(PNG);
    let steps = json!([
        ["result", "artifact.created", {"artifact_id": "mine", "name": "a.png", "content_base64": png}],
        ["result", "artifact.created", {"name": "../b", "content_base64": png}],
        ["result", "artifact.created", {"mime_type": "text/plain", "content_base64": png}],
        ["result", "artifact.created", {"size_bytes": 3, "content_base64": png}],
        ["result", "artifact.created", {"sha256": "00", "content_base64": png}],
        ["result", "artifact.created", {"content_base64": "?"}],
    ]);
    let (run_id, _) = stage.answers(&event("artist", "c", &steps.to_string())).await;
    let results = stage.api.results(&run_id).await;
    let made: Vec<_> = results.iter().filter(|it| it.kind == "artifact.created").collect();
    assert_eq!(made.len(), 1, "{results:?}");
    let data = json!(made[0].data);
    let id = data["artifact_id"].as_str().unwrap();
    assert_eq!(
        data,
        json!({"artifact_id": id, "name": "a.png", "mime_type": "image/png",
        "size_bytes": PNG.len(), "sha256": data["sha256"],
        "metadata": {"runner_artifact_id": "mine"}})
    );
    assert_eq!(stage.download(id).await.body, PNG);
    let notes = stage.api.run(&run_id).await.extra["diagnostics"].clone();
    let kinds: Vec<_> = notes.as_array().unwrap().iter().map(|note| &note["kind"]).collect();
    assert_eq!(kinds, ["refused_result"; 5], "{notes}");
}

#[tokio::test]
async fn outputs_over_the_limit_leave_a_preview_and_an_artifact() {
    let stage = Stage::open("[limits]\nresult_bytes = 65536\n").await;
    let steps = json!([
        ["result", "tool.call.completed", {"tool_call_id": "t1", "tool_name": "read", "result": ["repeat", "日志", 50_000]}],
        ["result", "message.completed", {"message": {"role": "assistant", "content": "LONG"}}],
    ]);
    // The message is written by hand: the step above stands for it.
    let mut steps = steps;
    steps[1][2]["message"]["content"] = json!("word ".repeat(20_000));
    let (run_id, _) = stage.answers(&event("artist", "c", &steps.to_string())).await;
    let results = stage.api.results(&run_id).await;
    let find = |kind: &str| json!(results.iter().find(|it| it.kind == kind).unwrap().data);
    let output = find("tool.call.completed");
    let result = &output["result"];
    assert_eq!(result["truncated"], true);
    assert_eq!(result["preview"], "日志".repeat(341));
    let id = result["artifact"]["artifact_id"].as_str().unwrap();
    assert_eq!(stage.download(id).await.body, "日志".repeat(50_000).as_bytes());
    assert_eq!(result["artifact"]["size_bytes"], 300_000);
    let message = find("message.completed");
    let content = message["message"]["content"].as_array().unwrap();
    let preview = format!("{} …", &"word ".repeat(20_000)[..2048]);
    assert_eq!(content[0], json!({"type": "text", "text": preview}));
    assert_eq!(content[1]["type"], "file");
    let id = content[1]["artifact_id"].as_str().unwrap();
    assert_eq!(stage.download(id).await.body, "word ".repeat(20_000).as_bytes());
    // A later run of the conversation reads it.
    let look = json!([["call", "artifacts.read_range", {"artifact_id": id, "length": 5}]]);
    let seen = stage.play("artist", "c", look).await;
    assert_eq!(seen[0]["ok"]["data_base64"], STANDARD.encode("word "));
}

#[tokio::test]
async fn what_is_large_in_an_event_is_given_to_the_run_by_reference() {
    let stage = Stage::open("").await;
    let mut large = event("artist", "c", "");
    let steps = json!([["context", "", {}]]);
    large["input"]["text"] = steps.to_string().into();
    let data = json!({"payload": "x".repeat(70_000)});
    large["data"] = data.clone();
    let image: Vec<u8> = PNG.iter().copied().chain(std::iter::repeat_n(7, 40_000)).collect();
    large["input"]["contents"] = json!([
        {"type": "image", "data_base64": STANDARD.encode(&image), "mime_type": "image/png"},
        {"type": "image", "data_base64": STANDARD.encode(PNG), "mime_type": "image/png"},
    ]);
    let (_, answers) = stage.answers(&large).await;
    let told = &answers[0]["ok"];
    assert_eq!(told["event"]["data"], json!({}));
    let raw = &told["event"]["raw_ref"];
    assert_eq!(
        (&raw["mime_type"], &raw["size_bytes"]),
        (&json!("application/json"), &json!(70_014))
    );
    let body = stage.download(raw["artifact_id"].as_str().unwrap()).await.body;
    assert_eq!(serde_json::from_slice::<Value>(&body).unwrap(), data);
    let contents = &told["input"]["contents"];
    assert_eq!(contents[0].get("data_base64"), None);
    assert_eq!(stage.download(contents[0]["artifact_id"].as_str().unwrap()).await.body, image);
    assert_eq!(contents[1]["data_base64"], STANDARD.encode(PNG));
    // The same event again is the same event; another one with bytes that disagree is refused.
    large["event_id"] = "e1".into();
    let first = stage.api.send_event(&large).await;
    assert_eq!(stage.api.send_event(&large).await.run_id, first.run_id);
    large["event_id"] = "e2".into();
    large["input"]["contents"][0]["mime_type"] = "image/jpeg".into();
    let refused = stage.api.post_event(&large).await.unwrap_err();
    assert!(
        matches!(refused, greenroom_testkit::api::Failure::Refused { status: 400, .. }),
        "{refused:?}"
    );
}
