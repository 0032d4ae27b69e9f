//! A host with LangBot plugins, each in a folder of its own.
//!
//! Invariant: the plugins are those of `tests/outside/langbot`, unmodified, on the SDK that `tests/prepare.sh`
//! installs; a test waits for marks and ends, never for time.

use crate::PROGRAM;
use greenroom_protocol::{AgentRunResult, RunStatus, RunView};
use greenroom_testkit::api::Api;
use greenroom_testkit::host::TestHost;
use greenroom_testkit::http::Request;
use greenroom_testkit::wait::wait_for;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
/// The SDK that the plugins are written for.
pub(crate) const SDK: &str = "0.7.18";

pub(crate) struct Stage {
    pub host: TestHost,
    pub api: Api,
}

impl Stage {
    /// A host with these plugins and what `more` configures beside them.
    pub(crate) async fn open(plugins: &[&str], more: &str) -> Self {
        let host = TestHost::prepare(PROGRAM, &config(plugins, more));
        for plugin in plugins {
            copy(&plugins_folder().join(plugin), &host.folder().join(plugin));
        }
        Self::start(host).await
    }

    pub(crate) async fn start(mut host: TestHost) -> Self {
        host.start_again().await;
        let api = host.api();
        Self { host, api }
    }

    /// Sends a text to an agent and gives back the run.
    pub(crate) async fn send(&self, agent: &str, conversation: &str, text: &str) -> String {
        self.api.send_event(&event(agent, conversation, text)).await.run_id.unwrap()
    }

    pub(crate) async fn play(&self, agent: &str, conversation: &str, text: &str) -> RunView {
        let run_id = self.send(agent, conversation, text).await;
        self.api.ended_run(&run_id).await
    }

    /// What the agent answers; the run must complete.
    pub(crate) async fn answer(&self, agent: &str, conversation: &str, text: &str) -> String {
        let run = self.play(agent, conversation, text).await;
        assert_eq!(outcome(&run), (RunStatus::Completed, ""), "{run:?}\n{}", self.host.log());
        self.api.answers(conversation).await.pop().unwrap_or_default()
    }

    /// What the agent answers, read as JSON.
    pub(crate) async fn told(&self, agent: &str, conversation: &str, text: &Value) -> Value {
        let answer = self.answer(agent, conversation, &text.to_string()).await;
        serde_json::from_str(&answer).unwrap_or_else(|error| panic!("{error}: {answer}"))
    }

    pub(crate) async fn results(&self, run: &RunView) -> Vec<AgentRunResult> {
        self.api.results(&run.run_id).await
    }

    /// Waits for a file that a plugin leaves.
    pub(crate) async fn marked(&self, mark: &str) {
        let mark = self.host.folder().join(mark);
        wait_for(&format!("the mark {}", mark.display()), PATIENCE, async || {
            mark.exists().then_some(())
        })
        .await;
    }

    pub(crate) async fn cancel(&self, run_id: &str) -> RunView {
        let request = Request::post(format!("/v1/runs/{run_id}/cancel"), "");
        let (status, body) = self.api.json(request).await.unwrap();
        assert_eq!(status, 200);
        serde_json::from_value(body).unwrap()
    }

    /// The kinds of what was kept beside a run's results.
    /// What `greenroom runner list` says of a runner.
    pub(crate) fn listed(&self, runner: &str) -> String {
        let data = self.host.data();
        let listed = greenroom(&data, &["runner", "list", "--data", data.to_str().unwrap()]);
        let listed = String::from_utf8(listed.stdout).unwrap();
        let line = listed.lines().find(|line| line.starts_with(&format!("{runner} ")));
        line.unwrap_or_default().to_owned()
    }

    pub(crate) async fn diagnostics(&self, run_id: &str) -> Vec<String> {
        let run = self.api.run(run_id).await;
        let notes = run.extra["diagnostics"].as_array().unwrap().iter();
        notes.map(|note| note["kind"].as_str().unwrap().to_owned()).collect()
    }
}

pub(crate) fn config(plugins: &[&str], more: &str) -> String {
    let python = python();
    let python = python.display();
    let runners = plugins.iter().map(|name| {
        format!(
            "[runners.{name}]\nwire = \"langbot\"\ncommand = [\"{python}\"]\ndir = \"{name}\"\n"
        )
    });
    let runners: String = runners.collect();
    format!(
        "[store]\nsync = \"normal\"\n[limits]\ncancel_grace_s = 5\nrunner_start_s = 60\n{runners}\n{more}\n"
    )
}

/// An agent for a runner of a plugin, taken only by name; `more` are keys of its table.
pub(crate) fn agent(name: &str, plugin: &str, runner: &str, more: &str) -> String {
    format!(
        "[agents.{name}]\nrunner = \"plugin:greenroom-tests/{plugin}/{runner}\"\nevents = []\n{more}\n"
    )
}

pub(crate) fn event(agent: &str, conversation: &str, text: &str) -> Value {
    json!({"event_type": "message.received", "agent": agent, "conversation_id": conversation,
        "actor": {"actor_type": "user", "actor_id": "u1", "actor_name": "Ann"}, "input": {"text": text}})
}

pub(crate) fn outcome(run: &RunView) -> (RunStatus, &str) {
    (run.status, run.error.as_ref().map_or("", |error| &error.code))
}

pub(crate) fn plugins_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/outside/langbot/plugins")
}

/// The interpreter with the SDK.
#[expect(clippy::disallowed_methods, reason = "the tests' own place is read here")]
pub(crate) fn python() -> PathBuf {
    let home = std::env::var("HOME").unwrap();
    let python = Path::new(&home).join(format!(".cache/greenroom/langbot-{SDK}/bin/python"));
    assert!(python.exists(), "`{}` is missing: run `tests/prepare.sh`", python.display());
    python
}

/// Copies a folder with everything in it.
#[expect(clippy::disallowed_methods, reason = "the program under test is started here")]
pub(crate) fn greenroom(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(PROGRAM);
    for name in ["GREENROOM_URL", "GREENROOM_TOKEN", "GREENROOM_DATA", "GREENROOM_CONFIG"] {
        command.env_remove(name);
    }
    // What it installs is at hand: no index is asked.
    let wheels = python().parent().unwrap().join("../wheels");
    command.env("PIP_NO_INDEX", "1").env("PIP_FIND_LINKS", wheels).env("PIP_NO_COMPILE", "1");
    command.args(args).current_dir(folder).output().unwrap()
}

pub(crate) fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &target),
            false => drop(std::fs::copy(entry.path(), target).unwrap()),
        }
    }
}
