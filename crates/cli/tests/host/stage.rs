//! A host with a puppet: a runner that plays, step by step, what a test tells it.
//!
//! Invariant: a test waits for marks and ends, never for time; the puppet waits at gates that the test opens.

use crate::PROGRAM;
use greenroom_protocol::{RunStatus, RunView};
use greenroom_testkit::api::Api;
use greenroom_testkit::host::TestHost;
use greenroom_testkit::http::Request;
use greenroom_testkit::wait::wait_for;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// What `{ file = "token" }` in the configuration means.
pub(crate) const TOKEN: &str = "a-token-for-a-runner-elsewhere";

pub(crate) struct Stage {
    pub host: TestHost,
    pub api: Api,
    played: AtomicU64,
}

impl Stage {
    /// A host with the puppet and with what `more` configures beside it.
    pub(crate) async fn open(more: &str) -> Self {
        Self::open_with("cancel_grace_s = 1", more).await
    }

    pub(crate) async fn open_with(limits: &str, more: &str) -> Self {
        Self::with(TestHost::prepare(PROGRAM, &config(limits, more))).await
    }

    /// A host that was prepared otherwise.
    pub(crate) async fn with(mut host: TestHost) -> Self {
        for name in ["puppet", "other"] {
            std::fs::create_dir(host.folder().join(name)).unwrap();
        }
        std::fs::write(host.folder().join("token"), TOKEN).unwrap();
        host.start_again().await;
        let api = host.api();
        Self { host, api, played: AtomicU64::new(0) }
    }

    /// Sends the steps to the agent `puppet` in a conversation.
    pub(crate) async fn start(&self, conversation: &str, steps: Value) -> String {
        self.send(&event("puppet", conversation, &steps.to_string())).await
    }

    /// Sends an event and gives back its run.
    pub(crate) async fn send(&self, event: &Value) -> String {
        self.api.send_event(event).await.run_id.unwrap()
    }

    /// Plays the steps in a conversation of their own, to the end.
    pub(crate) async fn play(&self, steps: Value) -> RunView {
        let number = self.played.fetch_add(1, Ordering::Relaxed);
        let run_id = self.start(&format!("alone-{number}"), steps).await;
        self.api.ended_run(&run_id).await
    }

    /// Starts a run that has said `waiting` and goes on to `done` once the gate `go` is open.
    pub(crate) async fn start_waiting(&self) -> String {
        let steps = json!([
            ["say", "waiting "],
            ["mark", "waits"],
            ["gate", "go"],
            ["say", "done"],
            ["end"]
        ]);
        let run_id = self.start("bystander", steps).await;
        self.marked("waits").await;
        run_id
    }

    /// Opens the gate of a waiting run, which must have been left undisturbed.
    pub(crate) async fn finish_waiting(&self, run_id: &str) {
        assert_eq!(self.api.run(run_id).await.status, RunStatus::Running);
        self.pass("go");
        let run = self.api.ended_run(run_id).await;
        assert_eq!(outcome(&run), (RunStatus::Completed, ""), "{}", self.host.log());
        assert_eq!(self.api.answers("bystander").await, ["waiting done"]);
    }

    pub(crate) fn pass(&self, gate: &str) {
        std::fs::write(self.host.folder().join("puppet").join(gate), "").unwrap();
    }

    pub(crate) async fn marked(&self, mark: &str) {
        let mark = self.host.folder().join("puppet").join(mark);
        let what = format!("the mark {}", mark.display());
        wait_for(&what, PATIENCE, async || mark.exists().then_some(())).await;
    }

    /// What the host answered to a call that the puppet gave this name.
    pub(crate) async fn told(&self, name: &str) -> Value {
        self.marked(name).await;
        let text = std::fs::read_to_string(self.host.folder().join("puppet").join(name)).unwrap();
        serde_json::from_str(&text).unwrap()
    }

    /// The types of the host's own events in a conversation that begin so, oldest first.
    pub(crate) async fn log(&self, prefix: &str) -> Vec<String> {
        let mut events = self.api.events().await;
        events.reverse();
        let kinds = events.iter().map(|event| event["event_type"].as_str().unwrap());
        kinds.filter(|kind| kind.starts_with(prefix)).map(str::to_owned).collect()
    }

    /// What the puppet was told, in order.
    pub(crate) fn wire_log(&self) -> Vec<String> {
        let log = std::fs::read_to_string(self.host.folder().join("puppet/wire.log"));
        log.unwrap_or_default().lines().map(str::to_owned).collect()
    }

    /// Waits until the puppet serves in another process than this one.
    pub(crate) async fn replaced(&self, pid: &Value) {
        wait_for("another process", PATIENCE, async || {
            let runner = self.api.runner("puppet").await;
            (runner["status"] == "ready" && runner["pid"] != *pid).then_some(())
        })
        .await;
    }

    pub(crate) async fn answers_of(&self, run: &RunView) -> Vec<String> {
        self.api.answers(run.conversation_id.as_deref().unwrap()).await
    }

    /// The kinds of what was kept beside a run's results, once there is something.
    pub(crate) async fn diagnostics(&self, run_id: &str) -> Vec<(String, String)> {
        let text = |note: &Value, field: &str| note[field].as_str().unwrap().to_owned();
        wait_for("diagnostics", PATIENCE, async || {
            let run = self.api.run(run_id).await;
            let notes = run.extra["diagnostics"].as_array().unwrap().iter();
            let notes: Vec<_> =
                notes.map(|note| (text(note, "kind"), text(note, "message"))).collect();
            (!notes.is_empty()).then_some(notes)
        })
        .await
    }

    pub(crate) async fn cancel(&self, run_id: &str) -> RunView {
        let request = Request::post(format!("/v1/runs/{run_id}/cancel"), "");
        let (status, body) = self.api.json(request).await.unwrap();
        assert_eq!(status, 200);
        serde_json::from_value(body).unwrap()
    }
}

pub(crate) fn config(limits: &str, more: &str) -> String {
    let puppet = runners().join("puppet.py");
    format!(
        r#"
[store]
sync = "normal"
[limits]
{limits}
[runners.puppet]
command = ["python3", "{}"]
dir = "puppet"
[agents.puppet]
runner = "plugin:test/puppet/main"
events = []
{more}
"#,
        puppet.display()
    )
}

pub(crate) fn runners() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/host/runners")
}

pub(crate) fn event(agent: &str, conversation: &str, text: &str) -> Value {
    json!({"event_type": "message.received", "agent": agent, "conversation_id": conversation,
        "actor": {"actor_type": "user", "actor_id": "u1"}, "input": {"text": text}})
}

/// Status and, for a run that failed, its code.
pub(crate) fn outcome(run: &RunView) -> (RunStatus, &str) {
    (run.status, run.error.as_ref().map_or("", |error| error.code.as_str()))
}
