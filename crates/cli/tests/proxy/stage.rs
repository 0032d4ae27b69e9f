//! A host whose runners are relays: their wires end in the test.
//!
//! Invariant: the sockets are there before the host starts, so that a relay never finds nobody; a test waits
//! for facts, never for time.

use crate::PROGRAM;
use crate::wire::{Run, Wire};
use greenroom_testkit::api::Api;
use greenroom_testkit::host::TestHost;
use greenroom_testkit::http::Request;
use greenroom_testkit::receiver::Receiver;
use greenroom_testkit::wait::wait_for;
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;
use tokio::net::UnixListener;

pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// Everything that a binding can grant.
pub(crate) const ALL: &str = r#"history = "conversation", event_log = "conversation", artifacts = "conversation", state = ["conversation", "actor", "subject", "runner", "binding"], storage = ["plugin", "binding", "workspace"], actions = { "message.send" = "always", "message.react" = "ask" }"#;
/// The same as far as the workspace reaches.
pub(crate) const WIDE: &str = r#"history = "workspace", event_log = "workspace", artifacts = "workspace", state = ["conversation", "actor", "subject", "runner", "binding"], storage = ["plugin", "binding", "workspace"], actions = { "message.send" = "always", "message.react" = "ask" }"#;
/// Nothing, said key by key, as an absent key means more.
pub(crate) const NOTHING: &str = r#"models = [], tools = [], knowledge = [], history = "none", event_log = "none", artifacts = "none", state = [], storage = [], actions = {}, harness = { read = "never" }"#;

pub(crate) struct Stage {
    pub host: TestHost,
    pub api: Api,
    pub receiver: Receiver,
    listeners: Vec<(String, UnixListener)>,
}

impl Stage {
    /// A host with a relay for each name and with the agents and limits given.
    pub(crate) async fn open(relays: &[&str], limits: &str, agents: &str) -> Self {
        Self::open_on(None, relays, limits, agents).await
    }

    /// The same on a PostgreSQL database, if one is given.
    pub(crate) async fn open_on(
        postgres: Option<&str>,
        relays: &[&str],
        limits: &str,
        agents: &str,
    ) -> Self {
        let url = postgres.map(|url| format!("[store]\nurl = \"{url}\"\n"));
        let agents = format!("{agents}{}", url.unwrap_or_default());
        let agents = agents.as_str();
        let receiver = Receiver::start().await;
        let mut host = TestHost::prepare(PROGRAM, "");
        let mut listeners = Vec::new();
        for name in relays {
            let folder = host.folder().join(name);
            std::fs::create_dir(&folder).unwrap();
            let listener = UnixListener::bind(folder.join("wire")).unwrap();
            listeners.push(((*name).to_owned(), listener));
        }
        let api = host.api();
        host.configure(&config(host.folder(), &receiver, relays, limits, agents));
        host.start_again().await;
        Self { host, api, receiver, listeners }
    }

    /// Writes another configuration beside the same relays; it is in force once an agent is there that only
    /// it has.
    pub(crate) async fn reconfigure(&self, limits: &str, agents: &str, sign: &str) {
        let names: Vec<&str> = self.listeners.iter().map(|(name, _)| name.as_str()).collect();
        let sign_agent = agent(sign, "plugin:greenroom/echo/default", "", "");
        let agents = format!("{agents}{sign_agent}");
        self.host.configure(&config(self.host.folder(), &self.receiver, &names, limits, &agents));
        wait_for("the new configuration", PATIENCE, async || {
            let agents = self.api.get("/v1/agents").await;
            agents["items"].as_array().unwrap().iter().any(|it| it["name"] == sign).then_some(())
        })
        .await;
    }

    /// The next connection of a relay, before anything was said.
    pub(crate) async fn accept(&self, name: &str) -> Wire {
        let listener = &self.listeners.iter().find(|(relay, _)| relay == name).unwrap().1;
        let accepted = tokio::time::timeout(PATIENCE, listener.accept()).await;
        Wire::over(accepted.expect("the relay connects in time").unwrap().0)
    }

    /// The next connection of a relay, as the plugin `test/NAME` with the usual runners.
    pub(crate) async fn connect(&self, name: &str) -> Wire {
        let wire = self.accept(name).await;
        wire.shake_hands(&format!("test/{name}")).await;
        wire
    }

    /// Sends an event and takes its run from the wire that it is given to.
    pub(crate) async fn start(&self, wire: &Wire, event: &Value) -> Run {
        let answer = self.api.send_event(event).await;
        assert_eq!(answer.status.as_str(), "running", "{event}");
        let run = wire.next_run().await;
        assert_eq!(Some(&run.id), answer.run_id.as_ref());
        run
    }

