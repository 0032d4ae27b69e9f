//! From the configuration to the settings of the host, the runtime, the server and the stores.

pub(crate) mod harness;
mod resources;

pub(crate) use resources::{models, modules, resources};

use crate::failure::{Exit, Failure};
use crate::plugin_files;
use greenroom_config::{
    self as config, Answerer, Artifacts, Config, Known, Launch, Loaded, StoreUrl,
};
use greenroom_host::binding;
use greenroom_host::settings::{Agent, Settings};
use greenroom_models::presets;
use greenroom_objects::{Backend, BucketSettings};
use greenroom_protocol::RunnerId;
use greenroom_runtime::{Cleaner, Network, RunnerSpec, Sandbox, UserIds, Wire, Without};
use greenroom_server::{
    Access, Actors, Conversations, Names, RequestPolicy, Role, ServerOptions, Token, hash_token,
};
use greenroom_store::{Location, Options, Sync};
use greenroom_surfaces::{Surface, TextMax, Webhook, action};
use greenroom_tools::project_cli::{self, MethodSpec};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The built-in runner processes.
const ECHO_RUNNER: &str = "greenroom-echo";
const ECHO_ID: &str = "plugin:greenroom/echo/default";
const AGENT_RUNNER: &str = "greenroom-local-agent";
const AGENT_ID: &str = "plugin:greenroom/local-agent/default";
/// Methods of the project CLI that are granted to the built-in agent.
const ASSISTANT_MODULES: [&str; 3] = ["calendar.*", "contacts.*", "memory.*"];

/// The configuration file, or the defaults without one.
pub(crate) fn load(named: Option<&Path>) -> Result<(Config, Option<Loaded>), Failure> {
    match config::find_file(named) {
        Some(path) => {
            let loaded = load_file(&path)?;
            resources::check_environment(&loaded.config)?;
            check_ties(&loaded)?;
            harness::check(&loaded)?;
            resources::check(&loaded)?;
            Ok((loaded.config.clone(), Some(loaded)))
        }
        None => {
            let config = Config::default();
            resources::check_environment(&config)?;
            Ok((config, None))
        }
    }
}

/// Loads a file without checking the files it refers to.
pub(crate) fn load_file(path: &Path) -> Result<Loaded, config::LoadError> {
    config::load(path, &known())
}

/// The names that a configuration may use.
pub(crate) fn known() -> Known {
    Known {
        providers: &presets::NAMES,
        actions: &action::ALL,
        methods: project_cli::specs().iter().map(MethodSpec::name).collect(),
        is_route: greenroom_server::is_route,
    }
}

fn check_ties(loaded: &Loaded) -> Result<(), Failure> {
    let agents = agents(&loaded.config);
    let ties = binding::ties(&agents);
    let Some((one, other)) = ties.first() else { return Ok(()) };
    let message = format!("agents `{one}` and `{other}` match the same events");
    let hint = "give one of them other `events` (`events = []`: only events that name it), a narrower `scope` \
                or `filters`"
        .to_owned();
    let invalid = loaded.invalid_at(&["agents", other], message, Some(hint));
    Err(Failure::from(anyhow::Error::new(invalid)).exit(Exit::Usage))
}

/// The settings of a host with this data folder, which processes of this machine reach at `address`.
pub(crate) fn settings(config: &Config, data: &Path, address: SocketAddr) -> Settings {
    Settings {
        private: store_files(config, data),
        agents: agents(config),
        surfaces: surfaces(config),
        retention: config.retention.clone(),
        budget_day: config.budget_day,
        public_url: config.server.public_address(),
        host_url: format!("http://{}", resources::reachable(address)),
        timezone: crate::timezone::of_machine(),
        approvals: config.approvals.clone(),
        telemetry: config.telemetry.clone(),
        limits: config.limits.clone(),
    }
}

pub(crate) fn agents(config: &Config) -> Vec<Agent> {
    let own = config.agents.iter().map(|(name, agent)| bound(name, agent, &config.limits));
    let built_in = config::BUILT_IN_AGENTS
        .iter()
        .filter(|name| !config.agents.contains_key(**name))
        .filter_map(|name| built_in(name, config));
    own.chain(built_in).collect()
}

