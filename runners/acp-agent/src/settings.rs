//! What the host gives the process when it starts it: which harness, and how many sessions.
//!
//! Invariant: no secret is among the settings, they are readable in the list of processes.

use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

/// The settings of one runner with `wire = "acp"`, as one JSON argument.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// The name of the runner in the configuration.
    pub name: String,
    /// A built-in profile; none for a written command.
    #[serde(default)]
    pub profile: Option<String>,
    /// The command of the harness; empty: that of the profile.
    #[serde(default)]
    pub command: Vec<String>,
    /// Sessions that are open at the same time.
    pub sessions_max: usize,
    /// A session without a message for this long ends.
    pub idle_s: u64,
    /// A session whose processes use more memory ends.
    pub session_memory_mb: u64,
    /// The host's address, for its gateways.
    #[serde(default)]
    pub host: Option<SocketAddr>,
}
