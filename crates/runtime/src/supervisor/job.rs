//! The protocol between the host and a supervisor: one JSON line each way over the control socket.
//!
//! Invariant: secrets of the runner's environment are sent here only, never in arguments.

use super::domain::{Domain, Sandbox, Without};
use greenroom_config::{Destination, NetworkAccess};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

/// One process to start, from the host: a runner, an MCP server, or a method of a module.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Job {
    /// Its name in the configuration.
    pub(crate) name: String,
    pub(crate) command: Vec<String>,
    pub(crate) dir: PathBuf,
    pub(crate) owns_dir: bool,
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) sandbox: Sandbox,
    /// Whether its programs see each other in `/proc`, and themselves.
    pub(crate) own_processes: bool,
    /// Whether it starts sessions that are to be apart from each other.
    pub(crate) sessions_apart: bool,
    /// Readable besides what its command needs.
    pub(crate) read: Vec<PathBuf>,
    pub(crate) paths: Vec<PathBuf>,
    pub(crate) hidden: Vec<PathBuf>,
    pub(crate) processes: u32,
    /// Limit on the threads of the tree.
    pub(crate) threads: u64,
    pub(crate) memory_mb: u64,
    /// Limit on what is in `dir`, if it owns that, and in its private folders.
    pub(crate) disk_mb: u64,
    /// The same for the number of files and folders.
    pub(crate) files: u64,
    /// Holds `home` and `tmp`; removed at the end.
    pub(crate) private: PathBuf,
    /// The folder that is `HOME` instead, and is kept.
    pub(crate) home: Option<PathBuf>,
    /// The file behind descriptor 1; removed at the end.
    pub(crate) lock: PathBuf,
    /// What it may reach over the network.
    pub(crate) network: Network,
    /// The unprivileged user that it becomes on a host that runs as root.
    pub(crate) user: Option<u32>,
    /// The arguments that make this binary a supervisor, without the program.
    pub(crate) supervisor_args: Vec<String>,
    /// Does everything except starting the program, to report what would confine it.
    pub(crate) probe: bool,
    pub(crate) without: Without,
}

/// `nobody`, the user that should own no file.
pub(crate) const NOBODY: u32 = 65_534;

/// What a process may reach over the network. Unix sockets of other processes are never included.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Network {
    /// No internet sockets at all.
    #[default]
    Off,
    /// The host and a list, over TCP.
    Only(Allowed),
    On,
}

/// What a process may reach.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Allowed {
    /// The host's own address.
    pub host: Option<SocketAddr>,
    pub list: Vec<Destination>,
}

impl Network {
    /// Nothing but the host.
    pub fn host(address: SocketAddr) -> Self {
        Self::Only(Allowed { host: Some(address), list: Vec::new() })
    }

    /// What the configuration gives to a process of the host at this address.
    pub fn of(access: &NetworkAccess, host: Option<SocketAddr>) -> Self {
        match (access, host) {
            (NetworkAccess::All, _) => Self::On,
            (NetworkAccess::None, None) => Self::Off,
            (NetworkAccess::None, Some(host)) => Self::host(host),
            (NetworkAccess::Only(list), host) => Self::Only(Allowed { host, list: list.clone() }),
        }
    }
}

/// A listener of a process, and where its connections lead.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Way {
    Forward(SocketAddr),
    /// To the list, by what each request names.
    Proxy {
        password: Option<String>,
    },
}

/// A report of the supervisor.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Report {
    Started { pid: u32, domain: Domain, warnings: Vec<String> },
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