    /// Ends a run properly and waits until the host has it.
    pub(crate) async fn end(&self, wire: &Wire, run: &Run) {
        wire.finish(run).await;
        let workspace = run.context["conversation"]["workspace_id"].as_str().unwrap();
        let target = format!("/v1/runs/{}?workspace_id={workspace}", run.id);
        wait_for("the end of a run", PATIENCE, async || {
            let status = self.api.get(&target).await["status"].clone();
            assert!(status == "running" || status == "completed", "{status}");
            (status == "completed").then_some(())
        })
        .await;
    }

    pub(crate) async fn cancel(&self, run_id: &str) {
        let request = Request::post(format!("/v1/runs/{run_id}/cancel"), "");
        assert_eq!(self.api.json(request).await.unwrap().0, 200);
    }

    /// All audit records of a workspace, newest first.
    pub(crate) async fn audit(&self, workspace: &str) -> Vec<Value> {
        let target = format!("/v1/audit?limit=200&workspace_id={workspace}");
        let mut records = Vec::new();
        let mut next = target.clone();
        loop {
            let page = self.api.get(&next).await;
            records.extend(page["items"].as_array().unwrap().iter().cloned());
            match page["next_cursor"].as_str().filter(|_| page["has_more"] == true) {
                Some(cursor) => next = format!("{target}&cursor={cursor}"),
                None => return records,
            }
        }
    }

    /// Uploads bytes that belong to nothing but their workspace.
    pub(crate) async fn upload(&self, query: &str, text: &str) -> String {
        let mut request = Request::post(format!("/v1/artifacts?{query}"), text);
        request.headers = vec![("content-type", "text/plain".to_owned())];
        let (_, artifact) = self.api.json(request).await.unwrap();
        artifact["artifact_id"].as_str().unwrap().to_owned()
    }

    /// The host has neither died nor said that something of its own broke.
    pub(crate) fn assert_sound(&mut self) {
        assert!(!self.host.is_dead(), "{}", self.host.log());
        let log = self.host.log();
        for word in ["panicked", "PANIC", "overflowed its stack"] {
            assert!(!log.contains(word), "{log}");
        }
    }
}

fn config(
    folder: &Path,
    receiver: &Receiver,
    relays: &[&str],
    limits: &str,
    agents: &str,
) -> String {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/proxy/runners/relay.py");
    let store = if agents.contains("[store]") { "" } else { "[store]\nsync = \"normal\"\n" };
    let mut text = format!(
        "{store}[limits]\ncancel_grace_s = 60\n{limits}\n\
         [surfaces.hook]\nkind = \"webhook\"\nurl = \"{}\"\nallow_private = true\n\
         max_message_size = 2000\nactions = [\"message.send\", \"message.react\"]\n",
        receiver.url()
    );
    for name in relays {
        let wire = folder.join(name).join("wire");
        text += &format!(
            "[runners.{name}]\ncommand = [\"python3\", \"{}\", \"{}\"]\ndir = \"{name}\"\nsandbox = \"off\"\n",
            script.display(),
            wire.display()
        );
    }
    text + agents
}

/// An agent that is taken when named, with further keys and a grant.
pub(crate) fn agent(name: &str, runner: &str, more: &str, grant: &str) -> String {
    format!("[agents.{name}]\nrunner = \"{runner}\"\nevents = []\n{more}\ngrant = {{ {grant} }}\n")
}

/// Runners of a plugin: `main` asks for everything, `bare` for nothing.
pub(crate) fn manifests(plugin: &str) -> Value {
    let everything = json!({"models": ["invoke", "stream", "rerank", "embed"],
        "tools": ["detail", "call"], "knowledge_bases": ["list", "retrieve"],
        "history": ["page", "search"], "events": ["get", "page"],
        "artifacts": ["metadata", "read", "create"],
        "storage": ["plugin", "binding", "workspace"],
        "platform_api": ["message.send", "message.react"], "harness": ["ask"]});
    let runner = |name: &str, permissions: Value, steering: bool| {
        json!({"id": format!("plugin:{plugin}/{name}"), "name": name, "label": {"en_US": name},
            "capabilities": {"steering": steering}, "permissions": permissions})
    };
    json!([runner("main", everything, true), runner("bare", json!({}), false)])
}

/// A message of one user about one subject, answered through the hook.
pub(crate) fn event(agent: &str, conversation: &str) -> Value {
    json!({"event_type": "message.received", "agent": agent, "conversation_id": conversation,
        "actor": {"actor_type": "user", "actor_id": "u1"},
        "subject": {"subject_type": "ticket", "subject_id": "t1"},
        "delivery": {"surface": "hook"}, "input": {"text": "a word about whales"}})
}

/// Declares a test on SQLite and one on PostgreSQL.
macro_rules! on_both_databases {
    ($($name:ident),+ $(,)?) => {$(
        mod $name {
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn on_sqlite() {
                super::$name(None).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn on_postgresql() {
                let fresh = greenroom_testkit::postgres::Database::fresh;
                let database = tokio::task::spawn_blocking(fresh).await.unwrap();
                super::$name(Some(&database.url)).await;
            }
        }
    )+};
}
pub(crate) use on_both_databases;
