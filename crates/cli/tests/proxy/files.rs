//! Files of a run and of an event: everything large is an artifact, every artifact reaches its reader (issue 23,
//! points 6, 10 and 11).

use crate::stage::{ALL, Stage, agent, event, on_both_databases};
use crate::wire::{Run, Wire};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use greenroom_protocol::ErrorCode;
use greenroom_testkit::http::{Request, send};
use greenroom_testkit::wait::wait_for;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::net::SocketAddr;
use std::time::Duration;

on_both_databases!(
    a_created_artifact_reaches_its_readers,
    large_parts_of_an_event_are_artifacts,
    an_artifact_is_uploaded_in_parts,
);

async fn stage(postgres: Option<&str>) -> (Stage, Wire) {
    let agents = agent("all", "plugin:test/first/main", "", ALL);
    let stage = Stage::open_on(postgres, &["first"], "", &agents).await;
    let wire = stage.connect("first").await;
    (stage, wire)
}

/// Reads a path of the host without a token.
async fn without_token(stage: &Stage, path: &str) -> (u16, Vec<u8>) {
    let place = std::fs::read_to_string(stage.host.data().join("host.json")).unwrap();
    let place: Value = serde_json::from_str(&place).unwrap();
    let address: SocketAddr = place["address"].as_str().unwrap().parse().unwrap();
    let response = send(address, &Request::get(path)).await.unwrap();
    (response.status, response.body().await.unwrap().to_vec())
}

async fn a_created_artifact_reaches_its_readers(postgres: Option<&str>) {
    let (stage, wire) = stage(postgres).await;
    let run = stage.start(&wire, &event("all", "c")).await;
    let file = json!({"name": "whales.txt", "content_base64": STANDARD.encode("whales")});
    let made = wire.call_for(&run.id, "artifacts.create", file).await.unwrap();
    let id = made["artifact_id"].as_str().unwrap();
    // What the runner claims about it does not count.
    let claimed = json!({"artifact_id": id, "size_bytes": 3, "mime_type": "image/png"});
    wire.result(&run, "artifact.created", claimed).await;
    let inline = json!({"name": "b.txt", "content_base64": STANDARD.encode("bees")});
    wire.result(&run, "artifact.created", inline).await;
    wire.result(&run, "artifact.created", json!({"artifact_id": "art_made_up"})).await;
    wire.result(&run, "artifact.created", json!({"name": "nothing"})).await;
    stage.end(&wire, &run).await;
    let view = stage.api.run(&run.id).await;
    let notes = view.extra["diagnostics"].as_array().unwrap().clone();
    assert_eq!(notes.len(), 2, "{notes:?}");
    assert!(notes.iter().all(|note| note["kind"] == "refused_result"), "{notes:?}");
    let results = stage.api.results(&run.id).await;
    let told = results.iter().find(|it| it.kind == "artifact.created").unwrap();
    assert_eq!(json!(told.data)["size_bytes"], 6);
    assert_eq!(json!(told.data)["mime_type"], "text/plain");
    // The next run finds both in its history.
    let next = stage.start(&wire, &event("all", "c")).await;
    let params = json!({"include_artifacts": true});
    let page = wire.call_for(&next.id, "history.page", params).await.unwrap();
    let listed: Vec<&Value> = page["items"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|item| item["artifacts"].as_array().unwrap())
        .map(|artifact| &artifact["name"])
        .collect();
    assert_eq!(listed, ["whales.txt", "b.txt"]);
    stage.end(&wire, &next).await;
    // The surface gets both, with an address that needs no token, is signed and ends.
    let files = wait_for("both files", Duration::from_secs(30), async || {
        let received = stage.receiver.received();
        let files = received.iter().filter(|it| it.payload["type"] == "artifact.created");
        let files: Vec<Value> = files.map(|it| it.payload["artifact"].clone()).collect();
        (files.len() == 2).then_some(files)
    })
    .await;
    assert_eq!((&files[0]["artifact_id"], &files[0]["name"]), (&json!(id), &json!("whales.txt")));
    assert_eq!(files[0]["sha256"], made["sha256"]);
    let url = files[0]["url"].as_str().unwrap();
    assert_eq!(without_token(&stage, url).await, (200, b"whales".to_vec()));
    let cut = url[..url.len() - 4].to_owned();
    let refused = [url.replace("files/", "files/A"), cut, format!("/v1/artifacts/{id}")];
    for (path, status) in refused.iter().zip([404, 404, 401]) {
        assert_eq!(without_token(&stage, path).await.0, status, "{path}");
    }
    assert!(files[0]["expires_at"].is_string());
}

