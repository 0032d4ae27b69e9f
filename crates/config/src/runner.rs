//! `[runners.NAME]`: processes that offer runners, started by the host or connecting to it.
//!
//! Invariant: a runner has either a command or a token.

mod acp;
mod langbot;

pub use acp::Acp;
pub use langbot::{Setting, is_plugin_folder as is_langbot_plugin};

use super::reader::{Reader, Value, clean};
use super::{NetworkAccess, Secret};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Runner {
    pub launch: Launch,
    pub wire: Wire,
    /// The `author/name` the process must declare; `None`: the first it declares.
    pub plugin: Option<String>,
    /// Settings of a LangBot plugin.
    pub config: BTreeMap<String, Setting>,
    /// Agents whose events the listeners of a LangBot plugin get.
    pub listens: Vec<String>,
    /// Settings of a harness on the wire `acp`.
    pub acp: Option<Acp>,
}

/// The protocol of the process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Wire {
    #[default]
    Native,
    /// An unmodified LangBot plugin.
    Langbot,
    /// A harness that speaks the Agent Client Protocol, driven by a runner of the host.
    Acp,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Launch {
    /// The host starts it and uses its standard input and output.
    Process(Process),
    /// It runs elsewhere and connects over WebSocket with this token.
    Connect { token: Secret },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    pub program: String,
    pub args: Vec<String>,
    /// Its working folder.
    pub dir: PathBuf,
    /// Whether `dir` is set, and so writable. The default, the folder of the configuration, is read-only.
    pub owns_dir: bool,
    /// Its environment, besides what the host sets.
    pub env: BTreeMap<String, Secret>,
    pub sandbox: Sandbox,
    /// Further paths it may read and write.
    pub paths: Vec<PathBuf>,
    /// The configuration file, which is hidden from it.
    pub configuration: PathBuf,
    /// Most processes it may have at once, children included.
    pub processes: u64,
    /// Most threads, children included.
    pub threads: u64,
    /// Most memory it may have, children included.
    pub memory_mb: u64,
    /// Most bytes in its own folder and its temporary ones.
    pub disk_mb: u64,
    /// Most files and folders there.
    pub files: u64,
    /// `None`: the key is missing.
    pub network: Option<NetworkAccess>,
}

