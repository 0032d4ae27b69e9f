//! Runners with `wire = "acp"`: the host's own runner, which drives the harness.
//!
//! Invariant: what the harness needs to run is only readable; it writes in the runner's own folder and in the folders
//! that its agents name.

use crate::failure::{Exit, Failure};
use crate::programs;
use greenroom_acp_agent::profile::{self, Profile};
use greenroom_acp_agent::{AUTHOR, Settings, Wall};
use greenroom_config::{Acp, Config, Destination, DestinationHost, Loaded};
use greenroom_runtime::{Network, RunnerSpec, Sandbox, Wire};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

/// The folders of harness runners in the data folder.
pub(crate) const FOLDER: &str = "harness";

/// The surroundings of the runners.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) program: &'a str,
    pub(super) data: &'a Path,
    pub(super) host: SocketAddr,
}

/// Turns the process of `plain` into the runner of a harness.
pub(super) fn spec(
    name: &str,
    acp: &Acp,
    plain: RunnerSpec,
    config: &Config,
    place: Place<'_>,
) -> RunnerSpec {
    let (command, found) = located(acp, &plain);
    let (writes, reads) = folders(name, config);
    let is_apart = acp.is_apart && plain.sandbox != Sandbox::Off;
    let given = || writes.iter().chain(&reads).cloned().collect();
    let wall = is_apart.then(|| Wall { given: given(), ..wall(&plain, &found, place.program) });
    let settings = Settings {
        name: name.to_owned(),
        profile: acp.profile.clone(),
        command,
        sessions_max: usize::try_from(acp.sessions_max).unwrap_or(usize::MAX),
        idle_s: acp.idle_s,
        session_memory_mb: acp.session_memory_mb,
        host: Some(place.host),
        wall,
    };
    let settings = serde_json::to_string(&settings).unwrap_or_default();
    let words = [place.program, "runner-process", "acp-agent", &settings];
    let dir = match plain.owns_dir {
        true => plain.dir.clone(),
        false => place.data.join(FOLDER).join(name),
    };
    let mut env = plain.env.clone();
    if !env.contains_key("PATH") && !found.search.is_empty() {
        env.insert("PATH".to_owned(), found.search.join(":"));
    }
    let paths: Vec<PathBuf> = plain.paths.iter().cloned().chain(writes).collect();
    RunnerSpec {
        command: words.map(str::to_owned).to_vec(),
        wire: Wire::Native,
        plugin: Some(format!("{AUTHOR}/{name}")),
        dir,
        owns_dir: true,
        own_processes: true,
        sessions_apart: is_apart,
        env,
        read: found.read.into_iter().chain(reads).collect(),
        absent_paths: super::resources::absent(&paths),
        paths,
        changed_at: found.changed_at,
        ..plain
    }
}

/// What all sessions of the runner have in common.
fn wall(plain: &RunnerSpec, found: &programs::Found, program: &str) -> Wall {
    let list = match &plain.network {
        Network::Only(allowed) => allowed.list.as_slice(),
        Network::Off | Network::On => &[],
    };
    let by_address = |Destination { host, port }: &Destination| match host {
        DestinationHost::Address(address) => Some(SocketAddr::new(*address, *port)),
        DestinationHost::Name(name) if name == "localhost" => {
            Some((Ipv4Addr::LOCALHOST, *port).into())
        }
        // The proxy leads there.
        DestinationHost::Name(_) | DestinationHost::Below(_) => None,
    };
    Wall {
        command: [program, "supervise", "--session"].map(str::to_owned).to_vec(),
        isolated: plain.network != Network::On,
        listen: list.iter().filter_map(by_address).collect(),
        paths: plain.paths.clone(),
        read: found.read.clone(),
        given: Vec::new(),
    }
}

