//! Static parts of the context by reference (seed 003 §6; issue 23, point 12): the same content has the same reference in
//! every run, and the run reads the bytes behind it.

use crate::stage::{Stage, event, on_both_databases};
use crate::wire::{Run, Wire};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use greenroom_protocol::ErrorCode;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

on_both_databases!(references_are_the_same_for_the_same_content_and_resolve_to_it);

const AGENTS: &str = r#"
[agents.clerk]
runner = "plugin:test/first/asks"
events = []
config = { prompt = "You are a clerk." }
grant = { modules = ["memory.read"], skills = ["memory"] }

[agents.quiet]
runner = "plugin:test/first/says_nothing"
events = []
grant = { modules = ["memory.read"] }

[agents.stubborn]
runner = "plugin:test/first/declines"
events = []
grant = { modules = ["memory.read"] }

[agents.blind]
runner = "plugin:test/first/may_not_look"
events = []
grant = { modules = ["memory.read"] }
"#;

/// Runners that say differently whether they want references, and may look up differently much.
fn runners() -> Value {
    let runner = |name: &str, context: Value, permissions: Value| {
        json!({"id": format!("plugin:test/first/{name}"), "name": name, "label": name,
            "context": context, "permissions": permissions})
    };
    let all = json!({"tools": ["detail", "call"], "artifacts": ["metadata", "read"]});
    json!([
        runner("asks", json!({"wants_static_context_refs": true}), all.clone()),
        runner("says_nothing", json!({}), all.clone()),
        runner("declines", json!({"wants_static_context_refs": false}), all),
        runner(
            "may_not_look",
            json!({"wants_static_context_refs": true}),
            json!({"tools": ["call"]})
        ),
    ])
}

async fn stage(postgres: Option<&str>) -> (Stage, Wire) {
    let stage = Stage::open_on(postgres, &["first"], "", AGENTS).await;
    let wire = stage.accept("first").await;
    wire.offer("test/first", runners()).await;
    (stage, wire)
}

fn references(run: &Run) -> Value {
    run.context["runtime"]["static_refs"].clone()
}

async fn bytes(wire: &Wire, run: &Run, id: &str) -> Vec<u8> {
    let params = json!({"artifact_id": id, "length": 1_000_000});
    let range = wire.call_for(&run.id, "artifacts.read_range", params).await.unwrap();
    assert_eq!(range["eof"], true);
    STANDARD.decode(range["data_base64"].as_str().unwrap()).unwrap()
}

