//! Problems of a valid configuration, shown by `check`, `doctor` and `serve`.
//!
//! Invariant: reads the file system only and starts nothing; a warning never keeps a host from starting.

mod failing;
mod plugins;

pub(crate) use plugins::only_model;

use crate::granted;
use crate::wiring::{self, surface};
use greenroom_config::{
    Agent, Config, Launch, Loaded, McpReach, Process, REPLACED, Runner, Secret, StoreUrl,
    ToolSource, env,
};
use greenroom_host::granted_files;
use greenroom_outgoing::{Outgoing, Unreachable};
use greenroom_protocol::RunnerId;
use greenroom_server::Certificate;
use greenroom_tools::manifest::{Manifest, ModuleMethod};
use serde::Serialize;
use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The built-in runners.
const BUILT_IN_RUNNERS: [&str; 2] =
    ["plugin:greenroom/echo/default", "plugin:greenroom/local-agent/default"];

/// Part of the warning about a missing `network`.
pub(crate) const NETWORK_ADVICE: &str = "without `network` it reaches every address";

/// Shorter tokens can be guessed.
const TOKEN_CHARS_MIN: usize = 16;

/// A problem and its line in the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Warning {
    pub line: Option<usize>,
    pub message: String,
}

impl Warning {
    pub(crate) fn show(&self, file: &Path) -> String {
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
        .chain(plugins::settings(config))
        .chain(tools(config))
        .chain(agents(config));
    let all = all.chain(left_out).chain(failing::models(config)).chain(failing::agents(config));
    let all = all.chain(surfaces(config)).chain(tokens(config)).chain(store(config));
    let all = all.chain(networks(config));
    let warning = |(key, message): (Vec<&str>, String)| {
        let of_parent = || loaded.line_of(&key[..key.len() - 1]);
        Warning { line: loaded.line_of(&key).or_else(of_parent), message }
    };
    all.map(warning).collect()
}

/// Limits that the file sets and this version no longer has.
fn replaced_limits(loaded: &Loaded) -> Problems<'static> {
    let is_set = |(old, _): &(&str, &str)| loaded.line_of(&["limits", old]).is_some();
    let set = REPLACED.into_iter().filter(is_set);
    set.map(|(old, advice)| (vec!["limits", old], format!("`limits.{old}` {advice}"))).collect()
}

type Problems<'c> = Vec<(Vec<&'c str>, String)>;

/// An address exposed without TLS, and an unusable certificate.
fn server(config: &Config) -> Problems<'_> {
    let server = &config.server;
    let exposed = server.exposed(server.listen).map(|text| (vec!["server", "listen"], text));
    let unusable = server.tls.as_ref().and_then(|tls| {
        let error = Certificate::load(&tls.cert, &tls.key).err()?;
        let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}"));
        Some((vec!["server", "tls"], format!("{error}{}", cause.unwrap_or_default())))
    });
    exposed.into_iter().chain(unusable).collect()
}

fn runners(config: &Config) -> Problems<'_> {
    let mut problems = Vec::new();
    for (name, runner) in &config.runners {
        let Launch::Process(process) = &runner.launch else { continue };
        if let Some(acp) = &runner.acp {
            let search = process.env.get("PATH").map(greenroom_config::Secret::expose);
            let problem = wiring::harness::missing(acp, search);
            problems.extend(problem.map(|problem| {
                (vec!["runners", name.as_str()], format!("runner `{name}`: {problem}"))
            }));
        } else if !process.dir.is_dir() {
            let message =
                format!("runner `{name}`: folder `{}` does not exist", process.dir.display());
            problems.push((vec!["runners", name, "dir"], message));
        } else if let Some(problem) = missing(process) {
            problems
                .push((vec!["runners", name, "command"], format!("runner `{name}`: {problem}")));
        }
        problems.extend(no_paths(&process.paths).map(|problem| {
            (vec!["runners", name.as_str(), "paths"], format!("runner `{name}`: {problem}"))
        }));
    }
    problems
}

/// Runners without a `network` key, all in one.
fn networks(config: &Config) -> Problems<'_> {
    let is_open = |runner: &Runner| match &runner.launch {
        Launch::Process(process) => process.network.is_none(),
        Launch::Connect { .. } => false,
    };
    let open = config.runners.iter().filter(|(_, runner)| is_open(runner));
    let names: Vec<&str> = open.map(|(name, _)| name.as_str()).collect();
    let Some(first) = names.first() else { return Vec::new() };
    let shown: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    let message = format!(
        "runner {}: {NETWORK_ADVICE}; a later version will change this to \
         `false`, so add `network = false` (only the host), a list such as \
         `network = [\"api.example.com:443\"]`, or `network = true`",
        shown.join(", ")
    );
    vec![(vec!["runners", first, "network"], message)]
}

