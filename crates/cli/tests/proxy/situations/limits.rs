//! Too large, too often, too late.
//!
//! Invariant: limits are lowered in the configuration, never waited for; a bucket is drained by one dear call.

use super::{ALPHA, STEER};
use crate::calls::Target;
use crate::facts::{seed, seen};
use crate::matrix::Probe;
use crate::stage::{ALL, Stage, agent, event};
use greenroom_protocol::ErrorCode::PayloadTooLarge;
use greenroom_protocol::RunStatus;
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn what_is_too_large_is_not_taken() {
    let limits = "call_bytes = 4096\nstate_value_bytes = 1024\nstorage_value_bytes = 1024\n\
                  artifact_bytes = 1024\nresponse_bytes = 1024";
    let mut stage = Stage::open(&["alpha"], limits, &agent("full", ALPHA, STEER, ALL)).await;
    let alpha = stage.connect("alpha").await;
    let seeds = seed(&stage, &alpha, &event("full", "c")).await;
    let run = stage.start(&alpha, &event("full", "c")).await;
    let mut probe = Probe::new(&stage, &alpha, "alpha").claiming(&run.id);
    let more = json!({"padding": "x".repeat(5000)});
    probe.column("oversized", &Target { more, ..seeds.target() }).await;
    let blob = "eHh4".repeat(500);
    let each = [
        ("state.set", json!({"scope": "conversation", "key": "k", "value": "x".repeat(1500)})),
        ("storage.set", json!({"area": "plugin", "key": "k", "value": blob})),
        ("artifacts.create", json!({"content_base64": blob})),
        (
            "platform.request_action",
            json!({"action": "message.send", "payload": {"text": "x".repeat(2001)}}),
        ),
    ];
    for (method, params) in each {
        assert_eq!(probe.call(method, params).await.unwrap_err().code, PayloadTooLarge, "{method}");
    }
    // An answer can be too large as well.
    let key = json!({"area": "plugin", "key": "large"});
    let large = json!({"area": "plugin", "key": "large", "value": "eHh4".repeat(300)});
    probe.call("storage.set", large).await.unwrap();
    let refused = probe.call("storage.get", key.clone()).await.unwrap_err();
    assert_eq!(refused.code, PayloadTooLarge);
    probe.call("storage.delete", key).await.unwrap();
    probe.assert_audited().await;
    stage.end(&alpha, &run).await;
    assert_eq!(seen(&stage, &alpha, &event("full", "c")).await, seeds.facts);
    stage.assert_sound();
}

/// A bucket of one unit per second that one call drains for long enough.
async fn over_rate(situation: &str, limits: &str, claim: impl Fn(&str) -> Option<String>) {
    let agents = agent("full", ALPHA, STEER, ALL);
    let mut stage = Stage::open(&["alpha"], "", &agents).await;
    let alpha = stage.connect("alpha").await;
    let seeds = seed(&stage, &alpha, &event("full", "c")).await;
    let run = stage.start(&alpha, &event("full", "c")).await;
    stage.reconfigure(limits, &agents, "limited").await;
    let mut own = Probe::new(&stage, &alpha, "alpha").claiming(&run.id);
    // How dear a search is does not matter, as long as it is dearer than a look-up.
    let drain = own.call("history.search", json!({"query": "whales"})).await;
    assert!(drain.is_ok(), "a full bucket lets one call through: {drain:?}");
    let mut probe = Probe::new(&stage, &alpha, "alpha");
    probe.run_id = claim(&run.id);
    if probe.run_id == own.run_id {
        own.column(situation, &seeds.target()).await;
    } else {
        probe.column(situation, &seeds.target()).await;
        probe.assert_audited().await;
    }
    own.assert_audited().await;
    // Buckets do not outlive the host.
    stage.reconfigure("", &agents, "unlimited").await;
    stage.host.kill();
    stage.host.start_again().await;
    let alpha = stage.connect("alpha").await;
    stage.api.ended_run(&run.id).await;
    assert_eq!(seen(&stage, &alpha, &event("full", "c")).await, seeds.facts);
    stage.assert_sound();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_calls_too_often_is_told_to_wait() {
    over_rate("rate_run", "calls_per_s_run = 1", |run_id| Some(run_id.to_owned())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_that_calls_too_often_is_told_to_wait() {
    over_rate("rate_plugin", "calls_per_s_plugin = 1", |run_id| Some(run_id.to_owned())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_cannot_call_more_often_by_naming_other_runs() {
    over_rate("rate_plugin", "calls_per_s_plugin = 1", |_| Some("run_made_up".to_owned())).await;
    over_rate("rate_plugin", "calls_per_s_plugin = 1", |_| None).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_past_its_deadline_does_nothing_more_and_is_told_why() {
    let hasty = |deadline_s: u64| {
        agent("hasty", ALPHA, &format!("queue = \"steer\"\ndeadline_s = {deadline_s}"), ALL)
    };
    let mut stage = Stage::open(&["alpha"], "", &hasty(600)).await;
    let alpha = stage.connect("alpha").await;
    let seeds = seed(&stage, &alpha, &event("hasty", "c")).await;
    stage.reconfigure("", &hasty(1), "hurried").await;
    let run = stage.start(&alpha, &event("hasty", "c")).await;
    assert_eq!(stage.api.ended_run(&run.id).await.status, RunStatus::Timeout);
    let mut probe = Probe::new(&stage, &alpha, "alpha").claiming(&run.id);
    probe.column("deadline", &seeds.target()).await;
    probe.assert_audited().await;
    alpha.let_go(&run).await;
    stage.reconfigure("", &hasty(600), "unhurried").await;
    assert_eq!(seen(&stage, &alpha, &event("hasty", "c")).await, seeds.facts);
    stage.assert_sound();
}

#[tokio::test(flavor = "multi_thread")]
async fn no_page_is_refused_for_the_size_of_what_is_in_it() {
    let agents = agent("full", ALPHA, STEER, ALL);
    let stage = Stage::open(&["alpha"], "response_bytes = 4096", &agents).await;
    let alpha = stage.connect("alpha").await;
    let mut large = event("full", "c");
    large["input"]["text"] = "whale ".repeat(2000).into();
    let first = stage.start(&alpha, &large).await;
    stage.end(&alpha, &first).await;
    let run = stage.start(&alpha, &event("full", "c")).await;
    let pages = [
        ("history.page", json!({"direction": "forward"})),
        ("history.search", json!({"query": "whale"})),
        ("events.get", json!({"event_id": first.context["event"]["event_id"]})),
    ];
    for (method, params) in pages {
        let page = alpha.call_for(&run.id, method, params).await.unwrap();
        let shown = page.get("items").map_or(&page, |items| &items[0]);
        assert_eq!(shown["metadata"]["truncated"], true, "{method}: {page}");
    }
    stage.end(&alpha, &run).await;
}
