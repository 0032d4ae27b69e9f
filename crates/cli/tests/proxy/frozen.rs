//! The grant is frozen: whatever becomes of the configuration, a run keeps what it was started with.
//!
//! Invariant: each change is in force (a later run proves it) before the earlier run is looked at again.

use crate::facts::seed;
use crate::matrix::Probe;
use crate::stage::{ALL, NOTHING, Stage, agent, event};
use serde_json::json;

const ALPHA: &str = "plugin:test/alpha/main";

fn generous() -> String {
    agent("full", ALPHA, "queue = \"steer\"\non_interrupt = \"retry\"", ALL)
}

/// Refuses everything that a binding can refuse.
fn mean() -> String {
    agent("full", ALPHA, "", NOTHING)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_keeps_what_it_was_granted_and_the_next_one_is_refused_it() {
    let mut stage = Stage::open(&["alpha"], "", &generous()).await;
    let alpha = stage.connect("alpha").await;
    let seeds = seed(&stage, &alpha, &event("full", "c")).await;
    let first = stage.start(&alpha, &event("full", "c")).await;
    stage.reconfigure("", &mean(), "narrowed").await;
    let next = stage.start(&alpha, &event("full", "elsewhere")).await;
    let mut refused = Probe::new(&stage, &alpha, "alpha").claiming(&next.id);
    refused.column("policy", &seeds.target()).await;
    let mut served = Probe::new(&stage, &alpha, "alpha").claiming(&first.id);
    served.column("granted", &seeds.target()).await;
    served.assert_audited().await;
    refused.assert_audited().await;
    stage.assert_sound();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_not_given_what_is_granted_later_and_the_next_one_is() {
    let mut stage = Stage::open(&["alpha"], "", &generous()).await;
    let alpha = stage.connect("alpha").await;
    let seeds = seed(&stage, &alpha, &event("full", "c")).await;
    stage.reconfigure("", &mean(), "narrowed").await;
    let first = stage.start(&alpha, &event("full", "elsewhere")).await;
    stage.reconfigure("", &generous(), "widened").await;
    let next = stage.start(&alpha, &event("full", "c")).await;
    let mut served = Probe::new(&stage, &alpha, "alpha").claiming(&next.id);
    served.column("granted", &seeds.target()).await;
    let mut refused = Probe::new(&stage, &alpha, "alpha").claiming(&first.id);
    refused.column("policy", &seeds.target()).await;
    stage.assert_sound();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_whose_agent_is_gone_keeps_its_grant() {
    let mut stage = Stage::open(&["alpha"], "", &generous()).await;
    let alpha = stage.connect("alpha").await;
    let seeds = seed(&stage, &alpha, &event("full", "c")).await;
    let run = stage.start(&alpha, &event("full", "c")).await;
    stage.reconfigure("", "", "emptied").await;
    let mut served = Probe::new(&stage, &alpha, "alpha").claiming(&run.id);
    served.column("granted", &seeds.target()).await;
    stage.end(&alpha, &run).await;
    stage.assert_sound();
}

/// The grant is stored with the run, so that a start of the host under another configuration does not renew it.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_is_tried_again_keeps_the_grant_of_its_first_attempt() {
    let mut stage = Stage::open(&["alpha"], "", &generous()).await;
    let alpha = stage.connect("alpha").await;
    let seeds = seed(&stage, &alpha, &event("full", "c")).await;
    let run = stage.start(&alpha, &event("full", "c")).await;
    stage.reconfigure("", &mean(), "narrowed").await;
    stage.host.kill();
    drop(alpha);
    stage.host.start_again().await;
    let alpha = stage.connect("alpha").await;
    let again = alpha.next_run().await;
    assert_eq!((&again.id, &again.context["metadata"]["attempt"]), (&run.id, &json!(2)));
    let mut served = Probe::new(&stage, &alpha, "alpha").claiming(&run.id);
    served.column("granted", &seeds.target()).await;
    let next = stage.start(&alpha, &event("full", "elsewhere")).await;
    let mut refused = Probe::new(&stage, &alpha, "alpha").claiming(&next.id);
    refused.column("policy", &seeds.target()).await;
    stage.assert_sound();
}
