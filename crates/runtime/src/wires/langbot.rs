//! The LangBot wire: runs plugins of that host unchanged.
//!
//! Invariant: a plugin is identified by the secret that its process was started with and by the pin of the
//! configuration; its actions pass the same proxy as every call, under other names.

mod actions;
pub(super) mod card;
mod chain;
mod chunks;
mod commands;
mod content;
mod context;
pub(super) mod decoder;
pub(super) mod event_tools;
pub(super) mod frames;
pub(super) mod handshake;
pub(crate) mod listeners;
pub(crate) mod manifest;
mod messages;
mod numbers;
mod own;
pub(super) mod pairing;
mod records;
mod replies;
mod results;
mod sdk;
pub(super) mod serve;
mod stream;
pub(super) mod tools;

use crate::supervisor::Sandbox;
use crate::wires::RunMemory;
use bytes::Bytes;
use context::LangbotContext;
use event_tools::EventParties;
use frames::Part;
use greenroom_protocol::{AgentAPIError, AgentRunRequest, ErrorCode, Object};
use manifest::Contents;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use stream::Flow;
use tokio::sync::{Semaphore, SemaphorePermit, watch};

/// The variable with the secret that a plugin registers with.
pub(crate) const SECRET_VARIABLE: &str = "LANGBOT_PLUGIN_REGISTRATION_CAPABILITY";
/// The arguments after the interpreter in the command of a plugin.
const ARGUMENTS: [&str; 5] = ["-m", "langbot_plugin.cli", "run", "-s", "--prod"];
/// Given to the interpreter instead of the module's name.
const START: &str = include_str!("langbot/start.py");
/// Comes first in a sandbox: without `dir_fd` support the SDK does not open every folder from the root to its
/// own, which a sandbox does not allow.
const CONFINED: &str = "import os; os.supports_dir_fd.discard(os.link)\n";
/// What plugins may rely on beyond the actions, under LangBot's names.
const API_FEATURES: [&str; 1] = ["llm.reasoning_level"];
/// Requests that a plugin gets at once: it serves 128, and some of those may be ending.
const REQUESTS_MAX: usize = 124;
/// Those of them that are calls of its tools, if it has any; the others are runs.
const TOOL_CALLS_MAX: usize = 48;

/// The command that starts a plugin, from an interpreter alone or from the full command of the SDK.
pub(crate) fn command(configured: &[String], sandbox: Sandbox) -> Vec<String> {
    let Some((interpreter, rest)) = configured.split_first() else { return Vec::new() };
    if !rest.is_empty() && rest != ARGUMENTS {
        return configured.to_vec();
    }
    let start = match sandbox {
        Sandbox::On | Sandbox::Required => [CONFINED, START].concat(),
        Sandbox::Off => START.to_owned(),
    };
    let arguments = ARGUMENTS[2..].iter().map(|word| (*word).to_owned());
    [interpreter.clone(), "-c".to_owned(), start].into_iter().chain(arguments).collect()
}

/// The two dialects of LangBot runners.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// Dialect A, of the protocol's first document.
    AgentRunner,
    /// Dialect B, of the published SDK.
    #[default]
    Runner,
}

impl Dialect {
    fn kind(self) -> &'static str {
        match self {
            Dialect::AgentRunner => "AgentRunner",
            Dialect::Runner => "Runner",
        }
    }

    fn run_action(self) -> &'static str {
        match self {
            Dialect::AgentRunner => "run_agent",
            Dialect::Runner => "run_runner",
        }
    }
}

/// What one runner of a plugin supports.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct RunnerProfile {
    pub(crate) dialect: Dialect,
    /// Whether it handles events, and may hence reply to them by a call.
    pub(crate) replies: bool,
    /// Whether it may ask with forms.
    pub(crate) asks: bool,
    /// Whether it stands for the commands of its plugin.
    pub(crate) is_commands: bool,
}

