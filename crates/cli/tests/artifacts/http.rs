//! Bytes over HTTP: in, out, in parts, and for whom.

use crate::stage::{LIMITED, PNG, READER, Stage, event, upload};
use greenroom_testkit::http::Request;
use serde_json::json;

#[tokio::test]
async fn bytes_come_back_as_an_attachment_of_their_type() {
    let stage = Stage::open("").await;
    let reply = stage.upload("name=%E5%9B%BE.png&conversation_id=c1", "image/png", PNG).await;
    assert_eq!(reply.status, 201);
    let view = reply.json();
    let id = view["artifact_id"].as_str().unwrap();
    assert_eq!(view["sha256"].as_str().unwrap().len(), 64);
    let expected = json!({"artifact_id": id, "name": "图.png", "mime_type": "image/png",
        "size_bytes": PNG.len(), "sha256": view["sha256"], "conversation_id": "c1", "run_id": null,
        "agent": null, "created_at": view["created_at"], "expires_at": null, "metadata": {}});
    assert_eq!(view, expected);
    let metadata = stage.ask(Request::get(format!("/v1/artifacts/{id}/metadata"))).await;
    assert_eq!(metadata.json(), expected);
    let reply = stage.download(id).await;
    assert_eq!((reply.status, reply.body.as_slice()), (200, PNG));
    let tag = format!("\"{}\"", view["sha256"].as_str().unwrap());
    for (name, value) in [
        ("content-type", "image/png"),
        ("content-length", "20"),
        ("accept-ranges", "bytes"),
        ("x-content-type-options", "nosniff"),
        ("etag", &tag),
        ("content-disposition", "attachment; filename=\"_.png\"; filename*=UTF-8''%E5%9B%BE.png"),
    ] {
        assert_eq!(reply.header(name), Some(value), "{name}");
    }
    let known = Request::get(format!("/v1/artifacts/{id}")).header("if-none-match", tag);
    let reply = stage.ask(known).await;
    assert_eq!((reply.status, reply.body.len()), (304, 0));
}

#[tokio::test]
async fn parts_are_given_as_asked() {
    let stage = Stage::open("").await;
    let bytes: Vec<u8> = (0..1_000_000_u32).map(|at| (at % 251) as u8).collect();
    let id = stage.keep("", &bytes).await;
    let ask =
        |range: &str| stage.ask(Request::get(format!("/v1/artifacts/{id}")).header("range", range));
    for (range, start, end) in [
        ("bytes=0-99", 0, 100),
        ("bytes=999990-", 999_990, 1_000_000),
        ("bytes=-5", 999_995, 1_000_000),
        ("bytes=500000-9999999", 500_000, 1_000_000),
    ] {
        let reply = ask(range).await;
        let answered = format!("bytes {start}-{}/1000000", end - 1);
        assert_eq!((reply.status, reply.header("content-range")), (206, Some(answered.as_str())));
        assert_eq!(reply.body, bytes[start..end], "{range}");
    }
    let reply = ask("bytes=1000000-").await;
    reply.refused(416, "invalid_argument");
    assert_eq!(reply.header("content-range"), Some("bytes */1000000"));
    assert_eq!(ask("bytes=0-1,3-4").await.status, 200);
    assert_eq!(stage.download(&id).await.body, bytes);
}

#[tokio::test]
async fn the_same_bytes_are_kept_once_and_gone_with_the_last_artifact() {
    let stage = Stage::open("").await;
    let lasting = stage.keep("", b"the same bytes").await;
    let passing = stage.keep("expires_in_s=1", b"the same bytes").await;
    let alone = stage.keep("expires_in_s=1", b"other bytes").await;
    assert_eq!(stage.bytes().0.len(), 2);
    for id in [passing, alone] {
        greenroom_testkit::wait::wait_for("the expiry", crate::stage::PATIENCE, async || {
            (stage.download(&id).await.status == 404).then_some(())
        })
        .await;
    }
    greenroom_testkit::wait::wait_for("the collection", crate::stage::PATIENCE, async || {
        (stage.bytes().0.len() == 1).then_some(())
    })
    .await;
    assert_eq!(stage.download(&lasting).await.body, b"the same bytes");
}

#[tokio::test]
async fn a_token_sees_what_its_agents_were_given_and_made() {
    let stage = Stage::open("").await;
    stage.ask_as(READER, upload("", "text/plain", b"x")).await.refused(403, "unauthorized");
    stage.ask_as("nobody", upload("", "text/plain", b"x")).await.refused(401, "unauthorized");
    let reply = stage.ask_as(LIMITED, upload("", "text/plain", b"mine")).await;
    assert_eq!(reply.status, 201);
    let given = reply.json()["artifact_id"].as_str().unwrap().to_owned();
    let get = |id: &str| Request::get(format!("/v1/artifacts/{id}"));
    // In no conversation yet: for its sender, and for those who may reach every agent.
    assert_eq!(stage.ask_as(LIMITED, get(&given)).await.body, b"mine");
    assert_eq!(stage.ask_as(READER, get(&given)).await.body, b"mine");
    let foreign = stage.keep("", b"foreign").await;
    for (agent, id) in [("artist", &given), ("wide", &foreign)] {
        let mut event = event(agent, "c", "[]");
        event["input"]["attachments"] = json!([{"artifact_id": id}]);
        stage.answers(&event).await;
    }
    // Both are in a conversation of the admin now.
    stage.ask_as(LIMITED, get(&given)).await.refused(404, "not_found");
    stage.ask_as(LIMITED, get(&foreign)).await.refused(404, "not_found");
    let metadata = Request::get(format!("/v1/artifacts/{foreign}/metadata"));
    stage.ask_as(LIMITED, metadata).await.refused(404, "not_found");
    let elsewhere = Request::get(format!("/v1/artifacts/{given}?workspace_id=other"));
    stage.ask(elsewhere).await.refused(404, "not_found");
}
