//! Deliveries that wait while the configuration changes.

use super::{Hook, pause_ms, until};
use crate::stage::Stage;
use crate::webhook::{settled, tell};

#[tokio::test]
async fn a_reload_tries_at_once_and_takes_new_limits() {
    let hook = Hook::answering(503).await;
    let stage = Stage::with(&hook.config("", "")).await;
    let run_id = tell(&stage, "c", "x").await;
    until(&stage, &run_id, |it| it["next_attempt_at"].is_string() && pause_ms(it) > 1_500).await;
    let file = stage.host.folder().join("greenroom.toml");
    let config = std::fs::read_to_string(&file).unwrap();
    stage.host.configure(&format!("{config}\ndelivery_retry_s = 0"));
    let delivery = settled(&stage, &run_id).await.remove(0);
    assert_eq!(delivery["status"], "failed", "{delivery}");
}

/// A surface that is taken out by mistake and put back costs nothing but time.
#[tokio::test]
async fn a_surface_that_is_not_configured_for_a_moment_gets_what_waited() {
    let hook = Hook::answering(503).await;
    let stage = Stage::with(&hook.config("", "")).await;
    let run_id = tell(&stage, "c", "x").await;
    until(&stage, &run_id, |it| it["next_attempt_at"].is_string()).await;
    let file = stage.host.folder().join("greenroom.toml");
    let config = std::fs::read_to_string(&file).unwrap();
    let without = config.replace("[surfaces.hook]", "[surfaces.other]");
    let without = without.replace("delivery = \"hook\"", "delivery = \"other\"");
    assert_ne!(without, config);
    stage.host.configure(&without);
    let missing = "surface `hook` is not configured";
    let waiting = until(&stage, &run_id, |it| it["error"] == missing).await;
    assert_eq!(waiting["status"], "pending", "{waiting}");
    hook.answer(204);
    stage.host.configure(&config);
    assert_eq!(settled(&stage, &run_id).await[0]["status"], "done");
    assert_eq!(hook.taken("c"), ["x"]);
}
