//! Settings of the runtime: runners, folders and limits.
//!
//! Invariant: every bound of this crate is a field of `Limits`: those that can be configured in
//! `Limits::configured`, the others with their default here.

use crate::process::{ProcessFiles, plain};
use crate::quote::Cleaner;
use crate::supervisor::job::{Job, Network};
use crate::supervisor::{Sandbox, UserIds, Without};
use crate::wires;
use greenroom_protocol::Object;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

/// The wire that a runner speaks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Wire {
    /// JSON-RPC, as in the contract.
    #[default]
    Native,
    /// The wire of LangBot plugins.
    Langbot,
}

/// One `[runners.NAME]`. Two equal specs need no restart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunnerSpec {
    pub name: String,
    /// Empty for a remote runner, which connects by WebSocket. A LangBot plugin needs the interpreter only.
    pub command: Vec<String>,
    pub wire: Wire,
    pub dir: PathBuf,
    /// Whether it may write in `dir`, or only read there.
    pub owns_dir: bool,
    pub env: BTreeMap<String, String>,
    /// `author/name`: what the process must declare itself to be.
    pub plugin: Option<String>,
    /// Settings of a LangBot plugin.
    pub plugin_config: Object,
    /// Agents whose events the listeners of a LangBot plugin get.
    pub listens: BTreeSet<String>,
    pub sandbox: Sandbox,
    /// Whether its programs see each other in `/proc`, and themselves.
    pub own_processes: bool,
    /// Whether it starts sessions that are to be apart from each other: it is not started where they cannot be.
    pub sessions_apart: bool,
    /// Readable besides what its command needs.
    pub read: Vec<PathBuf>,
    /// Readable and writable besides `dir`.
    pub paths: Vec<PathBuf>,
    /// Those of `paths` that do not exist: once one does, the process needs a new sandbox to see it.
    pub absent_paths: Vec<PathBuf>,
    /// Folders and files hidden from it besides `Settings::hidden`, even inside `dir` or `paths`.
    pub hidden: Vec<PathBuf>,
    /// Limit on the processes of the tree.
    pub processes: u32,
    /// Limit on the threads of the tree.
    pub threads: u64,
    /// Limit on the memory of the tree.
    pub memory_mb: u64,
    /// Limit on what is in its own folder and its private ones.
    pub disk_mb: u64,
    /// Limit on the files and folders there.
    pub files: u64,
    pub network: Network,
    /// When files of the command last changed: a newer process is started beside the old one.
    pub changed_at: Option<SystemTime>,
    /// When the newest hidden file within its reach changed.
    pub hidden_at: Option<SystemTime>,
}

impl Default for RunnerSpec {
    fn default() -> Self {
        Self {
            name: String::new(),
            command: Vec::new(),
            wire: Wire::default(),
            dir: PathBuf::new(),
            owns_dir: true,
            env: BTreeMap::new(),
            plugin: None,
            plugin_config: Object::new(),
            listens: BTreeSet::new(),
            sandbox: Sandbox::On,
            own_processes: false,
            sessions_apart: false,
            read: Vec::new(),
            paths: Vec::new(),
            absent_paths: Vec::new(),
            hidden: Vec::new(),
            processes: 64,
            threads: 2048,
            memory_mb: 2048,
            disk_mb: 10_240,
            files: 500_000,
            network: Network::On,
            changed_at: None,
            hidden_at: None,
        }
    }
}

impl RunnerSpec {
    /// The program that is started, as far as its path is known.
    pub(crate) fn program(&self) -> PathBuf {
        self.dir.join(self.command.first().map_or("", String::as_str))
    }

    pub(crate) fn job(&self, hidden: &[PathBuf], place: ProcessFiles, settings: &Settings) -> Job {
        Job {
            name: self.name.clone(),
            command: wires::command(self),
            dir: self.dir.clone(),
            owns_dir: self.owns_dir,
            env: self.env.clone(),
            sandbox: self.sandbox,
            own_processes: self.own_processes,
            sessions_apart: self.sessions_apart,
            read: self.read.clone(),
            paths: self.paths.clone(),
            hidden: hidden.to_vec(),
            processes: self.processes,
            threads: self.threads,
            memory_mb: self.memory_mb,
            disk_mb: self.disk_mb,
            files: self.files,
            private: place.private,
            home: None,
            lock: place.lock,
            network: self.network.clone(),
            user: Some(settings.user_of("runner", &self.name)),
            supervisor_args: settings.supervisor_args(),
            probe: false,
            without: settings.without,
        }
    }
}

