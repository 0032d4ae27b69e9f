//! A host with the fake harness as a runner.
//!
//! Invariant: a test waits for what the host shows, never for time.

use greenroom_protocol::{RunStatus, RunView};
use greenroom_testkit::api::Api;
use greenroom_testkit::host::TestHost;
use greenroom_testkit::http::Request;
use greenroom_testkit::wait::wait_for;
use serde_json::{Value, json};
use std::time::Duration;

const PROGRAM: &str = env!("CARGO_BIN_EXE_greenroom");
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Stage {
    pub(crate) host: TestHost,
    pub(crate) api: Api,
}

impl Stage {
    /// `sessions` are settings of the runner; `agent` adds keys to the agent, `grant` to its grant.
    pub(crate) async fn open(sessions: &str, config: &str, grant: &str) -> Self {
        let host = TestHost::prepare(PROGRAM, "");
        Self::with(host, sessions, config, grant, "").await
    }

    /// `more` are tables of the configuration.
    pub(crate) async fn with(
        mut host: TestHost,
        sessions: &str,
        config: &str,
        grant: &str,
        more: &str,
    ) -> Self {
        let fake = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/harness/fake.py");
        std::fs::copy(fake, host.folder().join("fake.py")).unwrap();
        host.configure(&configuration(sessions, config, grant, more));
        host.start_again().await;
        let api = host.api();
        Self { host, api }
    }

    /// Gives the agent another grant, with a restart of the host.
    pub(crate) async fn regrant(&mut self, grant: &str, more: &str) {
        self.host.stop().await;
        self.host.configure(&configuration("", "", grant, more));
        self.host.start_again().await;
    }

    /// A command of the program about the data of the host, by the path from its folder as people write it.
    #[expect(clippy::disallowed_methods, reason = "these tests are about the program itself")]
    pub(crate) fn command(&self, args: &[&str]) -> std::process::Output {
        let mut command = std::process::Command::new(PROGRAM);
        let data = self.host.data();
        command.args(args).arg("--data").arg(data.strip_prefix(self.host.folder()).unwrap());
        command.current_dir(self.host.folder()).env_remove("GREENROOM_DATA").output().unwrap()
    }

    /// The JSON that a command prints.
    pub(crate) fn printed(&self, args: &[&str]) -> Value {
        let output = self.command(args);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    pub(crate) async fn send(&self, conversation: &str, text: &str) -> String {
        let event = json!({"event_type": "message.received", "agent": "fake",
            "conversation_id": conversation, "actor": {"actor_type": "user", "actor_id": "u1"},
            "input": {"text": text}});
        self.api.send_event(&event).await.run_id.unwrap()
    }

    /// Sends a message and waits for the end of its run.
    pub(crate) async fn play(&self, conversation: &str, text: &str) -> RunView {
        let run_id = self.send(conversation, text).await;
        self.api.ended_run(&run_id).await
    }

    /// The answer to a message.
    pub(crate) async fn ask(&self, conversation: &str, text: &str) -> String {
        let run = self.play(conversation, text).await;
        assert_eq!(run.status, RunStatus::Completed, "{:?}\n{}", run.error, self.host.log());
        self.text(&run.run_id).await
    }

    /// The completed messages of a run.
    pub(crate) async fn text(&self, run_id: &str) -> String {
        let results = self.api.results(run_id).await;
        let messages = results.iter().filter(|result| result.kind == "message.completed");
        let texts = messages.map(|result| result.data["message"]["content"].as_str().unwrap());
        texts.collect::<Vec<_>>().join("\n")
    }

    pub(crate) async fn data(&self, run_id: &str, kind: &str) -> Vec<Value> {
        let results = self.api.results(run_id).await;
        let of_kind = results.into_iter().filter(|result| result.kind == kind);
        of_kind.map(|result| Value::Object(result.data)).collect()
    }

    /// Waits until a run has said this.
    pub(crate) async fn said(&self, run_id: &str, text: &str) {
        wait_for(&format!("`{text}`"), PATIENCE, async || {
            let deltas = self.data(run_id, "message.delta").await;
            deltas.iter().any(|delta| delta["chunk"]["content"] == text).then_some(())
        })
        .await;
    }

    pub(crate) async fn approvals(&self, run_id: &str) -> Vec<Value> {
        let page = self.api.get(&format!("/v1/approvals?run_id={run_id}")).await;
        page["items"].as_array().unwrap().clone()
    }

    /// Waits for the question of a run.
    pub(crate) async fn asked(&self, run_id: &str) -> Value {
        wait_for("an approval", PATIENCE, async || self.approvals(run_id).await.pop()).await
    }

    pub(crate) async fn answer(&self, approval: &Value, decision: &str) {
        let id = approval["approval_id"].as_str().unwrap();
        let body = json!({"decision": decision, "nonce": approval["nonce"]});
        let request = Request::post(format!("/v1/approvals/{id}"), body.to_string());
        self.api.json(request).await.unwrap();
    }

    /// The outcome of a call of this method, once it is in the audit.
    pub(crate) async fn audited(&self, run_id: &str, method: &str) -> String {
        wait_for("an audit record", PATIENCE, async || {
            let page = self.api.get(&format!("/v1/audit?run_id={run_id}")).await;
            let records = page["items"].as_array().unwrap().iter();
            let mut of_method = records.filter(|record| record["method"] == method);
            of_method.next().map(|record| record["code"].as_str().unwrap().to_owned())
        })
        .await
    }

    /// Whether a process has this argument.
    pub(crate) fn is_argument(&self, argument: &str) -> bool {
        let processes = std::fs::read_dir("/proc").unwrap().flatten();
        let commands = processes.filter_map(|it| std::fs::read(it.path().join("cmdline")).ok());
        let mut words = commands.map(|command| String::from_utf8_lossy(&command).into_owned());
        words.any(|command| command.split('\0').any(|word| word == argument))
    }

    /// Waits until no process has this argument.
    pub(crate) async fn gone(&self, argument: &str) {
        wait_for(&format!("the end of `{argument}`"), PATIENCE, async || {
            (!self.is_argument(argument)).then_some(())
        })
        .await;
    }
}

fn configuration(sessions: &str, config: &str, grant: &str, more: &str) -> String {
    format!(
        r#"
[limits]
cancel_grace_s = 2
[runners.fake]
wire = "acp"
command = ["python3", "fake.py"]
network = false
sessions = {{ {sessions} }}
[agents.fake]
runner = "plugin:harness/fake/default"
events = []
config = {{ keys = "own"{config} }}
grant = {{ {grant} }}
{more}
"#
    )
}