/// What every started process may reach, as `check` shows it.
pub(crate) fn reaches(config: &Config) -> Vec<(String, String)> {
    let runners = config.runners.iter().filter_map(|(name, runner)| match &runner.launch {
        Launch::Process(process) => {
            Some((format!("runner `{name}`"), process.network_access().to_string()))
        }
        Launch::Connect { .. } => None,
    });
    let servers = config.tools.iter().filter_map(|(name, source)| {
        let ToolSource::Mcp(server) = source else { return None };
        let McpReach::Command(process) = &server.reach else { return None };
        // It has no business with the host.
        let shown = process.network_access().to_string();
        let shown =
            shown.replace("only the host and ", "only ").replace("only the host", "nothing");
        Some((format!("tools `{name}`"), shown))
    });
    runners.chain(servers).collect()
}

/// MCP servers and modules with missing programs, folders or paths.
fn tools(config: &Config) -> Problems<'_> {
    let mut problems = Vec::new();
    for (name, source) in &config.tools {
        match source {
            ToolSource::Mcp(server) => {
                let McpReach::Command(process) = &server.reach else { continue };
                let folder = (!process.dir.is_dir())
                    .then(|| format!("folder `{}` does not exist", process.dir.display()));
                let key = if folder.is_some() { "dir" } else { "command" };
                let problem = folder.or_else(|| missing(process)).map(|problem| (key, problem));
                let paths = no_paths(&process.paths).map(|problem| ("paths", problem));
                for (key, problem) in problem.into_iter().chain(paths) {
                    problems.push((vec!["tools", name, key], format!("tools `{name}`: {problem}")));
                }
            }
            ToolSource::Module { manifest, .. } => {
                let missing = of_manifest(manifest).into_iter();
                problems.extend(missing.map(|problem| {
                    (vec!["tools", name, "manifest"], format!("tools `{name}`: {problem}"))
                }));
            }
            ToolSource::Skills { .. } => {}
        }
    }
    problems
}

/// Missing programs and paths of the methods of a module, each once. An unreadable manifest is an error, reported
/// elsewhere.
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
    missing.map(|path| format!("`{}` in `paths` does not exist", path.display()))
}

/// The missing part of a command: its program, or the script for an interpreter.
pub(crate) fn missing(process: &Process) -> Option<String> {
    let command: Vec<String> =
        std::iter::once(&process.program).chain(&process.args).cloned().collect();
    let path = process.env.get("PATH").map(|path| path.expose().to_owned());
    let path = path.or_else(|| env::get("PATH")).unwrap_or_default();
    no_program(&command, &process.dir, &path)
}

fn no_program(command: &[String], dir: &Path, search: &str) -> Option<String> {
    let (program, args) = command.split_first()?;
    let exists = match program.contains('/') {
        true => is_program(&dir.join(program)),
        false => std::env::split_paths(search).any(|folder| is_program(&folder.join(program))),
    };
    if !exists {
        return Some(format!("program `{program}` does not exist"));
    }
    let script = args.first().filter(|arg| !arg.starts_with('-'))?;
    let is_script =
        [".py", ".js", ".mjs", ".ts", ".sh", ".rb"].iter().any(|end| script.ends_with(end));
    let is_missing = is_script && !dir.join(script).exists();
    is_missing.then(|| format!("file `{}` does not exist", dir.join(script).display()))
}

fn is_program(path: &Path) -> bool {
    std::fs::metadata(path)
        .is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

/// Agents whose runner no configured process can offer, judging by pinned plugins; the rest shows at run time.
fn agents(config: &Config) -> Problems<'_> {
    let mut problems = Vec::new();
    for (name, agent) in &config.agents {
        if known_to_be_absent(config, &agent.runner) {
            let hint = granted::runner_hint(&agent.runner, &possible(config, &agent.runner));
            let message = format!("agent `{name}`: no runner offers `{}`; {hint}", agent.runner);
            problems.push((vec!["agents", name, "runner"], message));
        }
    }
    problems.extend(config.agents.iter().flat_map(|(name, agent)| files(name, agent)));
    problems
}

