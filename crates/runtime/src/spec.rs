//! What the runtime is told: runners of the configuration, where things are, and every limit.
//!
//! Invariant: every bound of this crate is a field of `Limits`, with its default here.

use crate::process::{Place, plain};
use crate::quote::Cleaner;
use crate::supervisor::job::Job;
use crate::wires::langbot;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

/// How a runner is spoken to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Wire {
    /// JSON-RPC, as the contract says.
    #[default]
    Native,
    /// As LangBot speaks to its plugins.
    Langbot,
}

/// One `[runners.NAME]`. Two equal specs need no restart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunnerSpec {
    pub name: String,
    /// Empty for a remote runner, which connects by WebSocket. Of a LangBot plugin the interpreter alone does.
    pub command: Vec<String>,
    pub wire: Wire,
    pub dir: PathBuf,
    /// Whether it may write in `dir`, or only read there.
    pub owns_dir: bool,
    pub env: BTreeMap<String, String>,
    /// `author/name`: what the process must declare itself to be.
    pub plugin: Option<String>,
    pub sandbox: bool,
    /// Readable and writable beside `dir`.
    pub paths: Vec<PathBuf>,
    /// Those of `paths` that do not exist: once one does, a process needs a new sandbox to see it.
    pub absent_paths: Vec<PathBuf>,
    /// Folders and files kept from it beside `Settings::hidden`, even where `dir` or `paths` contain them.
    pub hidden: Vec<PathBuf>,
    /// Cap on the processes of the tree.
    pub processes: u32,
    /// Cap on the resident memory of the tree.
    pub memory_mb: u64,
    /// When the files of the command last changed: a newer one is started beside the old.
    pub changed_at: Option<SystemTime>,
    /// When the newest of the hidden files within its reach was.
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
            sandbox: true,
            paths: Vec::new(),
            absent_paths: Vec::new(),
            hidden: Vec::new(),
            processes: 64,
            memory_mb: 2048,
            changed_at: None,
            hidden_at: None,
        }
    }
}

impl RunnerSpec {
    /// The command as it is started.
    fn full_command(&self) -> Vec<String> {
        match self.wire {
            Wire::Native => self.command.clone(),
            Wire::Langbot => langbot::command(&self.command, self.sandbox),
        }
    }

    /// The program that is started, as far as its place is known.
    pub(crate) fn program(&self) -> PathBuf {
        self.dir.join(self.command.first().map_or("", String::as_str))
    }

    pub(crate) fn job(&self, hidden: &[PathBuf], place: Place, settings: &Settings) -> Job {
        Job {
            command: self.full_command(),
            dir: self.dir.clone(),
            owns_dir: self.owns_dir,
            env: self.env.clone(),
            sandbox: self.sandbox,
            paths: self.paths.clone(),
            hidden: hidden.to_vec(),
            processes: self.processes,
            memory_mb: self.memory_mb,
            private: place.private,
            home: None,
            lock: place.lock,
            confine: None,
            supervisor_args: settings.supervisor_args(),
            probe: false,
        }
    }
}

#[derive(Debug, Clone)]
pub struct Settings {
    /// The command that runs `supervisor::main`, e.g. the own binary and `supervise`.
    pub supervisor: Vec<String>,
    /// Lock files and private folders of runner processes. Beside it, in `tools`, are the homes of tool servers.
    pub run_dir: PathBuf,
    /// Kept from every sandboxed runner: the data folder.
    pub hidden: Vec<PathBuf>,
    pub host_version: String,
    pub limits: Limits,
    pub cleaner: Cleaner,
}

impl Settings {
    /// Where a tool server of this name is at home.
    pub(crate) fn home_of(&self, server: &str) -> PathBuf {
        self.run_dir.with_file_name("tools").join(plain(server))
    }

    /// What makes the program a supervisor.
    pub(crate) fn supervisor_args(&self) -> Vec<String> {
        self.supervisor.iter().skip(1).cloned().collect()
    }
}

#[derive(Debug, Clone)]
pub struct Limits {
    /// A longer line is discarded as it comes and counts as corrupt.
    pub line_bytes_max: usize,
    /// Results of one run that wait for its reader.
    pub run_buffer_bytes_max: usize,
    /// Results of all runs of one connection that wait for their readers.
    pub connection_buffer_bytes_max: usize,
    /// Results of one run altogether.
    pub run_output_bytes_max: u64,
    pub runs_in_flight_max: usize,
    /// Calls of a runner's process at once.
    pub calls_in_flight_max: usize,
    /// Calls of one of its runs at once.
    pub calls_per_run_max: usize,
    /// What all calls of the process that are under way hold together.
    pub calls_bytes_max: usize,
    /// Calls of a plugin's tools at once.
    pub tool_calls_in_flight_max: usize,
    /// Programs that run to their end at once; the others wait for their turn.
    pub children_at_once: usize,
    /// What waits for a runner to read its input.
    pub queue_bytes_max: usize,
    pub stderr_lines_per_s: u32,
    pub stderr_lines_burst: u32,
    pub stderr_line_bytes_max: usize,
    pub stderr_bytes_per_s: u32,
    pub stderr_bytes_burst: u32,
    /// From the start of a process to its manifests.
    pub start_timeout: Duration,
    /// How long a process that offers runners may think about its tools before it gets runs.
    pub tools_wait: Duration,
    /// From a cancel to the answer of `run_agent`; then the process is replaced.
    pub cancel_grace: Duration,
    /// How long a process may leave a run unread before that run and all that follow go to another.
    pub stdin_stall_timeout: Duration,
    /// From a cancel that cannot be told to the end of the run; and how long a connection that is replaced may
    /// finish its other runs.
    pub drain_max: Duration,
    /// Replaced processes of one runner that may live on at once.
    pub draining_max: usize,
    /// Each step of stopping a process: `shutdown`, end of input, SIGTERM.
    pub stop_step: Duration,
    pub backoff_min: Duration,
    pub backoff_max: Duration,
    /// A process that served this long starts the back-off anew.
    pub healthy_after: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        const MIB: usize = 1024 * 1024;
        Self {
            line_bytes_max: 8 * MIB,
            run_buffer_bytes_max: 32 * MIB,
            connection_buffer_bytes_max: 128 * MIB,
            run_output_bytes_max: 256 * MIB as u64,
            runs_in_flight_max: 20_000,
            calls_in_flight_max: 32_768,
            calls_per_run_max: 1024,
            calls_bytes_max: 256 * MIB,
            tool_calls_in_flight_max: 4096,
            children_at_once: children_at_once(),
            queue_bytes_max: 64 * MIB,
            stderr_lines_per_s: 100,
            stderr_lines_burst: 1000,
            stderr_line_bytes_max: 4096,
            stderr_bytes_per_s: 8 * 1024,
            stderr_bytes_burst: 256 * 1024,
            start_timeout: Duration::from_secs(10),
            tools_wait: Duration::from_millis(250),
            cancel_grace: Duration::from_secs(5),
            stdin_stall_timeout: Duration::from_secs(5),
            drain_max: Duration::from_secs(60),
            draining_max: 4,
            stop_step: Duration::from_secs(1),
            backoff_min: Duration::from_millis(100),
            backoff_max: Duration::from_secs(30),
            healthy_after: Duration::from_secs(60),
        }
    }
}

/// Starting a program takes a processor, waiting for it does not: some more than there are processors.
fn children_at_once() -> usize {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    (4 * processors).max(8)
}