fn bound(name: &str, agent: &config::Agent, limits: &config::Limits) -> Agent {
    Agent {
        name: name.to_owned(),
        built_in: false,
        runner: agent.runner.clone(),
        events: agent.events.clone(),
        commands: agent.commands.clone(),
        scope: agent.scope.clone(),
        filters: agent.filters.clone(),
        queue: agent.queue,
        replaces: agent.replaces,
        deadline: agent.deadline.unwrap_or(limits.run_deadline),
        on_interrupt: agent.on_interrupt,
        delivery: agent.delivery.clone(),
        config: agent.config.clone(),
        grant: agent.grant.clone(),
        budget: agent.budget,
    }
}

/// `assistant` handles messages unless a configured agent does; `echo` only events that name it.
fn built_in(name: &str, config: &Config) -> Option<Agent> {
    let is_assistant = name == "assistant";
    let runner = if is_assistant { AGENT_ID } else { ECHO_ID };
    let mut agent = config::Agent::new(RunnerId::parse(runner).ok()?);
    if is_assistant {
        agent.grant.models = models(config).into_iter().map(|model| model.name).collect();
        agent.grant.modules = ASSISTANT_MODULES.map(str::to_owned).to_vec();
        let modules = ASSISTANT_MODULES.iter().filter_map(|name| name.split('.').next());
        agent.grant.skills = modules.map(str::to_owned).collect();
    } else {
        agent.events.clear();
    }
    let mut agent = bound(name, &agent, &config.limits);
    agent.built_in = true;
    Some(agent)
}

pub(crate) fn surfaces(config: &Config) -> BTreeMap<String, Surface> {
    let surfaces = config.surfaces.iter();
    surfaces.map(|(name, surface)| (name.clone(), self::surface(surface))).collect()
}

pub(crate) fn surface(surface: &config::Surface) -> Surface {
    match surface {
        config::Surface::Webhook(webhook) => Surface::Webhook(Webhook {
            url: webhook.url.clone(),
            secret: webhook.secret.as_ref().map(|secret| secret.expose().as_bytes().to_vec()),
            allow_private: webhook.allow_private,
            idempotent: webhook.idempotent,
            timeout: webhook.timeout,
            text_max: webhook.max_message_size.map(TextMax::Characters),
            actions: webhook.actions.clone(),
        }),
    }
}

/// The configured and the built-in runners.
pub(crate) fn runners(
    config: &Config,
    program: &str,
    data: &Path,
    address: SocketAddr,
) -> Vec<RunnerSpec> {
    let host = resources::reachable(address);
    let secrets = secret_files(config);
    let hidden: Vec<PathBuf> = secrets.iter().cloned().chain(store_files(config, data)).collect();
    let spec = |(name, runner): (&String, &config::Runner)| {
        let mut spec = runner_spec(name, runner, host);
        if let Some(acp) = &runner.acp {
            spec = harness::spec(name, acp, spec, config, harness::Place { program, data, host });
        }
        // A file that replaced a hidden one is not hidden from processes that are already running.
        let open = |file: &&PathBuf| {
            file.starts_with(&spec.dir) || spec.paths.iter().any(|path| file.starts_with(path))
        };
        spec.hidden_at = secrets.iter().filter(open).filter_map(|file| modified(file)).max();
        spec.hidden.extend(hidden.iter().cloned());
        spec
    };
    let mut specs: Vec<RunnerSpec> = config.runners.iter().map(spec).collect();
    let own = [(ECHO_RUNNER, "echo"), (AGENT_RUNNER, "local-agent")];
    specs.extend(own.map(|(name, runner)| RunnerSpec {
        name: name.to_owned(),
        command: [program, "runner-process", runner].map(str::to_owned).to_vec(),
        dir: data.join("runners").join(runner),
        plugin: Some(format!("greenroom/{runner}")),
        // They reach everything through the host.
        network: Network::Off,
        ..RunnerSpec::default()
    }));
    specs
}

