//! A host whose agent is the reference runner, with a scripted model behind a provider's wire.
//!
//! Invariant: what the model was asked is what the provider's side has logged.

use crate::server::{KEY, Server};
use crate::stage::{Stage, config, event, outcome, runners};
use greenroom_protocol::{RunStatus, RunView, TranscriptItem};
use greenroom_testkit::host::TestHost;
use serde_json::Value;

/// What a scene is made of; `..Setting::default()` fills in the rest.
pub(crate) struct Setting<'s> {
    /// The rules of the model.
    pub script: &'s str,
    /// The wire that the model is reached through.
    pub provider: &'s str,
    /// More keys of `[models.main]`.
    pub model: &'s str,
    /// The models that the agent may use.
    pub models: &'s [&'s str],
    /// The agent's `config`, as TOML of an inline table.
    pub config: &'s str,
    /// The agent's grant without its models, as TOML of an inline table's keys.
    pub grant: &'s str,
    pub deadline_s: u32,
    /// More keys of `[agents.agent]`.
    pub agent: &'s str,
    /// More tables of the configuration.
    pub more: &'s str,
    /// Files beside the configuration.
    pub files: &'s [(&'s str, &'s str)],
    /// Variables of the host's environment.
    pub env: &'s [(&'s str, &'s str)],
}

impl Default for Setting<'_> {
    fn default() -> Self {
        Self {
            script: "[[rule]]\nanswer = \"You said: {{text}}\"\n",
            provider: "openai",
            model: "",
            models: &["main"],
            config: "{}",
            grant: "tools = [\"forge.*\"]",
            deadline_s: 60,
            agent: "",
            more: "",
            files: &[],
            env: &[],
        }
    }
}

pub(crate) struct Scene {
    pub stage: Stage,
    pub server: Server,
}

impl Setting<'_> {
    /// Starts the provider and the host: agent `agent`, model `main`, and the tools of the plugin `forge`.
    pub(crate) async fn open(&self) -> Scene {
        let server = Server::start(self.script);
        let Self { provider, model, models, config: settings, grant, agent, more, .. } = self;
        let deadline_s = self.deadline_s;
        let smith = runners().join("smith.py");
        let tables = format!(
            "{}\n[runners.forge]\ncommand = [\"python3\", \"{}\"]\ndir = \"other\"\n\
             [agents.agent]\nrunner = \"plugin:greenroom/local-agent/default\"\nevents = []\n\
             deadline_s = {deadline_s}\nconfig = {settings}\ngrant = {{ models = {models:?}, {grant} }}\n{agent}\n{more}\n",
            server.model("main", provider, model),
            smith.display(),
        );
        let mut host = TestHost::prepare(crate::PROGRAM, &config("cancel_grace_s = 1", &tables));
        self.env.iter().for_each(|(name, value)| host.set_env(name, value));
        std::fs::write(host.folder().join("key"), KEY).unwrap();
        for (name, text) in self.files {
            let path = host.folder().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        Scene { stage: Stage::with(host).await, server }
    }
}

impl Scene {
    /// Says something to the agent, and waits for the end of the run.
    pub(crate) async fn say(&self, conversation: &str, text: &str) -> RunView {
        let run_id = self.stage.send(&event("agent", conversation, text)).await;
        self.stage.api.ended_run(&run_id).await
    }

    /// The agent's last answer to what is said; the run must complete.
    pub(crate) async fn answer(&self, conversation: &str, text: &str) -> String {
        let run = self.say(conversation, text).await;
        let log = || self.stage.host.log();
        assert_eq!(outcome(&run), (RunStatus::Completed, ""), "{run:?}\n{}", log());
        self.stage.api.answers(conversation).await.pop().unwrap()
    }

    pub(crate) async fn history(&self, conversation: &str) -> Vec<TranscriptItem> {
        self.stage.api.history(conversation).await
    }

    /// The bodies of all requests to the model so far.
    pub(crate) fn requests(&self) -> Vec<Value> {
        self.server.requests("")
    }

    /// The messages of each request so far, on the wire of chat completions.
    pub(crate) fn asked(&self) -> Vec<Vec<Value>> {
        let messages = |request: Value| request["messages"].as_array().unwrap().clone();
        self.requests().into_iter().map(messages).collect()
    }
}