/// The folders of harness runners, which must exist before they start.
pub(crate) fn create_folders(specs: &[RunnerSpec], data: &Path) -> std::io::Result<()> {
    let own = data.join(FOLDER);
    let folders = specs.iter().map(|spec| &spec.dir).filter(|dir| dir.starts_with(&own));
    folders.into_iter().try_for_each(std::fs::create_dir_all)
}

/// The command with its program and its scripts as absolute paths, if it is installed.
fn located(acp: &Acp, plain: &RunnerSpec) -> (Vec<String>, programs::Found) {
    let known = acp.profile.as_deref().and_then(profile::find);
    let mut command = match (&known, acp.command.is_empty()) {
        (Some(profile), true) => profile.command.clone(),
        _ => acp.command.clone(),
    };
    let search = plain.env.get("PATH").map(String::as_str);
    let found = command.first().and_then(|program| programs::find(program, search));
    let Some(mut found) = found else { return (command, programs::Found::default()) };
    command[0] = found.path.to_string_lossy().into_owned();
    for word in &mut command[1..] {
        let Ok(script) = std::fs::canonicalize(plain.dir.join(&*word)) else { continue };
        if script.is_file() {
            *word = script.to_string_lossy().into_owned();
            found.changed_at = found.changed_at.max(programs::changed_at(&script));
            found.read.push(programs::package_of(&script));
        }
    }
    (command, found)
}

/// The folders that the agents of a runner write and read.
fn folders(name: &str, config: &Config) -> (Vec<PathBuf>, Vec<PathBuf>) {
    let plugin = format!("{AUTHOR}/{name}");
    let own = config.agents.values().filter(|agent| agent.runner.plugin() == plugin);
    let needed: Vec<_> = own.map(|agent| greenroom_acp_agent::folders(&agent.config)).collect();
    let writes = needed.iter().filter_map(|folders| folders.writes.clone()).collect();
    let reads = needed.iter().filter_map(|folders| folders.reads.clone()).collect();
    (writes, reads)
}

/// Mistakes that only the host's own runner knows.
pub(super) fn check(loaded: &Loaded) -> Result<(), Failure> {
    let config = &loaded.config;
    for (name, acp) in harnesses(config) {
        let names = || profile::all().into_iter().map(|profile| profile.name).collect::<Vec<_>>();
        let mistake = match &acp.profile {
            Some(wanted) if profile::find(wanted).is_none() => {
                let hint = format!(
                    "one of: {}; or leave it out and write a `command`",
                    names().join(", ")
                );
                Some(("profile", format!("there is no profile `{wanted}`"), hint))
            }
            _ if greenroom_protocol::RunnerId::new(AUTHOR, name, "default").is_err() => {
                let hint = "use letters, digits, `-`, `_` and `.`".to_owned();
                Some(("wire", format!("`{name}` cannot name a harness"), hint))
            }
            _ => None,
        };
        if let Some((key, message, hint)) = mistake {
            let invalid = loaded.invalid_at(&["runners", name, key], message, Some(hint));
            return Err(Failure::from(anyhow::Error::new(invalid)).exit(Exit::Usage));
        }
    }
    Ok(())
}

/// The harnesses of a configuration, by the name of their runner.
pub(crate) fn harnesses(config: &Config) -> impl Iterator<Item = (&String, &Acp)> {
    config.runners.iter().filter_map(|(name, runner)| Some((name, runner.acp.as_ref()?)))
}

/// What is missing to start a harness.
pub(crate) fn missing(acp: &Acp, search: Option<&str>) -> Option<String> {
    let known = acp.profile.as_deref().and_then(profile::find);
    let program = acp.command.first().or_else(|| known.as_ref()?.command.first())?;
    if programs::find(program, search).is_some() {
        return None;
    }
    let hint = known.as_ref().map(|profile| format!(": install it with `{}`", install(profile)));
    Some(format!("program `{program}` does not exist{}", hint.unwrap_or_default()))
}

/// The command that installs a harness.
pub(crate) fn install(profile: &Profile) -> String {
    format!("npm install --global {}", profile.packages.join(" "))
}