fn runner_spec(name: &str, runner: &config::Runner, host: SocketAddr) -> RunnerSpec {
    let plain = RunnerSpec {
        name: name.to_owned(),
        plugin: runner.plugin.clone(),
        wire: match runner.wire {
            config::Wire::Native | config::Wire::Acp => Wire::Native,
            config::Wire::Langbot => Wire::Langbot,
        },
        plugin_config: runner
            .config
            .iter()
            .map(|(key, setting)| (key.clone(), setting.expose()))
            .collect(),
        listens: runner.listens.iter().cloned().collect(),
        ..RunnerSpec::default()
    };
    let Launch::Process(process) = &runner.launch else { return plain };
    let plugins = || plugin_files::changed_at(&process.dir);
    let env = process.env.iter().map(|(key, value)| (key.clone(), value.expose().to_owned()));
    RunnerSpec {
        command: std::iter::once(&process.program).chain(&process.args).cloned().collect(),
        dir: process.dir.clone(),
        owns_dir: process.owns_dir,
        env: env.collect(),
        sandbox: sandbox(process.sandbox),
        paths: process.paths.clone(),
        absent_paths: resources::absent(&process.paths),
        hidden: vec![process.configuration.clone()],
        processes: u32::try_from(process.processes).unwrap_or(u32::MAX),
        threads: process.threads,
        memory_mb: process.memory_mb,
        disk_mb: process.disk_mb,
        files: process.files,
        network: Network::of(&process.network_access(), Some(host)),
        changed_at: match runner.wire {
            config::Wire::Native | config::Wire::Acp => changed_at(process),
            config::Wire::Langbot => changed_at(process).max(plugins()),
        },
        ..plain
    }
}

/// The values to redact from all output.
pub(crate) fn secrets(config: &Config, admin_token: &str) -> Vec<String> {
    let exposed =
        config.secrets.iter().chain(store_secret(config)).map(|secret| secret.expose().to_owned());
    // So is a key from the environment.
    let keys = models(config).into_iter().filter_map(|model| model.api_key);
    let exposed = exposed.chain(keys.map(|key| key.expose().to_owned()));
    exposed.chain([admin_token.to_owned()]).collect()
}

/// The address of the store, which may contain a password even if written in the file.
fn store_secret(config: &Config) -> Option<&config::Secret> {
    match &config.store.url {
        Some(StoreUrl::Postgres(url)) => Some(url),
        _ => None,
    }
}

/// Every file that a secret was read from.
fn secret_files(config: &Config) -> Vec<PathBuf> {
    let files = config.secrets.iter().filter_map(|secret| secret.file().map(Path::to_owned));
    files.chain(config.server.tls.iter().map(|tls| tls.key.clone())).collect()
}

/// The data folder, and the store and the artifacts if they are elsewhere.
fn store_files(config: &Config, data: &Path) -> Vec<PathBuf> {
    let mut files = vec![data.to_owned()];
    if let Some(StoreUrl::Sqlite(path)) = &config.store.url {
        let beside = |suffix| PathBuf::from(format!("{}{suffix}", path.display()));
        files.extend(["", "-wal", "-shm", "-mark", "-sums"].map(beside));
    }
    if let Artifacts::Folder(path) = &config.artifacts {
        files.push(path.clone());
    }
    files
}

fn modified(file: &Path) -> Option<SystemTime> {
    std::fs::metadata(file).and_then(|file| file.modified()).ok()
}

/// When the newest file of a command changed: then the runner is restarted with the new code.
fn changed_at(process: &config::Process) -> Option<SystemTime> {
    let names = std::iter::once(&process.program).chain(&process.args);
    let files = names.filter_map(|name| std::fs::metadata(process.dir.join(name)).ok());
    files.filter(|file| file.is_file()).filter_map(|file| file.modified().ok()).max()
}

pub(crate) fn runtime(config: &Config, program: &str, data: &Path) -> greenroom_runtime::Settings {
    greenroom_runtime::Settings {
        supervisor: [program, "supervise"].map(str::to_owned).to_vec(),
        run_dir: data.join("run"),
        hidden: vec![data.to_owned()],
        host_version: env!("CARGO_PKG_VERSION").to_owned(),
        cleaner: Cleaner::default(),
        limits: config.limits.clone().into(),
        users: UserIds::default(),
        without: without(),
    }
}

/// The conversations that the entries of other tokens name.
fn reserved(config: &Config, name: &str) -> Names {
    let others = config.tokens.iter().filter(|(other, _)| *other != name);
    let named = others.flat_map(|(_, token)| match &token.role {
        config::Role::Sender { conversations, .. } => conversations.named.clone(),
        config::Role::Admin | config::Role::Reader => Vec::new(),
    });
    Names(named.collect())
}