/// The plugin on the other end of a connection.
pub(crate) struct Session {
    secret: String,
    host_version: String,
    sdk_version: Option<String>,
    /// Its settings in the configuration.
    plugin_config: Object,
    /// The container that the plugin registered with.
    registered: watch::Sender<Option<Arc<Value>>>,
    profiles: OnceLock<BTreeMap<String, RunnerProfile>>,
    /// Whether it has listeners, and whether it has tools.
    listens: OnceLock<bool>,
    has_tools: OnceLock<bool>,
    tool_calls: Semaphore,
    /// Streaming calls in flight, by the id of their request.
    streams: Mutex<HashMap<String, Arc<Flow>>>,
}

impl Session {
    /// For a process that is about to start with this interpreter.
    pub(crate) fn new(
        interpreter: &Path,
        host_version: &str,
        plugin_config: Object,
    ) -> Result<Self, getrandom::Error> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes)?;
        Ok(Self {
            secret: hex(&bytes),
            host_version: host_version.to_owned(),
            sdk_version: sdk::version(interpreter),
            plugin_config,
            registered: watch::Sender::new(None),
            profiles: OnceLock::new(),
            listens: OnceLock::new(),
            has_tools: OnceLock::new(),
            tool_calls: Semaphore::new(TOOL_CALLS_MAX),
            streams: Mutex::default(),
        })
    }

    /// How many runs the plugin gets at once.
    pub(crate) fn runs_max(&self) -> usize {
        match self.has_tools.get() {
            Some(true) => REQUESTS_MAX - TOOL_CALLS_MAX,
            _ => REQUESTS_MAX,
        }
    }

    /// Waits until the plugin has room for a call of a tool.
    pub(crate) async fn room_for_tool_call(&self) -> Option<SemaphorePermit<'_>> {
        self.tool_calls.acquire().await.ok()
    }

    /// Passed to the process in its environment.
    pub(crate) fn secret(&self) -> &str {
        &self.secret
    }

    pub(crate) fn version(&self) -> Value {
        json!({"version": self.host_version, "api_features": API_FEATURES})
    }

    /// The answer to an action about plugins and their components, once the plugin has registered.
    pub(crate) fn listed(&self, action: &str) -> Option<Value> {
        own::listed(action, self.registered.borrow().as_ref()?)
    }

    /// Registers the plugin, which proves that it is the process that was started.
    pub(crate) fn register(&self, data: &RawValue) -> Result<(), AgentAPIError> {
        #[derive(Deserialize)]
        struct Registration {
            #[serde(default)]
            registration_capability: String,
            #[serde(default)]
            plugin_container: Value,
        }
        let invalid = |error: serde_json::Error| {
            AgentAPIError::new(ErrorCode::InvalidArgument, error.to_string())
        };
        let told: Registration = serde_json::from_str(data.get()).map_err(invalid)?;
        let refuse = |message: &str| Err(AgentAPIError::new(ErrorCode::Unauthorized, message));
        if !is_same(told.registration_capability.as_bytes(), self.secret.as_bytes()) {
            return refuse("this is not the secret that the process was started with");
        }
        let first = self.registered.send_if_modified(|registered| {
            let first = registered.is_none();
            registered.get_or_insert_with(|| Arc::new(told.plugin_container));
            first
        });
        if first { Ok(()) } else { refuse("the plugin has registered already") }
    }

    fn settle(&self, contents: &Contents) {
        // Set once per connection, by its handshake.
        let _ = self.profiles.set(contents.profiles.clone());
        let _ = self.listens.set(contents.listens);
        let _ = self.has_tools.set(!contents.tools.tools.is_empty());
    }

    /// The profile of a runner of this plugin.
    pub(crate) fn profile(&self, runner: &str) -> RunnerProfile {
        let known = self.profiles.get().and_then(|profiles| profiles.get(runner));
        known.copied().unwrap_or_default()
    }

    /// Keeps the parties of the event for a run that may ask about them.
    pub(crate) fn remember(&self, memory: &RunMemory, request: &AgentRunRequest) {
        let profile = self.profile(&request.runner_name);
        // Both are set once per run, when it starts.
        let _ = memory.profile.set(profile);
        if profile.replies {
            let _ = memory.event.set(EventParties::of(&request.context));
        }
    }

    pub(crate) fn run(&self, number: i64, request: &AgentRunRequest) -> Bytes {
        #[derive(Serialize)]
        struct Start<'a> {
            runner_name: &'a str,
            context: LangbotContext<'a>,
        }
        let profile = self.profile(&request.runner_name);
        if profile.is_commands {
            let command = commands::request(number, &request.context);
            return frames::request(number, "execute_command", &command);
        }
        let context = LangbotContext::new(&request.context, profile, &self.host_version);
        let start = Start { runner_name: &request.runner_name, context };
        frames::request(number, profile.dialect.run_action(), &start)
    }

    /// Encodes one item of a stream, once the plugin has room for it.
    pub(crate) async fn item(&self, request_id: &str, item: &RawValue) -> Option<Bytes> {
        let flow = lock(&self.streams).get(request_id).cloned()?;
        let item: Value = serde_json::from_str(item.get()).ok()?;
        let chunk = flow.chunk(&item)?.to_string();
        let index = flow.next().await;
        Some(frames::success(request_id, &chunk, Part::Continue, index))
    }

    fn open_stream(&self, request_id: &str, flow: Arc<Flow>) {
        lock(&self.streams).insert(request_id.to_owned(), flow);
    }

    /// Closes a stream, unless another one has its id.
    fn close_stream(&self, request_id: &str, flow: &Arc<Flow>) {
        let mut streams = lock(&self.streams);
        if streams.get(request_id).is_some_and(|open| Arc::ptr_eq(open, flow)) {
            streams.remove(request_id);
        }
    }

    /// The plugin acknowledges everything up to `index`; returns whether that is possible.
    pub(crate) fn acknowledged(&self, request_id: &str, index: u64) -> bool {
        let flow = lock(&self.streams).get(request_id).cloned();
        flow.is_some_and(|flow| flow.acknowledge(index))
    }
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Never the secret.
        write!(f, "Session({:?})", self.sdk_version)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Compares in constant time.
