//! `greenroom serve`: starts the host.

mod database;

use crate::client::DEFAULT_DATA;
use crate::data_folder::DataFolder;
use crate::doors::Doors;
use crate::failure::{Exit, Failure, Outcome};
use crate::granted::{self, NotReady, Offered, OfferedRunner};
use crate::secrets::Secrets;
use crate::watch::Watched;
use crate::{output, sign_in, warnings, wiring};
use greenroom_config::env;
use greenroom_config::{Config, Loaded};
use greenroom_host::artifacts::owner_of_bytes;
use greenroom_host::resources::ResourceSettings;
use greenroom_host::{Host, HostOptions, Redactor};
use greenroom_objects::Objects;
use greenroom_runtime::{RunnerSpec, RunnerStatus};
use greenroom_server::{Server, hash_token};
use greenroom_tools::{McpServer, McpStatus};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Start the host; no configuration needed
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  greenroom serve
  greenroom serve --config greenroom.toml --data /var/lib/greenroom
  greenroom serve --listen 127.0.0.1:0")]
pub struct Args {
    /// Configuration file [default: `GREENROOM_CONFIG`, else ./greenroom.toml if it exists]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Folder for everything the host keeps [default: ./greenroom-data]
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Address to listen on; port 0 picks a free one [default: 127.0.0.1:8700]
    #[arg(long, value_name = "ADDR")]
    pub listen: Option<SocketAddr>,
    /// What to do about a database of an older version; SQLite files are copied aside first
    #[arg(long, value_enum, value_name = "yes|no", default_value_t = Migrate::Yes, hide_possible_values = true)]
    pub migrate: Migrate,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Migrate {
    /// Upgrade it
    Yes,
    /// Refuse to start
    No,
}

/// How long runner processes of an earlier host may take to end.
const ORPHANS_WAIT: Duration = Duration::from_secs(10);
/// How often the configuration file is looked at.
const LOOK_AT_FILE: Duration = Duration::from_secs(1);

/// Starts the host and serves until a signal ends it.
pub async fn run(args: Args) -> Outcome {
    greenroom_runtime::make_undumpable();
    let redactor = Redactor::new();
    crate::logging::start(redactor.clone());
    #[cfg(feature = "faults")]
    if let Some(spec) = env::get(env::FAULT) {
        greenroom_store::fault::arm(&spec);
    }
    let (config, loaded) = wiring::load(args.config.as_deref())?;
    let named = args.data.clone().or_else(|| env::get(env::DATA).map(PathBuf::from));
    let folder = DataFolder::take(&named.unwrap_or_else(|| DEFAULT_DATA.into()))?;
    loaded.iter().for_each(tell_warnings);
    let file = Watched::new(loaded.map(|loaded| loaded.path().to_owned()), &config);
    let signals = Signals::listen()?;
    let running = Running::start(config, folder, file, &args, redactor).await?;
    running.serve(signals).await
}

/// What `check` would say of a file that is valid.
fn tell_warnings(loaded: &Loaded) {
    warnings::all(loaded).iter().for_each(|warning| output::note(&warning.told(loaded.path())));
}

/// Listened to before anyone can know that the host is there: unheard, each of them would end it at once.
struct Signals {
    end: End,
    reload: Signal,
}

/// Someone wants the host to end.
struct End {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    fn listen() -> std::io::Result<Self> {
        let (interrupt, terminate) = (SignalKind::interrupt(), SignalKind::terminate());
        let end = End { interrupt: signal(interrupt)?, terminate: signal(terminate)? };
        Ok(Self { end, reload: signal(SignalKind::hangup())? })
    }
}

impl End {
    async fn heard(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

/// Everything that runs, in the order in which it ends.
struct Running {
    folder: DataFolder,
    admin_token: String,
    program: String,
    host: Host,
    server: Server,
    doors: Doors,
    stop: CancellationToken,
    file: Watched,
    /// As the file was read last.
    config: Config,
    /// As they were started last.
    runners: Vec<RunnerSpec>,
    resources: ResourceSettings,
    secrets: Secrets,
    /// Tools that are granted and not there, as they were told last.
    missing: Vec<String>,
}

impl Running {
    async fn start(
        config: Config,
        folder: DataFolder,
        file: Watched,
        args: &Args,
        redactor: Redactor,
    ) -> Result<Self, Failure> {
        let data = folder.path().to_owned();
        let admin_token = folder.admin_token()?;
        let mut secrets = Secrets::new(redactor.clone());
        secrets.add(wiring::secrets(&config, &admin_token));
        let doors = Doors::open(&config.server, args.listen)?;
        let left = greenroom_runtime::wait_for_orphans(&data.join("run"), ORPHANS_WAIT).await;
        if left > 0 {
            let message = format!("{left} runner processes of an earlier host are still there");
            return Err(Failure::new(message).hint("end them, then start again"));
        }
        for own in ["echo", "local-agent"] {
            std::fs::create_dir_all(data.join("runners").join(own))?;
        }
        let (options, migrate) = (wiring::store(&config, &data), args.migrate);
        let store = tokio::task::spawn_blocking(move || database::open(&options, migrate)).await;
        let store = store.map_err(anyhow::Error::new)??;
        let program = std::env::current_exe()?.to_string_lossy().into_owned();
        let runners = wiring::runners(&config, &program, &data);
        let place = wiring::artifacts(&config, &data);
        let objects =
            Objects::open(&place, &owner_of_bytes(store.cursor_key())).await.map_err(|error| {
                let context = format!("cannot use `{place}` for artifacts");
                Failure::from(anyhow::Error::new(error).context(context))
            })?;
        let resources = wiring::resources(&config, &program, doors.for_children());
        let host = Host::start(HostOptions {
            store,
            objects,
            settings: wiring::settings(&config),
            runners: runners.clone(),
            runtime: wiring::runtime(&config, &program, &data),
            resources: resources.clone(),
            redactor,
        });
        let host = host.await.map_err(anyhow::Error::new)?;
        for model in wiring::models(&config) {
            let (provider, own) = (&model.provider_name, &model.model);
            tracing::info!(name = model.name, provider, model = own, "model");
        }
        let stop = CancellationToken::new();
        let access = wiring::access(&config, &admin_token);
        let options = wiring::server(&config, &admin_token);
        let front = wiring::front(&config);
        let server = Server::new(host.clone(), access, front, options, stop.clone());
        folder.announce(&doors, file.path())?;
        let url = address(&server, &doors, &admin_token, &mut secrets)?;
        output::note(&format!("greenroom is ready: {url}  (data in {})", data.display()));
        Ok(Self {
            folder,
            admin_token,
            program,
            host,
            server,
            doors,
            stop,
            file,
            config,
            runners,
            resources,
            secrets,
            missing: Vec::new(),
        })
    }

    async fn serve(mut self, signals: Signals) -> Outcome {
        let Signals { mut end, mut reload } = signals;
        raise_open_files();
        let Some(serving) = self.doors.serve(&self.server) else { return Ok(Exit::Failure) };
        loop {
            tokio::select! {
                () = end.heard() => break,
                _ = reload.recv() => {
                    self.file.has_changed(&self.config);
                    self.reload().await;
                }
                () = tokio::time::sleep(LOOK_AT_FILE) => {
                    if self.file.has_changed(&self.config) {
                        self.reload().await;
                    } else {
                        self.restart_changed().await;
                    }
                    self.tell_missing();
                }
                error = self.lost() => {
                    // Nothing may be promised any more: end at once, the next start settles the rest.
                    output::note(&format!("error: {error}"));
                    self.folder.withdraw();
                    std::process::exit(Exit::Failure as i32);
                }
            }
        }
        let grace = self.config.limits.shutdown_grace;
        output::note(&format!(
            "stopping: runs get {} s to finish; a second signal ends the host at once",
            grace.as_secs()
        ));
        tokio::select! {
            outcome = self.finish(serving, grace) => outcome,
            () = end.heard() => {
                output::note("ended at once: the next start settles what was open");
                self.folder.withdraw();
                std::process::exit(Exit::Failure as i32);
            }
        }
    }

    /// Takes nothing new, lets runs finish while their readers watch, then ends everything.
    async fn finish(&self, serving: JoinHandle<()>, grace: Duration) -> Outcome {
        self.stop.cancel();
        self.server.drained().await;
        self.host.stop(grace).await;
        self.server.close_streams();
        if serving.await.is_err() {
            tracing::warn!("the server ended badly");
        }
        let store = self.host.store().clone();
        let closed = tokio::task::spawn_blocking(move || store.close()).await;
        self.folder.withdraw();
        closed.map_err(anyhow::Error::new)?;
        Ok(Exit::Ok)
    }

    async fn lost(&self) -> greenroom_store::StoreError {
        self.host.store().lost().await
    }

    /// All or nothing: a file with a mistake changes nothing.
    async fn reload(&mut self) {
        let Some(file) = self.file.path().map(Path::to_owned) else {
            return output::note("note: there is no configuration file to read");
        };
        let (config, loaded) = match wiring::load(Some(&file)) {
            Ok(found) => found,
            Err(failure) => {
                output::note(&format!("{failure}\nnote: the configuration in force is unchanged"));
                return;
            }
        };
        // Known before anything that uses them starts.
        self.secrets.add(wiring::secrets(&config, &self.admin_token));
        let data = self.folder.path();
        let runners = wiring::runners(&config, &self.program, data);
        let resources = wiring::resources(&config, &self.program, self.doors.for_children());
        let settings = wiring::settings(&config);
        match self.host.reload(settings, runners.clone(), resources.clone()).await {
            Ok(()) => {
                (self.runners, self.resources) = (runners, resources);
                self.server.set_access(wiring::access(&config, &self.admin_token));
                self.server.set_front(wiring::front(&config));
                self.doors.reload(&config.server);
                tracing::info!(file = %file.display(), "the configuration was reloaded");
                loaded.iter().for_each(tell_warnings);
                for key in self.config.keys_for_restart(&config) {
                    output::note(&format!("note: `{key}` changed: takes effect at the next start"));
                }
                self.file.refers_to(&config);
                self.config = config;
                if let Err(error) = self.folder.announce(&self.doors, Some(&file)) {
                    tracing::warn!(%error, "`host.json` does not tell which configuration is used");
                }
            }
            Err(error) => output::note(&format!("error: {error}")),
        }
    }
}

impl Running {
    /// A runner or tool server whose program, script or paths changed is started again; runs end on the old process.
    async fn restart_changed(&mut self) {
        let runners = wiring::runners(&self.config, &self.program, self.folder.path());
        let resources = wiring::resources(&self.config, &self.program, self.doors.for_children());
        if runners == self.runners && resources == self.resources {
            return;
        }
        for runner in runners.iter().filter(|runner| !self.runners.contains(runner)) {
            tracing::info!(runner = runner.name, "its files changed, it is started again");
        }
        let settings = wiring::settings(&self.config);
        match self.host.reload(settings, runners.clone(), resources.clone()).await {
            Ok(()) => (self.runners, self.resources) = (runners, resources),
            Err(error) => output::note(&format!("error: {error}")),
        }
    }

    /// Says once what agents name that its source, which runs now, does not offer, and who gets no models.
    fn tell_missing(&mut self) {
        if self.config.agents.is_empty() {
            return;
        }
        let toolbox = &self.host.resources().tools;
        let is_ready = |server: &&Arc<McpServer>| server.health().status == McpStatus::Ready;
        let servers = toolbox.servers().iter().filter(is_ready);
        let servers = servers.map(|server| server.name().to_owned());
        let states = self.host.runtime().runners();
        let ready = states.iter().filter(|runner| runner.status == RunnerStatus::Ready);
        let runners = ready.clone().flat_map(|runner| &runner.descriptors);
        let runners = runners.map(|offered| OfferedRunner::new(&offered.manifest)).collect();
        let sources = servers.chain(ready.map(|runner| runner.name.clone())).collect();
        let others = states.iter().filter(|runner| runner.status != RunnerStatus::Ready);
        let not_ready = others.map(|runner| NotReady {
            name: runner.name.clone(),
            plugin: runner.plugin.clone(),
            has_failed: runner.last_error.is_some(),
        });
        let not_ready = not_ready.collect();
        let offered = Offered { tools: toolbox.names(), sources, runners, not_ready };
        let mut missing = granted::missing(&self.config, &offered);
        missing.extend(granted::without_models(&self.config, &offered));
        for text in &missing {
            if !self.missing.contains(text) {
                tracing::warn!("{text}");
            }
        }
        self.missing = missing;
    }
}

/// Where to go, signed in by the first visit; who reads the journal is not meant to sign in.
fn address(
    server: &Server,
    doors: &Doors,
    admin_token: &str,
    secrets: &mut Secrets,
) -> Result<String, Failure> {
    if sign_in::is_journal() {
        return Ok(doors.url());
    }
    let code = server.sign_in_code(hash_token(admin_token)).map_err(anyhow::Error::new)?;
    secrets.add(vec![code.clone()]);
    Ok(sign_in::url(&doors.url(), &code))
}

/// Every connection takes a descriptor, and systems give programs few unless they ask for more.
fn raise_open_files() {
    let limit = getrlimit(Resource::Nofile);
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }) {
        tracing::warn!(%error, "the limit of open files stays at {:?}", limit.current);
    }
}
