//! Runs and artifacts: what they make, what they see, and what they do not.

use crate::stage::{PATIENCE, PNG, Stage, event};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use greenroom_testkit::wait::wait_for;
use serde_json::{Value, json};

fn create(text: &str, more: Value) -> Value {
    let mut params = json!({"content_base64": STANDARD.encode(text)});
    params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!(["call", "artifacts.create", params])
}

/// All four looks at an artifact.
fn looks(id: &str) -> Value {
    json!([
        ["call", "artifacts.metadata", {"artifact_id": id}],
        ["call", "artifacts.read_range", {"artifact_id": id}],
        ["call", "artifacts.open_stream", {"artifact_id": id}],
    ])
}

fn codes(answers: &[Value]) -> Vec<&str> {
    answers.iter().map(|answer| answer["error"]["code"].as_str().unwrap_or("ok")).collect()
}

#[tokio::test]
async fn what_a_run_makes_it_can_read_in_parts_and_as_a_stream() {
    let stage = Stage::open("[limits]\nread_range_bytes = 65536\n").await;
    let text = "0123456789".repeat(20_000);
    let steps = json!([
        create(&text, json!({"name": "数.txt", "metadata": {"a": 1}})),
        ["call", "artifacts.metadata", {"artifact_id": "$0.artifact_id"}],
        ["call", "artifacts.read_range", {"artifact_id": "$0.artifact_id", "offset": 5, "length": 10}],
        ["call", "artifacts.read_range", {"artifact_id": "$0.artifact_id", "offset": 199_995, "length": 100}],
        ["call", "artifacts.read_range", {"artifact_id": "$0.artifact_id", "offset": 300_000}],
        ["call", "artifacts.read_range", {"artifact_id": "$0.artifact_id", "length": 1_000_000}],
        ["call", "artifacts.open_stream", {"artifact_id": "$0.artifact_id", "offset": 100_000}],
    ]);
    let (run_id, answers) = stage.answers(&event("artist", "c", &steps.to_string())).await;
    assert_eq!(codes(&answers), ["ok"; 7], "{answers:?}");
    let view = &answers[0]["ok"];
    assert_eq!(view, &answers[1]["ok"]);
    let expected = json!({"artifact_id": view["artifact_id"], "name": "数.txt",
        "mime_type": "text/plain", "size_bytes": 200_000, "sha256": view["sha256"],
        "conversation_id": "c", "run_id": run_id, "agent": "artist",
        "created_at": view["created_at"], "expires_at": null, "metadata": {"a": 1}});
    assert_eq!(*view, expected);
    let range = |offset: u64, length: u64, text: &str, eof: bool| {
        json!({"data_base64": STANDARD.encode(text), "offset": offset, "length": length,
            "size_bytes": 200_000, "eof": eof})
    };
    assert_eq!(answers[2]["ok"], range(5, 10, "5678901234", false));
    assert_eq!(answers[3]["ok"], range(199_995, 5, "56789", true));
    assert_eq!(answers[4]["ok"], range(300_000, 0, "", true));
    assert_eq!(answers[5]["ok"], range(0, 65_536, &text[..65_536], false));
    let items = answers[6]["items"].as_array().unwrap();
    let mut offset = 100_000;
    let mut streamed = Vec::new();
    for item in items {
        assert_eq!(item["offset"], offset);
        let piece = STANDARD.decode(item["data_base64"].as_str().unwrap()).unwrap();
        offset += piece.len();
        streamed.extend(piece);
    }
    assert_eq!(streamed, &text.as_bytes()[100_000..]);
    assert_eq!(answers[6]["ok"], json!({"size_bytes": 200_000, "sha256": view["sha256"]}));
    let id = view["artifact_id"].as_str().unwrap();
    assert_eq!(stage.download(id).await.body, text.as_bytes());
}

#[tokio::test]
async fn a_run_sees_its_conversation_and_nothing_else() {
    let stage = Stage::open("").await;
    let made = stage.play("artist", "c1", json!([create("one", json!({}))])).await;
    let id = made[0]["ok"]["artifact_id"].as_str().unwrap();
    assert_eq!(codes(&stage.play("artist", "c1", looks(id)).await), ["ok"; 3]);
    assert_eq!(codes(&stage.play("artist", "c2", looks(id)).await), ["not_found"; 3]);
    assert_eq!(codes(&stage.play("wide", "c2", looks(id)).await), ["ok"; 3]);
    for guess in ["art_00000000000000000000000000000000", "", "../owner", &"x".repeat(600)] {
        let found = stage.play("wide", "c2", looks(guess)).await;
        let code = if guess.starts_with("art") || guess.starts_with("..") {
            "not_found"
        } else {
            "invalid_argument"
        };
        assert_eq!(codes(&found), [code; 3], "{guess}");
    }
    // The same id in another workspace is another artifact, or none.
    let mut elsewhere = event("wide", "c1", &looks(id).to_string());
    elsewhere["workspace_id"] = "other".into();
    let run_id = stage.api.send_event(&elsewhere).await.run_id.unwrap();
    let target = format!("/v1/runs/{run_id}/results?workspace_id=other");
    let said = wait_for("the answer", PATIENCE, async || {
        let results = stage.api.get(&target).await["items"].clone();
        let said = results.as_array().unwrap().iter().find(|it| it["type"] == "message.completed");
        said.map(|said| said["data"]["message"]["content"].as_str().unwrap().to_owned())
    });
    let answers: Vec<Value> = serde_json::from_str(&said.await).unwrap();
    assert_eq!(codes(&answers), ["not_found"; 3]);
}

