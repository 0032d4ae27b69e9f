//! What a valid configuration says that will not work as it stands: warnings of `check`, `doctor` and `serve`.
//!
//! Invariant: looks at the file system alone and starts nothing; a warning never keeps a host from starting.

mod failing;

use crate::granted;
use crate::wiring::surface;
use greenroom_config::{
    Config, Launch, Loaded, McpReach, Process, REPLACED, Runner, Secret, StoreUrl, ToolSource, env,
};
use greenroom_outgoing::{Outgoing, Unreachable};
use greenroom_protocol::RunnerId;
use greenroom_server::Certificate;
use greenroom_tools::manifest::{Manifest, ModuleMethod};
use serde::Serialize;
use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The runners that the program carries.
const BUILT_IN_RUNNERS: [&str; 2] =
    ["plugin:greenroom/echo/default", "plugin:greenroom/local-agent/default"];

/// A shorter token can be guessed.
const TOKEN_CHARS_MIN: usize = 16;

/// One thing to look at, with the line it stands in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Warning {
    pub line: Option<usize>,
    pub message: String,
}

impl Warning {
    /// For whoever has to do something about it.
    pub(crate) fn told(&self, file: &Path) -> String {
        let line = self.line.map_or(String::new(), |line| format!(":{line}"));
        format!("warning: {}\n  --> {}{line}", self.message, file.display())
    }
}

/// Everything to warn about, in the order of the sections.
pub(crate) fn all(loaded: &Loaded) -> Vec<Warning> {
    let config = &loaded.config;
    let left_out = granted::left_out(config).into_iter();
    let left_out = left_out.map(|(agent, text)| (vec!["agents", agent, "grant"], text));
    let all = server(config)
        .into_iter()
        .chain(replaced_limits(loaded))
        .chain(runners(config))
        .chain(tools(config))
        .chain(agents(config));
    let all = all.chain(left_out).chain(failing::models(config)).chain(failing::agents(config));
    let all = all.chain(surfaces(config)).chain(tokens(config)).chain(store(config));
    let warning = |(key, message): (Vec<&str>, String)| {
        let of_parent = || loaded.line_of(&key[..key.len() - 1]);
        Warning { line: loaded.line_of(&key).or_else(of_parent), message }
    };
    all.map(warning).collect()
}

/// Limits that the file sets and this version no longer has.
fn replaced_limits(loaded: &Loaded) -> Found<'static> {
    let is_set = |(old, _): &(&str, &str)| loaded.line_of(&["limits", old]).is_some();
    let set = REPLACED.into_iter().filter(is_set);
    set.map(|(old, advice)| (vec!["limits", old], format!("`limits.{old}` {advice}"))).collect()
}

type Found<'c> = Vec<(Vec<&'c str>, String)>;

/// An address that others reach unencrypted, and a certificate that cannot be used.
fn server(config: &Config) -> Found<'_> {
    let server = &config.server;
    let exposed = server.exposed(server.listen).map(|text| (vec!["server", "listen"], text));
    let unusable = server.tls.as_ref().and_then(|tls| {
        let error = Certificate::load(&tls.cert, &tls.key).err()?;
        let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}"));
        Some((vec!["server", "tls"], format!("{error}{}", cause.unwrap_or_default())))
    });
    exposed.into_iter().chain(unusable).collect()
}

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
        found.extend(no_paths(&process.paths).map(|problem| {
            (vec!["runners", name.as_str(), "paths"], format!("runner `{name}`: {problem}"))
        }));
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
        let path = env::get("PATH").unwrap_or_default();
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
pub(crate) fn missing(process: &Process) -> Option<String> {
    let command: Vec<String> =
        std::iter::once(&process.program).chain(&process.args).cloned().collect();
    let path = process.env.get("PATH").map(|path| path.expose().to_owned());
    let path = path.or_else(|| env::get("PATH")).unwrap_or_default();
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
    let mut found = Vec::new();
    for (name, agent) in &config.agents {
        if known_to_be_absent(config, &agent.runner) {
            let hint = granted::runner_hint(&agent.runner, &possible(config, &agent.runner));
            let message = format!("agent `{name}`: no runner offers `{}`; {hint}", agent.runner);
            found.push((vec!["agents", name, "runner"], message));
        }
    }
    found
}