async fn references_are_the_same_for_the_same_content_and_resolve_to_it(postgres: Option<&str>) {
    let (stage, wire) = stage(postgres).await;
    let first = stage.start(&wire, &event("clerk", "c1")).await;
    let kinds: Vec<String> = references(&first).as_object().unwrap().keys().cloned().collect();
    assert_eq!(kinds, ["grant", "instructions", "skills", "tools"]);
    let mut contents = Vec::new();
    for kind in &kinds {
        let reference = &references(&first)[kind];
        assert_eq!(reference["kind"], *kind);
        let id = reference["artifact_id"].as_str().unwrap();
        let content = bytes(&wire, &first, id).await;
        let hash: String = Sha256::digest(&content).iter().map(|it| format!("{it:02x}")).collect();
        assert_eq!(reference["hash"], format!("sha256:{hash}"));
        contents.push(content);
    }
    assert_eq!(contents[1], b"You are a clerk.");
    let tools: Value = serde_json::from_slice(&contents[3]).unwrap();
    assert_eq!(tools[0][0], "project_cli");
    let detail = json!({"tool_name": "project_cli"});
    let detail = wire.call_for(&first.id, "tools.get_detail", detail).await.unwrap();
    assert_eq!(tools[0][2], detail["parameters"]);
    let skills: Value = serde_json::from_slice(&contents[2]).unwrap();
    assert_eq!(skills[0]["name"], "memory");
    let grant: Value = serde_json::from_slice(&contents[0]).unwrap();
    assert_eq!(grant["methods"], json!(["memory.read"]));
    assert_eq!(grant.get("config"), None);
    stage.end(&wire, &first).await;
    // Another conversation, the same content.
    let second = stage.start(&wire, &event("clerk", "c2")).await;
    assert_eq!(references(&second), references(&first));
    let id = references(&first)["tools"]["artifact_id"].as_str().unwrap().to_owned();
    assert_eq!(bytes(&wire, &second, &id).await, contents[3]);
    let metadata = wire.call_for(&second.id, "artifacts.metadata", json!({"artifact_id": id}));
    assert_eq!(metadata.await.unwrap()["mime_type"], "application/json");
    stage.end(&wire, &second).await;
    // A run resolves its own references only.
    let other = stage.start(&wire, &event("quiet", "c1")).await;
    let id = references(&first)["instructions"]["artifact_id"].clone();
    let refused = wire.call_for(&other.id, "artifacts.read_range", json!({"artifact_id": id}));
    assert_eq!(refused.await.unwrap_err().code, ErrorCode::NotFound);
    stage.end(&wire, &other).await;
    // A changed instruction has another reference; nothing else changes.
    stage.reconfigure("", &AGENTS.replace("a clerk", "a judge"), "changed").await;
    let third = stage.start(&wire, &event("clerk", "c1")).await;
    let (before, after) = (references(&first), references(&third));
    assert_ne!(after["instructions"], before["instructions"]);
    assert_eq!(after["tools"], before["tools"]);
    assert_eq!(after["grant"], before["grant"]);
    stage.end(&wire, &third).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_that_asks_for_references_gets_tools_without_schemas() {
    let (stage, wire) = stage(None).await;
    let tool = |run: &Run| run.context["resources"]["tools"][0].clone();
    let asks = stage.start(&wire, &event("clerk", "c1")).await;
    let by_reference = tool(&asks);
    assert_eq!(by_reference["parameters"], json!({}));
    assert!(by_reference["description"].as_str().unwrap().contains("memory.read"));
    let hash = by_reference["metadata"]["ref"]["hash"].as_str().unwrap();
    assert!(hash.starts_with("sha256:"), "{by_reference}");
    let detail = json!({"tool_name": "project_cli"});
    let detail = wire.call_for(&asks.id, "tools.get_detail", detail).await.unwrap();
    assert_eq!(detail["parameters"]["type"], "object", "{detail}");
    stage.end(&wire, &asks).await;
    // Its name is known, so it can be called as ever.
    for (agent, refs) in [("quiet", true), ("stubborn", false), ("blind", true)] {
        let run = stage.start(&wire, &event(agent, "c1")).await;
        assert_eq!(tool(&run)["parameters"], detail["parameters"], "{agent}");
        assert_eq!(references(&run).get("tools").is_some(), refs, "{agent}");
        stage.end(&wire, &run).await;
    }
    // Without the right to read artifacts a reference is a hash alone.
    let blind = stage.start(&wire, &event("blind", "c2")).await;
    assert_eq!(references(&blind)["tools"].get("artifact_id"), None);
    stage.end(&wire, &blind).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_session_key_is_the_same_in_a_session_and_in_no_other() {
    let (stage, wire) = stage(None).await;
    let key = async |event: Value| {
        let run = stage.start(&wire, &event).await;
        stage.end(&wire, &run).await;
        run.context["context"]["session_key"].clone()
    };
    let first = key(event("clerk", "c1")).await;
    assert_eq!(first.as_str().unwrap().len(), 32);
    assert_eq!(key(event("clerk", "c1")).await, first);
    let with = |field: &str| {
        let mut event = event("clerk", "c1");
        event[field] = "other".into();
        event
    };
    let others = [with("thread_id"), with("bot_id"), event("clerk", "c2"), event("quiet", "c1")];
    for other in others {
        assert_ne!(key(other.clone()).await, first, "{other}");
    }
    let mut alone = event("clerk", "c1");
    alone.as_object_mut().unwrap().remove("conversation_id");
    let run = stage.start(&wire, &alone).await;
    assert_eq!(run.context["context"].get("session_key"), None);
    stage.end(&wire, &run).await;
}