#[tokio::test]
async fn an_upload_is_seen_by_the_run_whose_event_names_it() {
    let stage = Stage::open("").await;
    let free = stage.keep("name=free", b"free").await;
    let for_c2 = stage.keep("conversation_id=c2", b"for c2").await;
    let steps = json!([
        ["call", "artifacts.metadata", {"artifact_id": free}],
        ["call", "artifacts.metadata", {"artifact_id": for_c2}],
    ]);
    assert_eq!(codes(&stage.play("artist", "c1", steps.clone()).await), ["not_found"; 2]);
    let mut naming = event("artist", "c1", &steps.to_string());
    naming["input"]["attachments"] = json!([{"artifact_id": free}, {"artifact_id": for_c2}]);
    // Naming what is another conversation's does not make it one's own.
    assert_eq!(codes(&stage.answers(&naming).await.1), ["ok", "not_found"]);
    assert_eq!(codes(&stage.play("artist", "c2", steps).await), ["not_found", "ok"]);
}

#[tokio::test]
async fn an_event_that_only_names_an_artifact_comes_with_what_the_host_knows_of_it() {
    let stage = Stage::open("").await;
    let picture =
        stage.upload("name=cat.png", "image/png", PNG).await.json()["artifact_id"].clone();
    let other = stage.keep("name=dog.png&conversation_id=c2", PNG).await;
    let mut naming = event("artist", "c1", &json!([["context", "", {}]]).to_string());
    naming["input"]["attachments"] = json!([
        {"artifact_id": picture},
        {"artifact_id": picture, "name": "my cat", "mime_type": "image/x-mine", "size_bytes": 3},
        {"artifact_id": other},
        {"artifact_id": "art_none"},
    ]);
    naming["input"]["contents"] = json!([{"type": "image", "artifact_id": picture}]);
    let answers = stage.answers(&naming).await.1;
    let input = &answers[0]["ok"]["input"];
    let described = json!([
        {"artifact_id": picture, "name": "cat.png", "mime_type": "image/png", "size_bytes": PNG.len(),
            "sha256": input["attachments"][0]["sha256"]},
        // What the sender says of type and size does not count.
        {"artifact_id": picture, "name": "my cat", "mime_type": "image/png", "size_bytes": PNG.len(),
            "sha256": input["attachments"][0]["sha256"]},
        // Nothing is told of what belongs to another conversation, as of what does not exist.
        {"artifact_id": other},
        {"artifact_id": "art_none"},
    ]);
    assert_eq!(input["attachments"], described);
    let shown = json!([{"type": "image", "artifact_id": picture, "mime_type": "image/png",
        "name": "cat.png"}]);
    assert_eq!(input["contents"], shown);
    assert_eq!(stage.api.history("c1").await[0].artifacts.len(), 4);
}

#[tokio::test]
async fn what_a_run_must_not_make_is_refused_and_leaves_nothing() {
    let stage = Stage::open("").await;
    let png = STANDARD.encode(PNG);
    let steps = json!([
        create("x", json!({"name": "../x"})),
        create("x", json!({"name": "a\u{0}b"})),
        create("x", json!({"name": "x".repeat(256)})),
        create("x", json!({"mime_type": "image/png"})),
        create("x", json!({"mime_type": "not a type"})),
        ["call", "artifacts.create", {"content_base64": png, "mime_type": "text/plain"}],
        ["call", "artifacts.create", {"content_base64": "not base64!"}],
        ["call", "artifacts.create", {}],
        create("x", json!({"metadata": {"a": "y".repeat(20_000)}})),
        create("x", json!({"expires_in_s": 0})),
    ]);
    let answers = stage.play("artist", "c", steps).await;
    assert_eq!(codes(&answers), ["invalid_argument"; 10], "{answers:?}");
    assert_eq!(stage.bytes(), (vec![], vec![]));
}

#[tokio::test]
async fn a_disk_that_does_not_take_bytes_is_a_runtime_error() {
    let stage = Stage::open("").await;
    stage.play("artist", "c", json!([])).await;
    std::fs::remove_dir_all(stage.folder().join("incoming")).unwrap();
    let answers = stage.play("artist", "c", json!([create("x", json!({}))])).await;
    assert_eq!(codes(&answers), ["runtime_error"]);
    assert_eq!(answers[0]["error"]["retryable"], true);
    assert_eq!(stage.bytes(), (vec![], vec![]));
}
