//! What the host gives the process when it starts it: which harness, and how many sessions.
//!
//! Invariant: no secret is among the settings, they are readable in the list of processes.

use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use std::path::PathBuf;

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
    /// How sessions are kept apart; none: they share the sandbox of the runner.
    #[serde(default)]
    pub wall: Option<Wall>,
}

/// What surrounds each session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wall {
    /// Starts a session; the number of a socket is its last argument.
    pub command: Vec<String>,
    /// Whether a session has a network of its own, with nothing but its gateway and `listen`.
    pub isolated: bool,
    /// Servers that sessions reach by their address.
    pub listen: Vec<SocketAddr>,
    /// Open to all sessions for reading and writing.
    pub paths: Vec<PathBuf>,
    /// Open to all sessions for reading: the harness.
    pub read: Vec<PathBuf>,
    /// Folders and repositories of agents, of which a session has only its own.
    pub given: Vec<PathBuf>,
}