impl Process {
    /// What it may reach. A file without the key keeps what earlier versions gave it.
    pub fn network_access(&self) -> NetworkAccess {
        self.network.clone().unwrap_or(NetworkAccess::All)
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Sandbox {
    #[default]
    On,
    Off,
    /// The process starts with all parts of the sandbox, or not at all.
    Required,
}

/// Keys of a started process, which a remote runner does not have.
pub(super) const PROCESS_KEYS: [&str; 10] = [
    "dir",
    "env",
    "sandbox",
    "paths",
    "processes",
    "threads",
    "memory_mb",
    "disk_mb",
    "files",
    "network",
];

/// Threads of a process tree for each of its processes, unless the file sets `threads`.
const THREADS_PER_PROCESS: u64 = 32;

impl Runner {
    pub(super) fn read(mut reader: Reader<'_>) -> Option<Self> {
        let wires = [("native", Wire::Native), ("langbot", Wire::Langbot), ("acp", Wire::Acp)];
        let wire = match reader.get("wire") {
            Some(wire) => wire.choice(&wires).unwrap_or_default(),
            None if langbot::is_plugin(&mut reader) => Wire::Langbot,
            None => Wire::Native,
        };
        let plugin = reader.get("plugin").and_then(|value| plugin(&value));
        let langbot::Keys { config, listens } = langbot::keys(&mut reader, wire);
        if wire == Wire::Acp {
            return acp::read(reader, plugin);
        }
        acp::refuse_keys(&mut reader);
        let (command, token) = (reader.get("command"), reader.get("token"));
        let launch = match (command, token) {
            (command, None) if wire == Wire::Langbot => {
                langbot::read(&mut reader, command).map(Launch::Process)
            }
            (Some(command), None) => Process::read(&mut reader, &command).map(Launch::Process),
            (None, Some(token)) if wire == Wire::Langbot => {
                reader.knows(&PROCESS_KEYS);
                token.fail(
                    format!("`{}` speaks the wire `langbot` and has a `token`", reader.path),
                    "the host starts a LangBot plugin itself: give its folder as `dir`",
                )
            }
            (None, Some(token)) => {
                refuse_process_keys(&mut reader);
                token.secret().map(|token| Launch::Connect { token })
            }
            (Some(_), Some(token)) => {
                reader.knows(&PROCESS_KEYS);
                token.fail(
                    format!("`{}` has both `command` and `token`", reader.path),
                    "the host starts a runner with a `command`; one with a `token` connects by itself",
                )
            }
            (None, None) => {
                reader.knows(&PROCESS_KEYS);
                reader.fail(
                    format!("`{}` has neither `command` nor `token`", reader.path),
                    "add `command` to have it started, or `token` to let it connect over WebSocket",
                )
            }
        };
        reader.finish();
        Some(Self { launch: launch?, wire, plugin, config, listens, acp: None })
    }
}

fn refuse_process_keys(reader: &mut Reader<'_>) {
    for key in PROCESS_KEYS {
        if let Some(value) = reader.get(key) {
            value.fail::<()>(
                format!("`{}` has no meaning without `command`", value.path),
                "a runner that connects is started by someone else",
            );
        }
    }
}

fn plugin(value: &Value<'_>) -> Option<String> {
    let text = value.filled_text()?;
    match greenroom_protocol::RunnerId::parse(&format!("plugin:{text}/x")) {
        Ok(_) => Some(text.to_owned()),
        Err(_) => value.fail(
            format!("`{}` is not a plugin of the form `author/name`", clean(text)),
            "write what the process declares in `initialize`, e.g. `acme/triage`",
        ),
    }
}

impl Process {
    pub(super) fn read(reader: &mut Reader<'_>, command: &Value<'_>) -> Option<Self> {
        let words = split(command);
        Self::started(reader, words)
    }

    /// A process with these arguments.
    fn started(reader: &mut Reader<'_>, command: Option<Vec<String>>) -> Option<Self> {
        let own = reader.get("dir");
        let words = [("on", Sandbox::On), ("off", Sandbox::Off), ("required", Sandbox::Required)];
        let env = reader.get("env").map_or(Some(BTreeMap::new()), |value| environment(&value));
        let sandbox = reader.get("sandbox").and_then(|v| v.choice(&words)).unwrap_or_default();
        let path = |value: &Value<'_>| match sandbox {
            Sandbox::On | Sandbox::Required => path_apart(value),
            Sandbox::Off => value.path(),
        };
        let paths = reader.get("paths").and_then(|v| v.list(path)).unwrap_or_default();
        let mut number = |key, range, default| {
            reader.get(key).and_then(|value| value.integer(range)).unwrap_or(default)
        };
        let processes = number("processes", 1..=10_000, 64);
        let threads = number("threads", 1..=1_000_000, processes * THREADS_PER_PROCESS);
        let memory_mb = number("memory_mb", 16..=1_048_576, 2_048);
        let disk_mb = number("disk_mb", 1..=1_073_741_824, 10_240);
        let files = number("files", 1..=1_000_000_000, 500_000);
        let network = reader.get("network").and_then(|value| NetworkAccess::read(&value));
        let mut args = command?;
        let owns_dir = own.is_some();
        let dir = own.map_or(Some(reader.cx.dir.to_owned()), |value| path(&value));
        let (dir, env) = (dir?, env?);
        let program = match args.remove(0) {
            path if path.contains('/') => dir.join(path).to_string_lossy().into_owned(),
            name => name,
        };
        let configuration = reader.cx.file.clone();
        Some(Self {
            program,
            args,
            dir,
            owns_dir,
            env,
            sandbox,
            paths,
            configuration,
            processes,
            threads,
            memory_mb,
            disk_mb,
            files,
            network,
        })
    }
}

/// A path without the configuration: write access to it would allow starting any program.
fn path_apart(value: &Value<'_>) -> Option<PathBuf> {
    let resolved = |path: &Path| std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let path = value.path()?;
    if !resolved(&value.cx.file).starts_with(resolved(&path))
        && !resolved(value.cx.dir).starts_with(resolved(&path))
    {
        return Some(path);
    }
    let name = value.path.split('.').nth(1).unwrap_or_default();
    value.fail(
        format!("`{}` contains the configuration, which a runner must not change", value.path),
        format!("give the runner a folder of its own, e.g. `dir = \"{name}\"`"),
    )
}

/// A list of arguments, or one line that is split like in a shell, without expansion.
fn split(value: &Value<'_>) -> Option<Vec<String>> {
    let words = match value.value {
        toml::de::DeValue::String(line) => match shlex::split(line) {
            Some(words) => words,
            None => {
                return value.fail(
                    format!("`{}` has an open quote", value.path),
                    "close it, or write a list of words",
                );
            }
        },
        _ => value.list(|item| item.text().map(str::to_owned))?,
    };
    match words.first() {
        Some(program) if !program.is_empty() && !words.iter().any(|word| word.contains('\0')) => {
            Some(words)
        }
        _ => value.fail(
            format!("`{}` names no program", value.path),
            "write e.g. `[\"python3\", \"run.py\"]`",
        ),
    }
}

fn environment(value: &Value<'_>) -> Option<BTreeMap<String, Secret>> {
    let mut env = BTreeMap::new();
    let mut is_complete = true;
    for (name, at, value) in value.table()?.entries() {
        if name.is_empty() || name.contains(['=', '\0']) {
            let message = format!("`{}` is not a name for an environment variable", clean(name));
            value.cx.report(at, message, None);
        }
        let text = match value.is_table() {
            true => value.secret(),
            false => value.filled_text().and_then(Secret::new),
        };
        is_complete &= text.is_some();
        env.extend(text.map(|text| (name.to_owned(), text)));
    }
    is_complete.then_some(env)
}
