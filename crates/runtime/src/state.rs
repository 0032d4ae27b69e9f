//! What the runtime reports about its runners.
//!
//! Invariant: everything here is a snapshot.

use greenroom_protocol::AgentRunnerManifest;
use serde::Serialize;
use std::sync::Arc;
use std::time::SystemTime;

/// A runner that the host may use, as its process declared it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Descriptor {
    pub manifest: AgentRunnerManifest,
    /// The name in the configuration.
    pub runner: Arc<str>,
    /// `author/name`, as declared.
    pub plugin: Arc<str>,
    pub plugin_version: String,
    /// The isolation of the process: e.g. `landlock:7+view+…`, `off`, `remote`.
    pub isolation: Arc<str>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "status")]
pub enum RunnerStatus {
    Starting,
    Ready,
    BackingOff {
        retry_in_ms: u64,
    },
    /// Being replaced or stopped while its last runs end.
    Draining,
    Stopped,
    /// A remote runner that has not connected.
    Disconnected,
}

/// One runner of the configuration.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunnerState {
    pub name: String,
    #[serde(flatten)]
    pub status: RunnerStatus,
    pub plugin: Option<String>,
    pub version: Option<String>,
    pub pid: Option<u32>,
    pub restarts: u64,
    /// Why it does not serve.
    pub last_error: Option<String>,
    /// When and why it was last started again, even if it serves now.
    #[serde(skip)]
    pub last_failure: Option<(SystemTime, String)>,
    pub runs_in_flight: usize,
    pub isolation: Option<String>,
    pub descriptors: Vec<Arc<Descriptor>>,
    pub warnings: Vec<String>,
    /// It has listed its tools, even if there are none.
    #[serde(skip)]
    pub tools_listed: bool,
}

/// Why a run cannot be given to a runner now.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Unavailable {
    pub message: String,
}

impl Unavailable {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into() }
    }
}