pub(crate) fn sandbox(configured: config::Sandbox) -> Sandbox {
    match configured {
        config::Sandbox::On => Sandbox::On,
        config::Sandbox::Off => Sandbox::Off,
        config::Sandbox::Required => Sandbox::Required,
    }
}

/// Parts of the kernel that a test wants to be missing.
fn without() -> Without {
    #[cfg(feature = "faults")]
    if let Some(parts) = config::env::get(config::env::WITHOUT) {
        return Without::parse(&parts);
    }
    Without::default()
}

/// The tokens that may call the host: that of the data folder and those of the configuration.
pub(crate) fn access(config: &Config, admin_token: &str) -> Access {
    let answers = |wanted: &Answerer| config.approvals.answer.contains(wanted);
    let admin = Token {
        hash: hash_token(admin_token),
        role: Role::Admin,
        name: "admin".to_owned(),
        answers: answers(&Answerer::Admin),
    };
    let role = |name: &str, role: &config::Role| match role {
        config::Role::Admin => Role::Admin,
        config::Role::Reader => Role::Reader,
        config::Role::Sender { agents, actors, conversations } => Role::Sender {
            agents: agents.as_ref().map(|agents| agents.as_slice().into()),
            actors: match actors {
                config::Actors::Own => Actors::Own,
                config::Actors::One(actor) => Actors::One(actor.as_str().into()),
                config::Actors::Any => Actors::Any,
            },
            conversations: Conversations {
                limited: conversations.limited,
                named: Names(conversations.named.clone()),
                reserved: reserved(config, name),
            },
        },
    };
    let tokens = config.tokens.iter().map(|(name, token)| Token {
        hash: hash_token(token.token.expose()),
        role: role(name, &token.role),
        name: format!("token:{name}"),
        answers: answers(&Answerer::Token(name.clone()))
            || (token.role == config::Role::Admin && answers(&Answerer::Admin)),
    });
    let runners = config.runners.iter().filter_map(|(name, runner)| match &runner.launch {
        Launch::Connect { token } => Some((hash_token(token.expose()), name.clone())),
        Launch::Process(_) => None,
    });
    Access::new(tokens.chain([admin]).collect(), runners.collect())
}

/// The settings that the server can change while it runs.
pub(crate) fn request_policy(config: &Config) -> RequestPolicy {
    let server = &config.server;
    RequestPolicy {
        allowed_hosts: server.allowed_hosts.clone(),
        allowed_origins: server.allowed_origins.clone(),
        trusted_proxies: server.trusted_proxies.clone(),
    }
}

pub(crate) fn server(config: &Config, admin_token: &str) -> ServerOptions {
    ServerOptions {
        limits: config.limits.clone(),
        base_path: config.server.base_path.clone(),
        cookie: cookie(admin_token),
    }
}

/// A different name for every data folder, because browsers ignore ports in cookies.
fn cookie(admin_token: &str) -> String {
    let folder = hash_token(&format!("cookie of {admin_token}"));
    let short: String = folder.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    format!("greenroom_session_{short}")
}

pub(crate) fn store(config: &Config, data: &Path) -> Options {
    let location = match &config.store.url {
        None => Location::Sqlite(data.join("greenroom.db")),
        Some(StoreUrl::Sqlite(path)) => Location::Sqlite(path.clone()),
        Some(StoreUrl::Postgres(url)) => Location::Postgres(url.expose().to_owned()),
    };
    let sync = match config.store.sync {
        config::Sync::Full => Sync::Full,
        config::Sync::Normal => Sync::Normal,
    };
    Options { location, sync }
}

/// Where artifacts are stored; uploads to a bucket are spooled in the data folder.
pub(crate) fn artifacts(config: &Config, data: &Path) -> Backend {
    match &config.artifacts {
        Artifacts::InData => Backend::Folder(data.join("artifacts")),
        Artifacts::Folder(path) => Backend::Folder(path.clone()),
        Artifacts::Bucket(bucket) => Backend::Bucket(BucketSettings {
            bucket: bucket.bucket.clone(),
            prefix: bucket.prefix.clone(),
            endpoint: bucket.endpoint.clone(),
            region: bucket.region.clone(),
            access_key_id: bucket.access_key_id.expose().to_owned(),
            secret_access_key: bucket.secret_access_key.expose().to_owned(),
            allow_http: bucket.allow_http,
            spool: data.join("artifacts"),
        }),
    }
}