fn is_same(one: &[u8], other: &[u8]) -> bool {
    let differs = one.iter().zip(other).fold(0, |found, (a, b)| found | (a ^ b));
    one.len() == other.len() && differs == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::value::to_raw_value;

    #[test]
    fn an_interpreter_is_told_to_run_the_sdk_and_a_whole_command_is_its_own() {
        let words =
            |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let full = words(&["py", "-m", "langbot_plugin.cli", "run", "-s", "--prod"]);
        for configured in [words(&["py"]), full] {
            for sandbox in [Sandbox::On, Sandbox::Off] {
                let told = command(&configured, sandbox);
                assert_eq!(told[..2], words(&["py", "-c"]));
                assert_eq!(told[2].contains("supports_dir_fd"), sandbox == Sandbox::On);
                assert_eq!(told[3..], words(&["run", "-s", "--prod"]));
            }
        }
        let own = words(&["py", "fake.py"]);
        assert_eq!(command(&own, Sandbox::On), own);
    }

    #[test]
    fn only_the_process_with_the_secret_registers_and_only_once() {
        let session = Session::new(Path::new("python3"), "0.1.0", Object::new()).unwrap();
        let register = |secret: &str| {
            let data = json!({"registration_capability": secret, "plugin_container": {"a": 1}});
            session.register(&to_raw_value(&data).unwrap())
        };
        assert_eq!(register("").unwrap_err().code, ErrorCode::Unauthorized);
        assert_eq!(register(&"0".repeat(64)).unwrap_err().code, ErrorCode::Unauthorized);
        assert_eq!(register(session.secret()), Ok(()));
        assert_eq!(register(session.secret()).unwrap_err().code, ErrorCode::Unauthorized);
        assert_eq!(**session.registered.borrow().as_ref().unwrap(), json!({"a": 1}));
        assert!(!format!("{session:?}").contains(session.secret()));
    }
}
