//! Processes that say they are another plugin: who one is stands in the configuration, not in what one says.

use super::{agents, refused};
use crate::facts::{seed, seen_by};
use crate::stage::{PATIENCE, Stage, event};
use greenroom_protocol::ErrorCode::{RateLimited, Unauthorized};
use greenroom_testkit::wait::wait_for;
use serde_json::json;

/// The second connection of the same plugin name is turned away, also with a run id of the first in its hands.
#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_declares_the_plugin_of_another_is_turned_away() {
    let mut stage = Stage::open(&["alpha", "beta"], "", &agents()).await;
    let alpha = stage.connect("alpha").await;
    let seeds = seed(&stage, &alpha, &event("full", "c")).await;
    let victim = stage.start(&alpha, &event("full", "c")).await;
    let thief = stage.accept("beta").await;
    // Before it has said who it is, and as the one it says it is.
    for method in ["state.get", "state.set", "storage.set", "artifacts.create", "history.page"] {
        let reply = thief.call_for(&victim.id, method, seeds.target().params(method)).await;
        assert_eq!(refused(&reply), Unauthorized, "{method}");
    }
    thief.shake_hands("test/alpha").await;
    assert!(thief.is_cut().await, "{}", stage.host.log());
    let complaint = "declares itself `test/alpha`, which is runner `alpha`";
    wait_for("a complaint", PATIENCE, async || stage.host.log().contains(complaint).then_some(()))
        .await;
    assert_ne!(stage.api.runner("beta").await["status"], "ready");
    assert_eq!(seen_by(&stage, &alpha, &victim).await, seeds.facts);
    let next = stage.start(&alpha, &event("full", "d")).await;
    stage.end(&alpha, &next).await;
    stage.assert_sound();
}

/// Once a runner has been a plugin it is not another one after a restart of its process.
#[tokio::test(flavor = "multi_thread")]
async fn a_runner_that_was_one_plugin_does_not_become_another() {
    let mut stage = Stage::open(&["alpha"], "", &agents()).await;
    let alpha = stage.connect("alpha").await;
    let seeds = seed(&stage, &alpha, &event("full", "c")).await;
    drop(alpha);
    let changed = stage.accept("alpha").await;
    changed.shake_hands("test/beta").await;
    assert!(changed.is_cut().await, "{}", stage.host.log());
    assert_ne!(stage.api.runner("alpha").await["status"], "ready");
    let alpha = stage.connect("alpha").await;
    wait_for("the plugin itself", PATIENCE, async || {
        (stage.api.runner("alpha").await["status"] == "ready").then_some(())
    })
    .await;
    let run = stage.start(&alpha, &event("full", "c")).await;
    assert_eq!(seen_by(&stage, &alpha, &run).await, seeds.facts);
    stage.assert_sound();
}

/// Who has only said so far that it is another plugin does not call on that plugin's account.
#[tokio::test(flavor = "multi_thread")]
async fn a_process_does_not_use_up_the_calls_of_the_plugin_that_it_pretends_to_be() {
    let mut stage = Stage::open(&["alpha", "beta"], "calls_per_s_plugin = 1", &agents()).await;
    let alpha = stage.connect("alpha").await;
    let run = stage.start(&alpha, &event("full", "c")).await;
    let thief = stage.accept("beta").await;
    let _half = thief.introduce("test/alpha").await;
    let search = json!({"query": "whales"});
    let dear = thief.call_for(&run.id, "history.search", search.clone()).await;
    assert_eq!(refused(&dear), Unauthorized);
    assert_eq!(refused(&thief.call_for(&run.id, "history.search", search).await), RateLimited);
    let served = alpha.call_for(&run.id, "state.get", json!({"scope": "actor", "key": "k"})).await;
    assert!(served.is_ok(), "{served:?}");
    stage.assert_sound();
}
