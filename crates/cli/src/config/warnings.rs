//! What a valid configuration says that will not work as it stands: warnings of `check` and `doctor`.
//!
//! Invariant: looks at the file system alone and starts nothing; a warning never keeps a host from starting.

use super::{Config, Launch, Loaded, Process};
use serde::Serialize;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// One thing to look at, with the line it stands in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Warning {
    pub line: Option<usize>,
    pub message: String,
}

impl Loaded {
    pub fn warnings(&self) -> Vec<Warning> {
        let config = &self.config;
        let all = runners(config).into_iter().chain(agents(config));
        let warning = |(key, message): (Vec<&str>, String)| {
            let of_parent = || self.line_of(&key[..key.len() - 1]);
            Warning { line: self.line_of(&key).or_else(of_parent), message }
        };
        all.map(warning).collect()
    }
}

type Found<'c> = Vec<(Vec<&'c str>, String)>;

fn runners(config: &Config) -> Found<'_> {
    let mut found = Vec::new();
    for (name, runner) in &config.runners {
        let Launch::Process(process) = &runner.launch else { continue };
        if !process.dir.is_dir() {
            let message =
                format!("runner `{name}`: there is no folder `{}`", process.dir.display());
            found.push((vec!["runners", name, "dir"], message));
        } else if let Some(problem) = missing(process) {
            found.push((vec!["runners", name, "command"], format!("runner `{name}`: {problem}")));
        }
    }
    found
}

/// What of a command is not there: its program, or the script that an interpreter is given.
pub fn missing(process: &Process) -> Option<String> {
    let program = &process.program;
    let is_there = match program.contains('/') {
        true => is_program(Path::new(program)),
        false => {
            let path = process.env.get("PATH").map(|path| path.expose().to_owned());
            let path = path.or_else(|| crate::env::get("PATH")).unwrap_or_default();
            std::env::split_paths(&path).any(|dir| is_program(&dir.join(program)))
        }
    };
    if !is_there {
        return Some(format!("there is no program `{program}`"));
    }
    let script = process.args.first().filter(|arg| !arg.starts_with('-'))?;
    let is_script =
        [".py", ".js", ".mjs", ".ts", ".sh", ".rb"].iter().any(|end| script.ends_with(end));
    let is_missing = is_script && !process.dir.join(script).exists();
    is_missing.then(|| format!("there is no file `{}`", process.dir.join(script).display()))
}

fn is_program(path: &Path) -> bool {
    std::fs::metadata(path)
        .is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

/// Agents whose runner nobody offers, as far as pins tell; the rest is known once the runners run.
fn agents(config: &Config) -> Found<'_> {
    let built_in = ["greenroom/echo", "greenroom/local-agent"];
    let is_open = config.runners.values().any(|runner| runner.plugin.is_none());
    let pinned = |plugin: &str| {
        config.runners.values().any(|runner| runner.plugin.as_deref() == Some(plugin))
    };
    let mut found = Vec::new();
    for (name, agent) in &config.agents {
        let id = agent.runner.to_string();
        let plugin =
            id.trim_start_matches("plugin:").rsplit_once('/').map_or("", |(plugin, _)| plugin);
        if !built_in.contains(&plugin) && !is_open && !pinned(plugin) {
            let message = format!("agent `{name}`: no configured runner offers `{id}`");
            found.push((vec!["agents", name, "runner"], message));
        }
    }
    found
}
