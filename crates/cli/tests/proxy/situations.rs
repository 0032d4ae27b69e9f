//! Each situation of the matrix, brought about for real: the column's calls, their records, and no effect.
//!
//! Invariant: what must stay as it was is seeded before, and looked at afterwards by its owner.

mod limits;
mod turns;

use crate::calls::Target;
use crate::facts::{outside, seed, seen, seen_by};
use crate::matrix::Probe;
use crate::stage::{ALL, NOTHING, Stage, WIDE, agent, event};
use greenroom_testkit::wait::wait_for;
use serde_json::{Value, json};

const ALPHA: &str = "plugin:test/alpha/main";
const BETA: &str = "plugin:test/beta/main";
const STEER: &str = "queue = \"steer\"";

/// `full` and `other` may do everything, on one connection each.
fn agents() -> String {
    agent("full", ALPHA, STEER, ALL) + &agent("other", BETA, STEER, ALL)
}

async fn open(more: &str) -> Stage {
    Stage::open(&["alpha", "beta"], "", &(agents() + more)).await
}

fn in_workspace(mut event: Value, workspace: &str) -> Value {
    event["workspace_id"] = workspace.into();
    event
}

fn by_actor(mut event: Value, actor: &str) -> Value {
    event["actor"]["actor_id"] = actor.into();
    event
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_granted_is_served_and_leaves_its_mark() {
    let mut stage = open("").await;
    let alpha = stage.connect("alpha").await;
    let seeds = seed(&stage, &alpha, &event("full", "c")).await;
    let run = stage.start(&alpha, &event("full", "c")).await;
    let mut probe = Probe::new(&stage, &alpha, "alpha").claiming(&run.id);
    probe.column("granted", &seeds.target()).await;
    probe.assert_audited().await;
    let facts = seen_by(&stage, &alpha, &run).await;
    assert_eq!(facts["state"]["conversation"][0]["key"], "intruder");
    assert_eq!(facts["storage"]["plugin"][0]["key"], "intruder");
    let count = |facts: &Value, what: &str| facts["outside"][what].as_u64().unwrap();
    for effect in ["effects", "deliveries", "objects"] {
        assert_eq!(count(&facts, effect), count(&seeds.facts, effect) + 1, "{effect}");
    }
    stage.assert_sound();
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_run_or_with_an_unknown_one_nothing_is_done() {
    let mut stage = open("").await;
    let alpha = stage.connect("alpha").await;
    let seeds = seed(&stage, &alpha, &event("full", "c")).await;
    // A run of this very connection is under way: it is not guessed.
    let run = stage.start(&alpha, &event("full", "c")).await;
    let mut probe = Probe::new(&stage, &alpha, "alpha");
    probe.column("none", &seeds.target()).await;
    probe.assert_audited().await;
    let mut probe = Probe::new(&stage, &alpha, "alpha").claiming("run_that_never_was");
    probe.column("unknown", &seeds.target()).await;
    probe.assert_audited().await;
    assert_eq!(seen_by(&stage, &alpha, &run).await, seeds.facts);
    stage.assert_sound();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_has_ended_does_nothing_more() {
    let mut stage = open("").await;
    let alpha = stage.connect("alpha").await;
    let seeds = seed(&stage, &alpha, &event("full", "c")).await;
    let run = stage.start(&alpha, &event("full", "c")).await;
    let mut probe = Probe::new(&stage, &alpha, "alpha").claiming(&run.id);
    // Also right behind its terminal, when the host has not yet stored it.
    alpha.complete(&run).await;
    probe.column("ended", &seeds.target()).await;
    stage.api.ended_run(&run.id).await;
    probe.column("ended", &seeds.target()).await;
    alpha.let_go(&run).await;
    probe.column("gone", &seeds.target()).await;
    probe.assert_audited().await;
    assert_eq!(seen(&stage, &alpha, &event("full", "c")).await, seeds.facts);
    stage.assert_sound();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_of_another_connection_does_nothing_here() {
    let mut stage = open("").await;
    let (alpha, beta) = (stage.connect("alpha").await, stage.connect("beta").await);
    let seeds = seed(&stage, &beta, &event("other", "c")).await;
    let victim = stage.start(&beta, &event("other", "c")).await;
    let steered = stage.api.send_event(&event("other", "c")).await;
    assert_eq!((steered.status.as_str(), &steered.run_id), ("steered", &Some(victim.id.clone())));
    // A run of its own under way does not help.
    let _own = stage.start(&alpha, &event("full", "mine")).await;
    let mut probe = Probe::new(&stage, &alpha, "alpha").claiming(&victim.id);
    probe.column("foreign", &seeds.target()).await;
    probe.assert_audited().await;
    assert_eq!(seen_by(&stage, &beta, &victim).await, seeds.facts);
    let pulled = beta.call_for(&victim.id, "steering.pull", json!({})).await.unwrap();
    assert_eq!(pulled["items"][0]["event_id"], steered.event_id, "nobody has pulled it before");
    stage.assert_sound();
}

/// The attempt changes when the host is killed. Its runner comes back on a new connection and goes on with the
/// calls of the earlier attempt before it has heard of the new one; another connection tries it as well.
#[tokio::test(flavor = "multi_thread")]
async fn an_earlier_attempt_does_nothing_more() {
    let retrying = agent("retrying", ALPHA, "queue = \"steer\"\non_interrupt = \"retry\"", ALL);
    let mut stage = open(&retrying).await;
    let (alpha, beta) = (stage.connect("alpha").await, stage.connect("beta").await);
    let seeds = seed(&stage, &alpha, &event("retrying", "c")).await;
    let run = stage.start(&alpha, &event("retrying", "c")).await;
    stage.host.kill();
    drop((alpha, beta));
    stage.host.start_again().await;
    let (alpha, beta) = (stage.accept("alpha").await, stage.connect("beta").await);
    let half = alpha.introduce("test/alpha").await;
    let mut late = Probe::new(&stage, &alpha, "alpha").claiming(&run.id);
    late.column("earlier", &seeds.target()).await;
    let mut elsewhere = Probe::new(&stage, &beta, "beta").claiming(&run.id);
    elsewhere.column("earlier", &seeds.target()).await;
    late.assert_audited().await;
    elsewhere.assert_audited().await;
    alpha.list_runners(half, "test/alpha").await;
    let again = alpha.next_run().await;
    assert_eq!((&again.id, &again.context["metadata"]["attempt"]), (&run.id, &json!(2)));
    assert_eq!(seen_by(&stage, &alpha, &again).await, seeds.facts);
    let mut elsewhere = Probe::new(&stage, &beta, "beta").claiming(&run.id);
    elsewhere.column("earlier", &seeds.target()).await;
    assert_eq!(seen_by(&stage, &alpha, &again).await, seeds.facts);
    stage.assert_sound();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_manifest_does_not_ask_for_is_not_granted() {
    let bare = agent("bare", "plugin:test/alpha/bare", STEER, ALL);
    let mut stage = open(&bare).await;
    let alpha = stage.connect("alpha").await;
    let seeds = seed(&stage, &alpha, &event("full", "c")).await;
    let run = stage.start(&alpha, &event("bare", "c")).await;
    let mut probe = Probe::new(&stage, &alpha, "alpha").claiming(&run.id);
    probe.column("manifest", &seeds.target()).await;
    probe.assert_audited().await;
    let apis = run.context["context"]["available_apis"].as_object().unwrap();
    assert!(apis.values().all(|available| *available == false), "{apis:?}");
    stage.end(&alpha, &run).await;
    assert_eq!(seen(&stage, &alpha, &event("full", "c")).await, seeds.facts);
    stage.assert_sound();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_binding_does_not_allow_is_not_granted() {
    let strict = agent("strict", ALPHA, "", NOTHING);
    let mut stage = open(&strict).await;
    let alpha = stage.connect("alpha").await;
    let seeds = seed(&stage, &alpha, &event("full", "c")).await;
    let run = stage.start(&alpha, &event("strict", "c")).await;
    let mut probe = Probe::new(&stage, &alpha, "alpha").claiming(&run.id);
    probe.column("policy", &seeds.target()).await;
    probe.assert_audited().await;
    stage.end(&alpha, &run).await;
    assert_eq!(seen(&stage, &alpha, &event("full", "c")).await, seeds.facts);
    // What it might have left under its own name is seen once it may look.
    let allowed = agents() + &agent("strict", ALPHA, "", ALL);
    stage.reconfigure("", &allowed, "reloaded").await;
    let own = seen(&stage, &alpha, &event("strict", "c")).await;
    assert_eq!(own["state"]["binding"], json!([]));
    assert_eq!(own["state"]["conversation"], json!([]));
    assert_eq!(own["storage"]["binding"], json!([]));
    stage.assert_sound();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_resource_beside_the_granted_ones_is_not_reached() {
    let partial = agent(
        "partial",
        ALPHA,
        "",
        r#"state = ["conversation"], storage = ["plugin"], actions = { "message.send" = "always" }"#,
    );
    let mut stage = open(&partial).await;
    let alpha = stage.connect("alpha").await;
    let seeds = seed(&stage, &alpha, &event("full", "c")).await;
    let run = stage.start(&alpha, &event("partial", "c")).await;
    let mut probe = Probe::new(&stage, &alpha, "alpha").claiming(&run.id);
    let (scope, area, action) = ("runner", "workspace", "message.react");
    probe.column("resource", &Target { scope, area, action, ..Target::made_up() }).await;
    probe.assert_audited().await;
    stage.end(&alpha, &run).await;
    assert_eq!(seen(&stage, &alpha, &event("full", "c")).await, seeds.facts);
    stage.assert_sound();
}

#[tokio::test(flavor = "multi_thread")]
async fn another_conversation_is_not_reached() {
    let mut stage = open("").await;
    let alpha = stage.connect("alpha").await;
    let theirs = event("full", "theirs");
    let seeds = seed(&stage, &alpha, &theirs).await;
    let victim = stage.start(&alpha, &theirs).await;
    let steered = stage.api.send_event(&theirs).await;
    assert_eq!(steered.status.as_str(), "steered");
    let run = stage.start(&alpha, &event("full", "mine")).await;
    let conversation = Some("theirs".to_owned());
    let more = json!({"conversation_id": "theirs"});
    let mut probe = Probe::new(&stage, &alpha, "alpha").claiming(&run.id);
    probe.column("conversation", &Target { conversation, more, ..seeds.target() }).await;
    // Whether it exists makes no difference.
    let made_up = Some("nobodys".to_owned());
    let target = Target { conversation: made_up, ..Target::made_up() };
    for method in ["history.page", "history.search", "events.page", "platform.request_action"] {
        let theirs = Target { conversation: Some("theirs".to_owned()), ..seeds.target() };
        let (one, other) = (
            probe.call(method, theirs.params(method)).await,
            probe.call(method, target.params(method)).await,
        );
        assert_eq!(one, other, "{method}");
    }
    probe.assert_audited().await;
    let mut after = seen_by(&stage, &alpha, &victim).await;
    // The run's own artifact is one more.
    let objects = seeds.facts["outside"]["objects"].clone();
    assert_eq!(after["outside"]["objects"].as_u64(), objects.as_u64().map(|count| count + 1));
    after["outside"]["objects"] = objects;
    assert_eq!(after, seeds.facts);
    let pulled = alpha.call_for(&victim.id, "steering.pull", json!({})).await.unwrap();
    assert_eq!(pulled["items"][0]["event_id"], steered.event_id);
    stage.assert_sound();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_state_of_another_actor_is_not_reached() {
    let mut stage = open("").await;
    let alpha = stage.connect("alpha").await;
    let theirs = by_actor(event("full", "c"), "u2");
    let seeds = seed(&stage, &alpha, &theirs).await;
    let run = stage.start(&alpha, &event("full", "c")).await;
    let more = json!({"actor_id": "u2", "actor": {"actor_type": "user", "actor_id": "u2"}});
    let mut probe = Probe::new(&stage, &alpha, "alpha").claiming(&run.id);
    probe.column("actor", &Target { scope: "actor", more, ..seeds.target() }).await;
    probe.assert_audited().await;
    stage.end(&alpha, &run).await;
    assert_eq!(seen(&stage, &alpha, &theirs).await, seeds.facts);
    stage.assert_sound();
}

/// With the widest grant there is, and the same names on both sides.
#[tokio::test(flavor = "multi_thread")]
async fn another_workspace_is_not_reached() {
    let wide = agent("wide", ALPHA, STEER, WIDE);
    let mut stage = open(&wide).await;
    let alpha = stage.connect("alpha").await;
    let theirs = in_workspace(event("wide", "c"), "w2");
    let seeds = seed(&stage, &alpha, &theirs).await;
    let elsewhere = in_workspace(event("wide", "only-theirs"), "w2");
    stage.end(&alpha, &stage.start(&alpha, &elsewhere).await).await;
    let victim = stage.start(&alpha, &theirs).await;
    let steered = stage.api.send_event(&theirs).await;
    assert_eq!(steered.status.as_str(), "steered");
    let run = stage.start(&alpha, &event("wide", "c")).await;
    let mut probe = Probe::new(&stage, &alpha, "alpha").claiming(&run.id);
    let target = Target {
        conversation: Some("only-theirs".to_owned()),
        scope: "runner",
        area: "workspace",
        more: json!({"workspace_id": "w2"}),
        ..seeds.target()
    };
    probe.column("workspace", &target).await;
    // The same name is another conversation here.
    for method in ["history.page", "history.search", "events.page"] {
        let same = Target { conversation: Some("c".to_owned()), ..target.clone() };
        let found = probe.call(method, same.params(method)).await.unwrap().to_string();
        assert!(!found.contains(crate::facts::MARK), "{found}");
    }
    let everything = probe.call("history.search", json!({"query": "whales"})).await.unwrap();
    assert!(!everything.to_string().contains(crate::facts::MARK), "{everything}");
    probe.assert_audited().await;
    assert_eq!(seen_by(&stage, &alpha, &victim).await, seeds.facts);
    let pulled = alpha.call_for(&victim.id, "steering.pull", json!({})).await.unwrap();
    assert_eq!(pulled["items"][0]["event_id"], steered.event_id);
    stage.assert_sound();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_run_does_nothing_more_and_its_calls_under_way_end() {
    let mut stage = open("").await;
    let alpha = stage.connect("alpha").await;
    let seeds = seed(&stage, &alpha, &event("full", "c")).await;
    let run = stage.start(&alpha, &event("full", "c")).await;
    let asking = Target { action: "message.react", ..seeds.target() };
    let params = crate::wire::with_run(asking.params("platform.request_action"), &run.id);
    let waiting = alpha.call_as(json!("waits"), "platform.request_action", params).await;
    wait_for("the question", crate::stage::PATIENCE, async || {
        let approvals = stage.api.get("/v1/approvals?status=pending").await;
        (approvals["items"] != json!([])).then_some(())
    })
    .await;
    let before = outside(&stage).await;
    stage.cancel(&run.id).await;
    let refused = waiting.reply().await.unwrap_err();
    assert_eq!(refused.code.as_str(), "unauthorized");
    let mut probe = Probe::new(&stage, &alpha, "alpha").claiming(&run.id);
    probe.made_before("platform.request_action", "unauthorized");
    probe.column("cancelled", &seeds.target()).await;
    probe.assert_audited().await;
    alpha.let_go(&run).await;
    let after = seen(&stage, &alpha, &event("full", "c")).await;
    assert_eq!(
        (&after["state"], &after["storage"]),
        (&seeds.facts["state"], &seeds.facts["storage"])
    );
    let approvals = after["outside"]["approvals"].as_array().unwrap();
    assert_eq!((approvals.len(), &approvals[0]["status"]), (1, &json!("cancelled")));
    for same in ["deliveries", "objects"] {
        assert_eq!(after["outside"][same], before[same], "{same}");
    }
    stage.assert_sound();
}