/// Granted files that cannot be read.
fn files<'c>(name: &'c str, agent: &'c Agent) -> impl Iterator<Item = (Vec<&'c str>, String)> {
    agent.grant.files.iter().filter_map(move |file| {
        let problem = granted_files::problem(&file.path)?;
        let message = format!("agent `{name}`: the granted file `{}` {problem}", file.name);
        Some((vec!["agents", name, "grant", "files"], message))
    })
}

/// Agents whose runner may or may not exist: a process reports its runners once it runs.
pub(crate) fn unchecked(config: &Config) -> Vec<(&str, &RunnerId)> {
    let agents = config.agents.iter().map(|(name, agent)| (name.as_str(), &agent.runner));
    let is_open = |id: &RunnerId| {
        !BUILT_IN_RUNNERS.contains(&id.as_str())
            && !known_to_be_absent(config, id)
            && !is_harness(config, id)
    };
    agents.filter(|(_, id)| is_open(id)).collect()
}

/// The one runner of a harness.
fn is_harness(config: &Config, id: &RunnerId) -> bool {
    let offers =
        |runner: &Runner| runner.acp.is_some() && runner.plugin.as_deref() == Some(id.plugin());
    id.runner() == "default" && config.runners.values().any(offers)
}

fn known_to_be_absent(config: &Config, id: &RunnerId) -> bool {
    let is_built_in = BUILT_IN_RUNNERS.iter().any(|own| own_plugin(own) == id.plugin());
    let may = |runner: &Runner| runner.plugin.as_deref().is_none_or(|pin| pin == id.plugin());
    match is_built_in {
        true => !BUILT_IN_RUNNERS.contains(&id.as_str()),
        false => !config.runners.values().any(may),
    }
}

/// Ids that exist, or would exist if a pinned plugin had a runner of this name.
fn possible(config: &Config, id: &RunnerId) -> Vec<String> {
    let pinned = config.runners.values().filter_map(|runner| runner.plugin.as_deref());
    let pinned = pinned.map(|plugin| format!("plugin:{plugin}/{}", id.runner()));
    BUILT_IN_RUNNERS.map(str::to_owned).into_iter().chain(pinned).collect()
}

fn own_plugin(id: &str) -> &str {
    id.trim_start_matches("plugin:").rsplit_once('/').map_or("", |(plugin, _)| plugin)
}

/// Surfaces at private addresses, to which deliveries are refused; `doctor` resolves names.
fn surfaces(config: &Config) -> Problems<'_> {
    let urls = config
        .surfaces
        .iter()
        .filter_map(|(name, entry)| Some((name, surface(entry).public_url()?.to_owned())));
    urls.filter(|(_, url)| is_private(url))
        .map(|(name, url)| {
            let message = format!(
                "surface `{name}`: the address `{url}` is private, so nothing is delivered; add \
                 `allow_private = true` if this is intended"
            );
            (vec!["surfaces", name.as_str(), "url"], message)
        })
        .collect()
}

/// Tokens that are too short.
fn tokens(config: &Config) -> Problems<'_> {
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
    let problems = tokens.chain(runners).filter_map(|entry| {
        let (section, name, _) = entry;
        warn(entry).map(|message| (vec![section, name.as_str(), "token"], message))
    });
    problems.collect()
}

fn is_private(url: &str) -> bool {
    let private = Outgoing::default().check(url) == Err(Unreachable::Private);
    let host = url.split("://").nth(1).and_then(|rest| rest.split(['/', '?', '#', ':']).next());
    let host = host.unwrap_or_default().trim_end_matches('.').to_lowercase();
    private || host == "localhost" || host.ends_with(".localhost")
}

/// A password in the file, where backups and other readers see it.
fn store(config: &Config) -> Problems<'_> {
    let literal = match &config.store.url {
        Some(StoreUrl::Postgres(url)) if config.store.is_literal => url,
        _ => return Vec::new(),
    };
    if !has_password(literal.expose()) {
        return Vec::new();
    }
    let message = "`store.url` contains a password; write `url = { env = \"DATABASE_URL\" }` and keep \
                   the address in that variable";
    vec![(vec!["store", "url"], message.to_owned())]
}

/// `postgres://USER:PASSWORD@HOST/…`, or `?password=…`.
fn has_password(url: &str) -> bool {
    let rest = url.split_once("://").map_or("", |(_, rest)| rest);
    let (authority, query) = rest.split_once('?').unwrap_or((rest, ""));
    let authority = authority.split('/').next().unwrap_or_default();
    let user = authority.rsplit_once('@').map_or("", |(user, _)| user);
    user.split_once(':').is_some_and(|(_, password)| !password.is_empty())
        || query.split('&').any(|pair| pair.starts_with("password="))
}
