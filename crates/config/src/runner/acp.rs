//! A harness that speaks the Agent Client Protocol: `wire = "acp"`.
//!
//! Invariant: it has a profile or a command; without `network`, it reaches the host only.

use super::{Launch, PROCESS_KEYS, Process, Runner, Wire, split};
use crate::NetworkAccess;
use crate::reader::{Reader, Value};
use std::collections::BTreeMap;

/// Processes and memory of a harness with several sessions, unless the file sets them.
const PROCESSES: u64 = 512;
const MEMORY_MB: u64 = 8_192;
/// The author of harness runners, in their ids.
const AUTHOR: &str = "harness";
const KEYS: [&str; 2] = ["profile", "sessions"];

/// Settings of a harness.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Acp {
    /// A built-in profile.
    pub profile: Option<String>,
    /// What starts the harness; empty: the command of the profile.
    pub command: Vec<String>,
    /// Sessions that are open at the same time.
    pub sessions_max: u64,
    /// A session without a message for this long ends.
    pub idle_s: u64,
    /// A session whose processes use more memory ends.
    pub session_memory_mb: u64,
    /// Whether each session has a wall of its own.
    pub is_apart: bool,
}

/// Keys that no other wire has.
pub(super) fn refuse_keys(reader: &mut Reader<'_>) {
    for key in KEYS {
        if let Some(value) = reader.get(key) {
            let message = format!("`{}` is only for harnesses of the wire `acp`", value.path);
            value.fail::<()>(message, "add `wire = \"acp\"`");
        }
    }
}

pub(super) fn read(mut reader: Reader<'_>, plugin: Option<String>) -> Option<Runner> {
    if let Some(token) = reader.get("token") {
        reader.knows(&PROCESS_KEYS);
        return token.fail(
            format!("`{}` speaks the wire `acp` and has a `token`", reader.path),
            "the host starts a harness itself: give it a `profile` or a `command`",
        );
    }
    if let Some(plugin) = plugin {
        let message = format!("`{}` cannot have the `plugin` `{plugin}`", reader.path);
        let hint = "a harness is always `harness/NAME`, with the name of its runner";
        reader.fail::<()>(message, hint);
    }
    let name = reader.path.split_once('.').map_or("", |(_, name)| name);
    let plugin = Some(format!("{AUTHOR}/{}", name.trim_matches('"')));
    let profile = reader.get("profile").and_then(|value| value.filled_text().map(str::to_owned));
    let command = reader.get("command");
    let has_command = command.is_some();
    let command = command.and_then(|value| split(&value)).unwrap_or_default();
    if profile.is_none() && !has_command {
        reader.knows(&PROCESS_KEYS);
        reader.knows(&KEYS);
        return reader.fail(
            format!("`{}` has neither `profile` nor `command`", reader.path),
            "write e.g. `profile = \"codex\"`; `greenroom harness list` shows the profiles",
        );
    }
    let sessions = reader.get("sessions").and_then(|value| value.table());
    let (sessions_max, idle_s, session_memory_mb, is_apart) =
        sessions.map_or_else(defaults, self::sessions);
    let is_set = ["processes", "memory_mb", "threads"].map(|key| reader.get(key).is_some());
    // The process is the host's own runner; the harness is its child.
    let process = Process::started(&mut reader, Some(vec!["acp-agent".to_owned()]));
    reader.finish();
    let mut process = process?;
    let [has_processes, has_memory, has_threads] = is_set;
    if !has_processes {
        process.processes = PROCESSES;
    }
    if !has_processes && !has_threads {
        process.threads = PROCESSES * super::THREADS_PER_PROCESS;
    }
    if !has_memory {
        process.memory_mb = MEMORY_MB;
    }
    process.network.get_or_insert(NetworkAccess::None);
    let command = in_folder(command, &process);
    let acp = Acp { profile, command, sessions_max, idle_s, session_memory_mb, is_apart };
    Some(Runner {
        launch: Launch::Process(process),
        wire: Wire::Acp,
        plugin,
        config: BTreeMap::new(),
        listens: Vec::new(),
        acp: Some(acp),
    })
}

/// A relative path of a program is one from the runner's folder.
fn in_folder(mut command: Vec<String>, process: &Process) -> Vec<String> {
    if let Some(program) = command.first_mut()
        && program.contains('/')
    {
        *program = process.dir.join(&*program).to_string_lossy().into_owned();
    }
    command
}

fn defaults() -> (u64, u64, u64, bool) {
    (8, 900, 2_048, true)
}

fn sessions(mut table: Reader<'_>) -> (u64, u64, u64, bool) {
    let (open, idle, memory, apart) = defaults();
    let mut number = |key, range, default| {
        table.get(key).and_then(|value: Value<'_>| value.integer(range)).unwrap_or(default)
    };
    let sessions = (
        number("open", 1..=1_000, open),
        number("idle_s", 1..=604_800, idle),
        number("memory_mb", 64..=1_048_576, memory),
        table.get("apart").and_then(|value| value.boolean()).unwrap_or(apart),
    );
    table.finish();
    sessions
}
