//! What a run's owner can see of state, storage, artifacts, actions and approvals: the same before and after a
//! call without an effect.
//!
//! Invariant: read through the API alone, by a run of the owner's own.

use crate::calls::Target;
use crate::stage::Stage;
use crate::wire::{Run, Wire};
use greenroom_testkit::receiver::Received;
use serde_json::{Value, json};
use std::path::Path;

/// A word that stands in everything that was put there for nobody else to see.
pub(crate) const MARK: &str = "xylophone";

const SCOPES: [&str; 5] = ["conversation", "actor", "subject", "runner", "binding"];
const AREAS: [&str; 3] = ["plugin", "binding", "workspace"];

/// What was put there.
#[derive(Debug, Clone)]
pub(crate) struct Seeds {
    pub event: String,
    pub artifact: String,
    pub facts: Value,
}

impl Seeds {
    pub(crate) fn target(&self) -> Target {
        Target::new(&self.event, &self.artifact)
    }
}

/// Leaves something under every owner that the event's run has, and looks at all of it.
pub(crate) async fn seed(stage: &Stage, wire: &Wire, event: &Value) -> Seeds {
    let mut event = event.clone();
    event["input"]["text"] = format!("whales and a {MARK}").into();
    let run = stage.start(wire, &event).await;
    for scope in SCOPES {
        let params = json!({"scope": scope, "key": "seed", "value": MARK});
        wire.call_for(&run.id, "state.set", params).await.unwrap();
    }
    // The mark as base64: what `xylophone` is to a storage value.
    for area in AREAS {
        let params = json!({"area": area, "key": "seed", "value": "eHlsb3Bob25l"});
        wire.call_for(&run.id, "storage.set", params).await.unwrap();
    }
    let params = json!({"name": format!("{MARK}.txt"), "content_base64": "eHlsb3Bob25l"});
    let artifact = wire.call_for(&run.id, "artifacts.create", params).await.unwrap();
    let event = run.context["event"]["event_id"].as_str().unwrap().to_owned();
    let artifact = artifact["artifact_id"].as_str().unwrap().to_owned();
    let facts = seen_by(stage, wire, &run).await;
    stage.end(wire, &run).await;
    Seeds { event, artifact, facts }
}

/// Everything that a fresh run of this event sees.
pub(crate) async fn seen(stage: &Stage, wire: &Wire, event: &Value) -> Value {
    let run = stage.start(wire, event).await;
    let facts = seen_by(stage, wire, &run).await;
    stage.end(wire, &run).await;
    facts
}

pub(crate) async fn seen_by(stage: &Stage, wire: &Wire, run: &Run) -> Value {
    let mut facts = json!({});
    for scope in SCOPES {
        let params = json!({"scope": scope});
        facts["state"][scope] = listed(wire, run, "state.list", params).await;
    }
    for area in AREAS {
        let params = json!({"area": area});
        facts["storage"][area] = listed(wire, run, "storage.list", params).await;
    }
    facts["outside"] = outside(stage).await;
    facts
}

/// The items of a list; a refusal is its code.
async fn listed(wire: &Wire, run: &Run, method: &str, params: Value) -> Value {
    match wire.call_for(&run.id, method, params).await {
        Ok(page) => page["items"].clone(),
        Err(error) => error.code.as_str().into(),
    }
}

/// What is seen without a run: actions and questions in the log, requests at the surface, bytes that are kept.
pub(crate) async fn outside(stage: &Stage) -> Value {
    let events = stage.api.events().await;
    let is_effect = |event: &&Value| {
        let kind = event["event_type"].as_str().unwrap();
        kind.starts_with("action.") || kind.starts_with("approval.")
    };
    // The host itself tells the surface of a run that failed.
    let is_action = |it: &&Received| {
        ["message.send", "message.react"].iter().any(|action| it.payload["type"] == *action)
    };
    json!({
        "effects": events.iter().filter(is_effect).count(),
        "approvals": stage.api.get("/v1/approvals").await["items"],
        "deliveries": stage.receiver.received().iter().filter(is_action).count(),
        "objects": files(&stage.host.data().join("artifacts")),
    })
}

fn files(folder: &Path) -> usize {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| if entry.path().is_dir() { files(&entry.path()) } else { 1 }).sum()
}
