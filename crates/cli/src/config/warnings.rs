//! What a valid configuration says that will not work as it stands: warnings of `check`, `doctor` and `serve`.
//!
//! Invariant: looks at the file system alone and starts nothing; a warning never keeps a host from starting.

use super::{Config, Launch, Loaded, McpReach, Process, ToolSource, failing};
use greenroom_tools::manifest::{Manifest, ModuleMethod};
use serde::Serialize;
use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// One thing to look at, with the line it stands in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Warning {
    pub line: Option<usize>,
    pub message: String,
}

impl Warning {
    /// For whoever has to do something about it.
    pub fn told(&self, file: &Path) -> String {
        let line = self.line.map_or(String::new(), |line| format!(":{line}"));
        format!("warning: {}\n  --> {}{line}", self.message, file.display())
    }
}

impl Loaded {
    pub fn warnings(&self) -> Vec<Warning> {
        let config = &self.config;
        let left_out = crate::granted::left_out(config).into_iter();
        let left_out = left_out.map(|(agent, text)| (vec!["agents", agent, "grant"], text));
        let all = runners(config).into_iter().chain(tools(config)).chain(agents(config));
        let all = all.chain(left_out).chain(failing::models(config)).chain(failing::agents(config));
        let warning = |(key, message): (Vec<&str>, String)| {
            let of_parent = || self.line_of(&key[..key.len() - 1]);
            Warning { line: self.line_of(&key).or_else(of_parent), message }
        };
        all.map(warning).collect()
    }
}

pub(super) type Found<'c> = Vec<(Vec<&'c str>, String)>;

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

/// Servers and modules whose program, folder or paths are not there.
fn tools(config: &Config) -> Found<'_> {
    let mut found = Vec::new();
    for (name, source) in &config.tools {
        match source {
            ToolSource::Mcp(server) => {
                let McpReach::Command { process, .. } = &server.reach else { continue };
                let folder = (!process.dir.is_dir())
                    .then(|| format!("there is no folder `{}`", process.dir.display()));
                let key = if folder.is_some() { "dir" } else { "command" };
                let problem = folder.or_else(|| missing(process)).map(|problem| (key, problem));
                let paths = no_paths(&process.paths).map(|problem| ("paths", problem));
                for (key, problem) in problem.into_iter().chain(paths) {
                    found.push((vec!["tools", name, key], format!("tools `{name}`: {problem}")));
                }
            }
            ToolSource::Module { manifest } => {
                let problems = of_manifest(manifest).into_iter();
                found.extend(problems.map(|problem| {
                    (vec!["tools", name, "manifest"], format!("tools `{name}`: {problem}"))
                }));
            }
            ToolSource::Skills { .. } => {}
        }
    }
    found
}

/// What the methods of a module need and do not find, each once. One that cannot be read is a mistake, which is
/// told as such.
fn of_manifest(path: &Path) -> BTreeSet<String> {
    let methods = Manifest::load(path).map(|manifest| manifest.methods).unwrap_or_default();
    let problems = |method: &ModuleMethod| -> Vec<String> {
        let path = crate::env::get("PATH").unwrap_or_default();
        let program = no_program(&method.command, &method.dir, &path);
        program.into_iter().chain(no_paths(&method.paths)).collect()
    };
    methods.values().flat_map(problems).collect()
}

fn no_paths(paths: &[PathBuf]) -> impl Iterator<Item = String> {
    let missing = paths.iter().filter(|path| !path.exists());
    missing.map(|path| format!("`{}` of `paths` does not exist", path.display()))
}

/// What of a command is not there: its program, or the script that an interpreter is given.
pub fn missing(process: &Process) -> Option<String> {
    let command: Vec<String> =
        std::iter::once(&process.program).chain(&process.args).cloned().collect();
    let path = process.env.get("PATH").map(|path| path.expose().to_owned());
    let path = path.or_else(|| crate::env::get("PATH")).unwrap_or_default();
    no_program(&command, &process.dir, &path)
}

fn no_program(command: &[String], dir: &Path, search: &str) -> Option<String> {
    let (program, args) = command.split_first()?;
    let is_there = match program.contains('/') {
        true => is_program(&dir.join(program)),
        false => std::env::split_paths(search).any(|folder| is_program(&folder.join(program))),
    };
    if !is_there {
        return Some(format!("there is no program `{program}`"));
    }
    let script = args.first().filter(|arg| !arg.starts_with('-'))?;
    let is_script =
        [".py", ".js", ".mjs", ".ts", ".sh", ".rb"].iter().any(|end| script.ends_with(end));
    let is_missing = is_script && !dir.join(script).exists();
    is_missing.then(|| format!("there is no file `{}`", dir.join(script).display()))
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
