//! The runner or the host is killed while a tool runs: afterwards the conversation goes on, and any provider
//! takes what is told of it.

use crate::scene::{Scene, Setting};
use crate::shapes::{PROVIDERS, check, ids, messages};
use crate::stage::{PATIENCE, outcome};
use crate::yard::{FOLDER, at_gate, open_gate, yard};
use greenroom_protocol::{RunStatus, TranscriptRole};
use greenroom_testkit::wait::wait_for;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// Turns with words and several calls, of which one does not come back by itself.
const SCRIPT: &str = r#"
[[rule]]
when = { text = "read", round = 1 }
answer = [{ text = "I look." }, { call = "yard_gate", args = { name = "closed" } }, { call = "yard_gate", args = { name = "open" } },
  { call = "yard_typed", args = { count = 1 } }]
[[rule]]
when = { text = "change", round = 1 }
answer = [{ text = "I begin." }, { call = "forge_wait", args = { step = 1 } }, { call = "forge_add", args = { a = 1, b = 1 } }]
[[rule]]
when = { text = "sum", round = 1 }
answer = [{ call = "forge_add", args = { a = 1, b = 1 } }, { call = "forge_add", args = { a = 2, b = 2 } }]
[[rule]]
answer = "Going on."
"#;

async fn open(provider: &str) -> Scene {
    let setting = Setting {
        script: SCRIPT,
        provider,
        grant: "tools = [\"forge.*\", \"yard.gate\", \"yard.typed\"]",
        more: &yard(0),
        files: &[FOLDER],
        ..Setting::default()
    };
    setting.open().await
}

/// Says something whose run will not end by itself.
async fn begin(scene: &Scene, text: &str) -> String {
    scene.stage.send(&crate::stage::event("agent", "c1", text)).await
}

/// Waits until `forge.wait` was called.
async fn waits(scene: &Scene) {
    let mark = scene.stage.host.folder().join("other/waits");
    wait_for("a call that waits", PATIENCE, async || mark.exists().then_some(())).await;
}

async fn kill_runner(scene: &Scene) {
    let name = "greenroom-local-agent";
    let pid = scene.stage.api.ready_runner(name).await["pid"].clone();
    let number = i32::try_from(pid.as_i64().unwrap()).unwrap();
    kill_process(Pid::from_raw(number).unwrap(), Signal::KILL).unwrap();
    wait_for("another process", PATIENCE, async || {
        let runner = scene.stage.api.runner(name).await;
        (runner["status"] == "ready" && runner["pid"] != pid).then_some(())
    })
    .await;
}

/// Waits until so many calls have their item in the transcript.
async fn outputs(scene: &Scene, count: usize) {
    wait_for("the outputs of the calls", PATIENCE, async || {
        let items = scene.history("c1").await;
        let tools = items.iter().filter(|item| item.role == TranscriptRole::Tool).count();
        (tools == count).then_some(())
    })
    .await;
}

/// Goes on talking and calling; the provider must be able to take every request.
async fn goes_on(scene: &Scene, provider: &str) {
    assert_eq!(scene.answer("c1", "go on").await, "Going on.");
    assert_eq!(scene.answer("c1", "sum").await, "Going on.");
    for request in scene.requests() {
        check(provider, &request);
    }
}

/// How many calls the last request tells of.
fn called(scene: &Scene, provider: &str) -> usize {
    let last = scene.requests().pop().unwrap();
    messages(&last).iter().map(|message| ids(provider, message).0.len()).sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn after_the_runner_was_killed_in_a_call_the_conversation_goes_on() {
    for provider in PROVIDERS {
        let scene = open(provider).await;
        scene.answer("c1", "sum").await;
        let run_id = begin(&scene, "read").await;
        at_gate(&scene, "closed").await;
        open_gate(&scene, "open");
        outputs(&scene, 2 + 2).await;
        kill_runner(&scene).await;
        let run = scene.stage.api.ended_run(&run_id).await;
        assert_eq!(outcome(&run), (RunStatus::Failed, "runner.crashed"), "{provider}");
        goes_on(&scene, provider).await;
        // Of the three calls that stood together, the two that had come back.
        assert_eq!(called(&scene, provider), 2 + 2 + 2, "{provider}");
        assert!(said(&scene, "I look."), "{provider}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn after_the_host_was_killed_in_a_call_the_conversation_goes_on() {
    for provider in PROVIDERS {
        let mut scene = open(provider).await;
        scene.answer("c1", "sum").await;
        let run_id = begin(&scene, "change").await;
        waits(&scene).await;
        scene.stage.host.kill();
        scene.stage.host.start_again().await;
        let run = scene.stage.api.ended_run(&run_id).await;
        assert_eq!(outcome(&run), (RunStatus::Failed, "host.interrupted"), "{provider}");
        goes_on(&scene, provider).await;
        // The call that was under way is told with an outcome; the one behind it was never made.
        assert_eq!(called(&scene, provider), 2 + 1 + 2, "{provider}");
        let last = scene.requests().pop().unwrap().to_string();
        assert!(last.contains("INTERRUPTED"), "{provider}: {last}");
        assert!(said(&scene, "I begin."), "{provider}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn after_the_runner_was_killed_in_a_change_its_one_outcome_is_told() {
    for provider in PROVIDERS {
        let scene = open(provider).await;
        let run_id = begin(&scene, "change").await;
        waits(&scene).await;
        kill_runner(&scene).await;
        let run = scene.stage.api.ended_run(&run_id).await;
        assert_eq!(outcome(&run), (RunStatus::Failed, "runner.crashed"), "{provider}");
        // At once, whether or not the call is settled by now, and once it is.
        goes_on(&scene, provider).await;
        outputs(&scene, 1 + 2).await;
        goes_on(&scene, provider).await;
        assert_eq!(called(&scene, provider), 1 + 2 + 2, "{provider}");
        assert!(said(&scene, "I begin."), "{provider}");
    }
}

/// Whether the last request tells these words.
fn said(scene: &Scene, words: &str) -> bool {
    let last: Value = scene.requests().pop().unwrap();
    last.to_string().contains(words)
}