#[derive(Debug, Clone)]
pub struct Settings {
    /// The command that runs `supervisor::main`, e.g. this binary and `supervise`.
    pub supervisor: Vec<String>,
    /// Lock files and private folders of runner processes. Homes of tool servers are in `tools` next to it.
    pub run_dir: PathBuf,
    /// Hidden from every sandboxed runner: the data folder.
    pub hidden: Vec<PathBuf>,
    pub host_version: String,
    pub limits: Limits,
    pub cleaner: Cleaner,
    /// Users of processes, on a host that runs as root.
    pub users: UserIds,
    /// For tests.
    pub without: Without,
}

impl Settings {
    /// The home of a tool server.
    pub(crate) fn home_of(&self, server: &str) -> PathBuf {
        self.run_dir.with_file_name("tools").join(plain(server))
    }

    /// The user of a process: its own among those of this host, and unlike those of another.
    pub(crate) fn user_of(&self, kind: &str, name: &str) -> u32 {
        self.users.id_of(&format!("{}:{kind}:{name}", self.run_dir.display()))
    }

    /// The arguments that make the program a supervisor.
    pub(crate) fn supervisor_args(&self) -> Vec<String> {
        self.supervisor.iter().skip(1).cloned().collect()
    }
}

#[derive(Debug, Clone)]
pub struct Limits {
    pub configured: greenroom_config::Limits,
    /// Unconsumed results of all runs of one connection.
    pub connection_buffer_bytes_max: usize,
    /// Calls of a runner process at once.
    pub calls_in_flight_max: usize,
    /// Calls of one run at once.
    pub calls_per_run_max: usize,
    /// Bytes of all calls of the process in flight.
    pub calls_bytes_max: usize,
    /// Calls of a plugin's tools at once.
    pub tool_calls_in_flight_max: usize,
    /// Bytes queued for the input of a runner.
    pub queue_bytes_max: usize,
    pub stderr_lines_burst: u32,
    pub stderr_line_bytes_max: usize,
    /// Bytes of stderr that may come at once, in seconds of `stderr_bytes_per_s`.
    pub stderr_burst_s: u32,
    /// How long a process with runners may take to list its tools before it gets runs.
    pub tools_wait: Duration,
    /// How long a process may leave a run unread before it is replaced and unread runs go to its successor.
    pub stdin_stall_timeout: Duration,
    /// From the cancel of a run that cannot be told to stop to its end; and how long a replaced connection
    /// may finish its other runs.
    pub drain_max: Duration,
    /// Replaced processes of one runner that may live on at once.
    pub draining_max: usize,
    /// Each step of stopping a process: `shutdown`, end of input, SIGTERM.
    pub stop_step: Duration,
    pub backoff_min: Duration,
    /// A process that served this long resets the back-off.
    pub healthy_after: Duration,
}

impl Limits {
    /// Programs that run at once; the others wait. Starting a program takes a processor, waiting for it does not.
    pub(crate) fn children_at_once(&self) -> usize {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        match self.configured.tool_processes {
            0 => (4 * processors).max(8),
            processes => processes,
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        greenroom_config::Limits::default().into()
    }
}

impl From<greenroom_config::Limits> for Limits {
    fn from(configured: greenroom_config::Limits) -> Self {
        const MIB: usize = 1024 * 1024;
        Self {
            configured,
            connection_buffer_bytes_max: 128 * MIB,
            calls_in_flight_max: 32_768,
            calls_per_run_max: 1024,
            calls_bytes_max: 256 * MIB,
            tool_calls_in_flight_max: 4096,
            queue_bytes_max: 64 * MIB,
            stderr_lines_burst: 1000,
            stderr_line_bytes_max: 4096,
            stderr_burst_s: 32,
            tools_wait: Duration::from_millis(250),
            stdin_stall_timeout: Duration::from_secs(5),
            drain_max: Duration::from_secs(60),
            draining_max: 4,
            stop_step: Duration::from_secs(1),
            backoff_min: Duration::from_millis(100),
            healthy_after: Duration::from_secs(60),
        }
    }
}
