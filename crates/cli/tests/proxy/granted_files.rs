//! Granted files of the configuration (seed 000 §4.3; issue 23, point 13): listed, read like artifacts, and frozen for
//! the run.

use crate::stage::{PATIENCE, Stage, event, on_both_databases};
use crate::wire::{Run, Wire};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use greenroom_protocol::ErrorCode;
use greenroom_testkit::wait::wait_for;
use serde_json::{Value, json};
use std::os::unix::fs::symlink;

on_both_databases!(a_granted_file_is_listed_and_read_as_it_was_when_the_run_started);

const AGENTS: &str = r#"
[agents.librarian]
runner = "plugin:test/first/reads"
events = []
grant = { files = ["docs/handbook.md", "docs/logo.png"], artifacts = "none" }

[agents.stranger]
runner = "plugin:test/first/reads"
events = []
grant = { files = [] }

[agents.unasked]
runner = "plugin:test/first/asks_for_none"
events = []
grant = { files = ["docs/handbook.md"] }

[agents.unlucky]
runner = "plugin:test/first/reads"
events = []
grant = { files = ["docs/link.md", "docs/gone.md", "docs", "data/greenroom.db", "docs/handbook.md"] }
"#;

async fn stage(postgres: Option<&str>) -> (Stage, Wire) {
    let stage = Stage::open_on(postgres, &["first"], "", AGENTS).await;
    let docs = stage.host.folder().join("docs");
    std::fs::create_dir(&docs).unwrap();
    std::fs::write(docs.join("handbook.md"), "# Whales\n").unwrap();
    std::fs::write(docs.join("logo.png"), b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01").unwrap();
    symlink("handbook.md", docs.join("link.md")).unwrap();
    let wire = stage.accept("first").await;
    let runner = |name: &str, permissions: Value| {
        json!({"id": format!("plugin:test/first/{name}"), "name": name, "label": name,
            "permissions": permissions})
    };
    let runners = json!([
        runner("reads", json!({"files": ["config"]})),
        runner("asks_for_none", json!({"artifacts": ["metadata", "read"]})),
    ]);
    wire.offer("test/first", runners).await;
    (stage, wire)
}

fn files(run: &Run) -> Vec<Value> {
    run.context["resources"]["files"].as_array().unwrap().clone()
}

async fn read(wire: &Wire, run: &Run, id: &Value) -> Result<String, ErrorCode> {
    let params = json!({"artifact_id": id});
    let range = wire.call_for(&run.id, "artifacts.read_range", params).await;
    let range = range.map_err(|error| error.code)?;
    let bytes = STANDARD.decode(range["data_base64"].as_str().unwrap()).unwrap();
    Ok(String::from_utf8(bytes).unwrap())
}

async fn a_granted_file_is_listed_and_read_as_it_was_when_the_run_started(postgres: Option<&str>) {
    let (stage, wire) = stage(postgres).await;
    let handbook = stage.host.folder().join("docs/handbook.md");
    let run = stage.start(&wire, &event("librarian", "c1")).await;
    let listed = files(&run);
    assert_eq!(listed.len(), 2, "{listed:?}");
    assert_eq!(listed[0]["name"], "handbook.md");
    assert_eq!(listed[0]["size_bytes"], 9);
    assert_eq!(listed[0]["metadata"]["source"], "config");
    assert_eq!(listed[1]["mime_type"], "image/png");
    let id = listed[0]["file_id"].clone();
    // Where the file is concerns the host only.
    let here = stage.host.folder().to_str().unwrap().to_owned();
    assert!(!run.context.to_string().contains(&here), "{}", run.context);
    assert_eq!(run.context["context"]["available_apis"]["artifact_read"], true);
    assert_eq!(read(&wire, &run, &id).await.unwrap(), "# Whales\n");
    let metadata = wire.call_for(&run.id, "artifacts.metadata", json!({"artifact_id": id})).await;
    let metadata = metadata.unwrap();
    assert_eq!(metadata["sha256"], listed[0]["metadata"]["sha256"]);
    assert_eq!((&metadata["name"], &metadata["size_bytes"]), (&json!("handbook.md"), &json!(9)));
    let streamed =
        wire.call_for(&run.id, "artifacts.open_stream", json!({"artifact_id": id})).await;
    assert_eq!(streamed.unwrap()["size_bytes"], 9);
    // The file changes, then disappears: the run still has what it started with.
    std::fs::write(&handbook, "# Dolphins and others\n").unwrap();
    assert_eq!(read(&wire, &run, &id).await.unwrap(), "# Whales\n");
    let next = stage.start(&wire, &event("librarian", "c2")).await;
    assert_eq!(files(&next)[0]["file_id"], id);
    assert_eq!(read(&wire, &next, &id).await.unwrap(), "# Dolphins and others\n");
    std::fs::remove_file(&handbook).unwrap();
    assert_eq!(read(&wire, &next, &id).await.unwrap(), "# Dolphins and others\n");
    assert_eq!(read(&wire, &run, &id).await.unwrap(), "# Whales\n");
    stage.end(&wire, &next).await;
    // A run without the grant finds nothing behind the id.
    let stranger = stage.start(&wire, &event("stranger", "c3")).await;
    assert_eq!(files(&stranger), [] as [Value; 0]);
    assert_eq!(read(&wire, &stranger, &id).await.unwrap_err(), ErrorCode::Unauthorized);
    stage.end(&wire, &stranger).await;
    // With a granted file, other artifacts stay out of reach.
    let foreign = json!(stage.upload("conversation_id=c1", "secret").await);
    assert_eq!(read(&wire, &run, &foreign).await.unwrap_err(), ErrorCode::NotFound);
    stage.end(&wire, &run).await;
    // Reads are recorded in batches.
    wait_for("the records of seven reads", PATIENCE, async || {
        let audit = stage.audit("default").await;
        (audit.iter().filter(|record| record["resource"] == id).count() >= 7).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_that_does_not_ask_for_files_gets_none() {
    let (stage, wire) = stage(None).await;
    let asked = stage.start(&wire, &event("librarian", "c1")).await;
    let id = files(&asked)[0]["file_id"].clone();
    stage.end(&wire, &asked).await;
    let run = stage.start(&wire, &event("unasked", "c1")).await;
    assert_eq!(files(&run), [] as [Value; 0]);
    assert_eq!(read(&wire, &run, &id).await.unwrap_err(), ErrorCode::NotFound);
    stage.end(&wire, &run).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_cannot_be_read_is_left_out_and_the_run_says_so() {
    let (stage, wire) = stage(None).await;
    let run = stage.start(&wire, &event("unlucky", "c1")).await;
    let names: Vec<Value> = files(&run).iter().map(|file| file["name"].clone()).collect();
    assert_eq!(names, ["handbook.md"]);
    stage.end(&wire, &run).await;
    let view = stage.api.run(&run.id).await;
    let notes = view.extra["diagnostics"].as_array().unwrap().clone();
    let about: Vec<&str> = notes.iter().map(|note| note["message"].as_str().unwrap()).collect();
    assert_eq!(notes.len(), 4, "{about:?}");
    assert!(notes.iter().all(|note| note["kind"] == "file.unavailable"), "{notes:?}");
    for (name, reason) in [
        ("docs/link.md", "cannot be read"),
        ("docs/gone.md", "cannot be read"),
        ("docs", "it is not a file"),
        ("data/greenroom.db", "belongs to the host itself"),
    ] {
        let start = format!("the granted file `{name}` ");
        let said = about.iter().find(|message| message.starts_with(&start)).unwrap();
        assert!(said.contains(reason), "{said}");
    }
}