/// Agents whose runner may or may not exist: what a process offers it says once it runs.
pub(crate) fn unchecked(config: &Config) -> Vec<(&str, &RunnerId)> {
    let agents = config.agents.iter().map(|(name, agent)| (name.as_str(), &agent.runner));
    let is_open =
        |id: &RunnerId| !BUILT_IN_RUNNERS.contains(&id.as_str()) && !known_to_be_absent(config, id);
    agents.filter(|(_, id)| is_open(id)).collect()
}

fn known_to_be_absent(config: &Config, id: &RunnerId) -> bool {
    let is_built_in = BUILT_IN_RUNNERS.iter().any(|own| own_plugin(own) == id.plugin());
    let may = |runner: &Runner| runner.plugin.as_deref().is_none_or(|pin| pin == id.plugin());
    match is_built_in {
        true => !BUILT_IN_RUNNERS.contains(&id.as_str()),
        false => !config.runners.values().any(may),
    }
}

/// Ids that exist, or would if the pinned plugins call their runner as this one.
fn possible(config: &Config, id: &RunnerId) -> Vec<String> {
    let pinned = config.runners.values().filter_map(|runner| runner.plugin.as_deref());
    let pinned = pinned.map(|plugin| format!("plugin:{plugin}/{}", id.runner()));
    BUILT_IN_RUNNERS.map(str::to_owned).into_iter().chain(pinned).collect()
}

fn own_plugin(id: &str) -> &str {
    id.trim_start_matches("plugin:").rsplit_once('/').map_or("", |(plugin, _)| plugin)
}

/// Surfaces at private addresses that deliveries would refuse; names are looked up by `doctor`.
fn surfaces(config: &Config) -> Found<'_> {
    let urls = config
        .surfaces
        .iter()
        .filter_map(|(name, entry)| Some((name, surface(entry).public_url()?.to_owned())));
    urls.filter(|(_, url)| is_private(url))
        .map(|(name, url)| {
            let message = format!(
                "surface `{name}`: the address `{url}` is private, so that nothing is delivered; add \
                 `allow_private = true` if it is meant"
            );
            (vec!["surfaces", name.as_str(), "url"], message)
        })
        .collect()
}

/// Tokens that somebody could guess.
fn tokens(config: &Config) -> Found<'_> {
    let tokens = config.tokens.iter().map(|(name, token)| ("tokens", name, &token.token));
    let runners = config.runners.iter().filter_map(|(name, runner)| match &runner.launch {
        Launch::Connect { token } => Some(("runners", name, token)),
        Launch::Process(_) => None,
    });
    let warn = |(section, name, token): (&'static str, &'_ String, &Secret)| {
        let length = token.expose().chars().count();
        (length < TOKEN_CHARS_MIN).then(|| {
            format!(
                "the token `{section}.{name}.token` has {length} characters and can be guessed; \
                 `openssl rand -hex 32` makes one"
            )
        })
    };
    let found = tokens.chain(runners).filter_map(|entry| {
        let (section, name, _) = entry;
        warn(entry).map(|message| (vec![section, name.as_str(), "token"], message))
    });
    found.collect()
}

fn is_private(url: &str) -> bool {
    let private = Outgoing::default().check(url) == Err(Unreachable::Private);
    let host = url.split("://").nth(1).and_then(|rest| rest.split(['/', '?', '#', ':']).next());
    let host = host.unwrap_or_default().trim_end_matches('.').to_lowercase();
    private || host == "localhost" || host.ends_with(".localhost")
}

/// A password that stands in the file, where backups and other readers find it.
fn store(config: &Config) -> Found<'_> {
    let literal = match &config.store.url {
        Some(StoreUrl::Postgres(url)) if config.store.is_literal => url,
        _ => return Vec::new(),
    };
    if !has_password(literal.expose()) {
        return Vec::new();
    }
    let message = "`store.url` holds a password; write `url = { env = \"DATABASE_URL\" }` and keep \
                   the address in that variable";
    vec![(vec!["store", "url"], message.to_owned())]
}

/// `postgres://USER:PASSWORD@HOST/…`, or `?password=…`.
fn has_password(url: &str) -> bool {
    let rest = url.split_once("://").map_or("", |(_, rest)| rest);
    let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
    let place = place.split('/').next().unwrap_or_default();
    let user = place.rsplit_once('@').map_or("", |(user, _)| user);
    user.split_once(':').is_some_and(|(_, password)| !password.is_empty())
        || query.split('&').any(|pair| pair.starts_with("password="))
}