async fn large_parts_of_an_event_are_artifacts(postgres: Option<&str>) {
    let (stage, wire) = stage(postgres).await;
    let large = "x".repeat(70_000);
    let png: Vec<u8> =
        b"\x89PNG\r\n\x1a\n".iter().copied().chain(std::iter::repeat_n(7, 40_000)).collect();
    let address = format!("data:image/png;base64,{}", STANDARD.encode(&png));
    let mut sent = event("all", "c");
    sent["input"]["message_chain"] =
        json!({"parts": [{"type": "Image", "base64": address}], "note": "small"});
    sent["input"]["contents"] =
        json!([{"type": "image", "url": address, "mime_type": "image/png"}]);
    sent["subject"]["data"] = json!({"big": large, "small": 1});
    sent["actor"]["metadata"] = json!({"big": large, "small": 2});
    sent["metadata"] = json!({"big": large, "message_id": "m1"});
    let run = stage.start(&wire, &sent).await;
    assert!(run.context.to_string().len() < 32_000, "{}", run.context.to_string().len());
    let read = async |id: &Value| {
        let params = json!({"artifact_id": id, "length": 100_000});
        let read = wire.call_for(&run.id, "artifacts.read_range", params).await.unwrap();
        STANDARD.decode(read["data_base64"].as_str().unwrap()).unwrap()
    };
    let content = &run.context["input"]["contents"][0];
    assert_eq!(content.get("url"), None);
    assert_eq!(read(&content["artifact_id"]).await, png);
    let chain = &run.context["input"]["message_chain"];
    assert_eq!(chain["note"], "small");
    let reference = chain["parts"][0]["base64"].as_str().unwrap();
    let id = reference.strip_prefix("artifact:").unwrap();
    assert_eq!(read(&json!(id)).await, png);
    let parts = [
        (&run.context["subject"]["data"], "small", json!(1)),
        (&run.context["actor"]["metadata"], "small", json!(2)),
        (&run.context["metadata"], "message_id", json!("m1")),
    ];
    for (object, key, value) in parts {
        assert_eq!(object[key], value);
        assert_eq!(object["big"]["truncated"], true, "{object}");
        let stored = read(&object["big"]["artifact"]["artifact_id"]).await;
        assert_eq!(serde_json::from_slice::<Value>(&stored).unwrap(), large);
    }
    stage.end(&wire, &run).await;
    // What a sender claims about an attachment never stands over what is stored.
    let id = stage.upload("name=a.txt", "hello").await;
    let mut sent = event("all", "c");
    sent["input"]["attachments"] = json!([{"artifact_id": id, "mime_type": "image/png",
        "size_bytes": 1, "sha256": "00"}]);
    sent["input"]["contents"] =
        json!([{"type": "file", "artifact_id": id, "mime_type": "image/png"}]);
    let run = stage.start(&wire, &sent).await;
    let attached = &run.context["input"]["attachments"][0];
    let hash = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";
    assert_eq!(
        (&attached["mime_type"], &attached["size_bytes"]),
        (&json!("text/plain"), &json!(5))
    );
    assert_eq!(attached["sha256"], hash);
    assert_eq!(run.context["input"]["contents"][0]["mime_type"], "text/plain");
    stage.end(&wire, &run).await;
}

/// Appends one part.
async fn append(wire: &Wire, run: &Run, upload: &Value, offset: usize, part: &[u8]) -> u64 {
    let params =
        json!({"upload_id": upload, "offset": offset, "data_base64": STANDARD.encode(part)});
    let answer = wire.call_for(&run.id, "artifacts.append", params).await.unwrap();
    answer["size_bytes"].as_u64().unwrap()
}

