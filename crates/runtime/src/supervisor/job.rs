//! The protocol between the host and a supervisor: one JSON line each way over the control socket.
//!
//! Invariant: secrets of the runner's environment are sent here only, never in arguments.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// One runner process to start, from the host.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Job {
    pub(crate) command: Vec<String>,
    pub(crate) dir: PathBuf,
    pub(crate) owns_dir: bool,
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) sandbox: bool,
    pub(crate) paths: Vec<PathBuf>,
    pub(crate) hidden: Vec<PathBuf>,
    pub(crate) processes: u32,
    pub(crate) memory_mb: u64,
    /// Holds `home` and `tmp`; removed at the end.
    pub(crate) private: PathBuf,
    /// The folder that is `HOME` instead, and is kept.
    pub(crate) home: Option<PathBuf>,
    /// The file behind descriptor 1; removed at the end.
    pub(crate) lock: PathBuf,
    /// What confines a child beyond the sandbox of a runner.
    pub(crate) confine: Option<Confine>,
    /// The arguments that make this binary a supervisor, without the program.
    pub(crate) supervisor_args: Vec<String>,
    /// Does everything except starting the program, to report what would confine it.
    pub(crate) probe: bool,
}

/// An unprivileged user where possible, hard limits where the kernel has them, and this network.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Confine {
    pub(crate) network: Network,
}

/// What a child may reach over the network. Unix sockets of other processes are never included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Network {
    Off,
    /// Connections over TCP to this port.
    Port(u16),
    On,
}

/// A report of the supervisor.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Report {
    Started { pid: u32, isolation: String, warnings: Vec<String> },
    Failed { message: String },
    Ended { message: String, how: Ended },
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    Exited(i32),
    /// By a signal that was not ours.
    Killed(i32),
    /// It exceeded a limit, or the host stopped it.
    Stopped,
}

/// Sent by the host as one byte: ask every process of the tree to end.
pub(crate) const TERMINATE: u8 = b't';