async fn an_artifact_is_uploaded_in_parts(postgres: Option<&str>) {
    let (stage, wire) = stage(postgres).await;
    let run = stage.start(&wire, &event("all", "c")).await;
    // More than a line, let alone a call, may hold.
    let whole: Vec<u8> = (0..12_000_000_u32).map(|n| (n.wrapping_mul(n) >> 7) as u8).collect();
    let begun = json!({"name": "large.bin", "mime_type": "application/octet-stream",
        "size_bytes": whole.len()});
    let begun = wire.call_for(&run.id, "artifacts.begin", begun).await.unwrap();
    let upload = &begun["upload_id"];
    let part_bytes = usize::try_from(begun["part_bytes_max"].as_u64().unwrap()).unwrap();
    let mut sent = 0;
    for part in whole.chunks(part_bytes.min(3_000_000)) {
        let size = append(&wire, &run, upload, sent, part).await;
        sent += part.len();
        assert_eq!(size, sent as u64);
    }
    let again = json!({"upload_id": upload, "offset": 0, "data_base64": "AA=="});
    let refused = wire.call_for(&run.id, "artifacts.append", again).await.unwrap_err();
    assert_eq!(refused.code, ErrorCode::InvalidArgument);
    assert_eq!(refused.details["size_bytes"], sent);
    let hash: String = Sha256::digest(&whole).iter().map(|byte| format!("{byte:02x}")).collect();
    let commit = json!({"upload_id": upload, "sha256": hash, "size_bytes": sent});
    let made = wire.call_for(&run.id, "artifacts.commit", commit.clone()).await.unwrap();
    assert_eq!((&made["sha256"], &made["size_bytes"]), (&json!(hash), &json!(sent)));
    let twice = wire.call_for(&run.id, "artifacts.commit", commit).await.unwrap_err();
    assert_eq!(twice.code, ErrorCode::NotFound);
    // Bytes that are not what was promised are not stored.
    let begun = wire.call_for(&run.id, "artifacts.begin", json!({})).await.unwrap();
    append(&wire, &run, &begun["upload_id"], 0, b"other").await;
    let commit = json!({"upload_id": begun["upload_id"], "sha256": hash});
    let refused = wire.call_for(&run.id, "artifacts.commit", commit).await.unwrap_err();
    assert_eq!(refused.code, ErrorCode::InvalidArgument);
    // An upload is its run's own.
    let begun = wire.call_for(&run.id, "artifacts.begin", json!({})).await.unwrap();
    let other = stage.start(&wire, &event("all", "d")).await;
    let params = json!({"upload_id": begun["upload_id"], "data_base64": "AA=="});
    let refused = wire.call_for(&other.id, "artifacts.append", params).await.unwrap_err();
    assert_eq!(refused.code, ErrorCode::NotFound);
    stage.end(&wire, &other).await;
    stage.end(&wire, &run).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_is_too_large_is_refused_and_the_run_goes_on() {
    let (stage, wire) = stage(None).await;
    let run = stage.start(&wire, &event("all", "c")).await;
    // Over `call_bytes` and over `line_bytes`, which are 8 MiB each.
    for bytes in [8_300_000, 9_000_000, 20_000_000] {
        let params = json!({"scope": "runner", "key": "k", "value": "x".repeat(bytes)});
        let refused = wire.call_for(&run.id, "state.set", params).await.unwrap_err();
        assert_eq!(refused.code, ErrorCode::PayloadTooLarge, "{bytes}: {refused:?}");
    }
    let params = json!({"scope": "runner", "key": "k", "value": "small"});
    wire.call_for(&run.id, "state.set", params).await.unwrap();
    stage.end(&wire, &run).await;
    let refused = wait_for("the records", Duration::from_secs(30), async || {
        let records = stage.audit("default").await;
        let refused = records.into_iter().filter(|it| it["code"] == "payload_too_large");
        let refused: Vec<Value> = refused.collect();
        (refused.len() == 3).then_some(refused)
    })
    .await;
    assert!(
        refused.iter().all(|it| it["method"] == "state.set" && it["run_id"] == run.id.as_str())
    );
}
