//! `greenroom serve`: starts the host.

mod database;

use crate::client::DEFAULT_DATA;
use crate::data_folder::DataFolder;
use crate::doors::Doors;
use crate::failure::{Exit, Failure, Outcome};
use crate::granted::{self, NotReady, Offered, OfferedRunner};
use crate::secrets::Secrets;
use crate::watch::Watched;
use crate::{output, sign_in, warnings, wiring, workspaces};
use greenroom_config::env;
use greenroom_config::{Config, Loaded};
use greenroom_host::resources::ResourceSettings;
use greenroom_host::{Host, HostOptions, Redactor};
use greenroom_runtime::{RunnerSpec, RunnerStatus};
use greenroom_server::{Server, hash_token};
use greenroom_store::OnLoss;
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
    /// Data folder [default: ./greenroom-data]
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Address to listen on; port 0 picks a free one [default: 127.0.0.1:8700]
    #[arg(long, value_name = "ADDR")]
    pub listen: Option<SocketAddr>,
    /// What to do with a database of an older version; SQLite files are backed up first
    #[arg(long, value_enum, value_name = "yes|no", default_value_t = Migrate::Yes, hide_possible_values = true)]
    pub migrate: Migrate,
    /// Start although the database is damaged or incomplete; what was found is recorded as an event
    #[arg(long)]
    pub accept_loss: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Migrate {
    /// Upgrade it
    Yes,
    /// Refuse to start
    No,
}

/// How long runner processes of a previous host may take to exit.
const ORPHANS_WAIT: Duration = Duration::from_secs(10);
/// How often the configuration file is checked for changes.
const LOOK_AT_FILE: Duration = Duration::from_secs(1);

/// Starts the host and serves until a signal stops it.
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
    loaded.iter().for_each(print_warnings);
    let file = Watched::new(loaded.map(|loaded| loaded.path().to_owned()), &config);
    let signals = Signals::listen()?;
    let running = Running::start(config, folder, file, &args, redactor).await?;
    running.serve(signals).await
}

/// Prints the warnings that `check` prints.
fn print_warnings(loaded: &Loaded) {
    warnings::all(loaded).iter().for_each(|warning| output::note(&warning.show(loaded.path())));
}

/// The signals, registered before the host is announced: without a handler each would kill it.
struct Signals {
    end: End,
    reload: Signal,
}

/// Waits for a signal to stop.
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

/// Everything that runs, in the order in which it stops.
struct Running {
    folder: DataFolder,
    admin_token: String,
    program: String,
    host: Host,
    server: Server,
    doors: Doors,
    stop: CancellationToken,
    file: Watched,
    /// The loaded configuration.
    config: Config,
    /// The resources in use.
    runners: Vec<RunnerSpec>,
    resources: ResourceSettings,
    secrets: Secrets,
    /// Missing tools that were reported last.
    missing: Vec<String>,
    workspaces: workspaces::Keeper,
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
            let message = format!("{left} runner processes of a previous host are still running");
            return Err(Failure::new(message).hint("stop them, then start again"));
        }
        for own in ["echo", "local-agent"] {
            std::fs::create_dir_all(data.join("runners").join(own))?;
        }
        let options = wiring::store(&config, &data);
        let on_loss = if args.accept_loss { OnLoss::Accept } else { OnLoss::Refuse };
        let migrate = args.migrate;
        let open = move || database::open(&options, migrate, on_loss);
        let store = tokio::task::spawn_blocking(open).await;
        let store = store.map_err(anyhow::Error::new)??;
        let program = std::env::current_exe()?.to_string_lossy().into_owned();
        let runners = wiring::runners(&config, &program, &data, doors.for_children());
        wiring::harness::create_folders(&runners, &data)?;
        let objects =
            database::open_objects(&wiring::artifacts(&config, &data), &store, on_loss).await?;
        let resources = wiring::resources(&config, &program, &data, doors.for_children());
        let host = Host::start(HostOptions {
            store,
            objects,
            settings: wiring::settings(&config, &data, doors.for_children()),
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
        let front = wiring::request_policy(&config);
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
            workspaces: workspaces::Keeper::default(),
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
                    self.print_missing();
                    self.workspaces.look(self.folder.path(), &self.config.retention);
                }
                error = self.lost() => {
                    // Nothing can be committed any more: exit now, the next start recovers.
                    output::note(&format!("error: {error}"));
                    self.folder.withdraw();
                    std::process::exit(Exit::Failure as i32);
                }
            }
        }
        let grace = self.config.limits.shutdown_grace;
        output::note(&format!(
            "stopping: runs get {} s to finish; a second signal stops the host at once",
            grace.as_secs()
        ));
        tokio::select! {
            outcome = self.finish(serving, grace) => outcome,
            () = end.heard() => {
                output::note("stopped at once; the next start recovers open runs");
                self.folder.withdraw();
                std::process::exit(Exit::Failure as i32);
            }
        }
    }

    /// Refuses new work, lets runs finish while clients follow them, then stops everything.
    async fn finish(&self, serving: JoinHandle<()>, grace: Duration) -> Outcome {
        self.stop.cancel();
        self.server.drained().await;
        self.host.stop(grace).await;
        self.server.close_streams();
        if serving.await.is_err() {
            tracing::warn!("the server task panicked");
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

    /// Applies the file completely; a file with a mistake changes nothing.
    async fn reload(&mut self) {
        let Some(file) = self.file.path().map(Path::to_owned) else {
            return output::note("note: there is no configuration file to reload");
        };
        let (config, loaded) = match wiring::load(Some(&file)) {
            Ok(found) => found,
            Err(failure) => {
                output::note(&format!("{failure}\nnote: the configuration is unchanged"));
                return;
            }
        };
        // Registered before anything that uses them starts.
        self.secrets.add(wiring::secrets(&config, &self.admin_token));
        let data = self.folder.path();
        let runners = wiring::runners(&config, &self.program, data, self.doors.for_children());
        if let Err(error) = wiring::harness::create_folders(&runners, data) {
            tracing::warn!(%error, "cannot create the folder of a harness");
        }
        let resources = wiring::resources(&config, &self.program, data, self.doors.for_children());
        let settings = wiring::settings(&config, data, self.doors.for_children());
        match self.host.reload(settings, runners.clone(), resources.clone()).await {
            Ok(()) => {
                (self.runners, self.resources) = (runners, resources);
                self.server.set_access(wiring::access(&config, &self.admin_token));
                self.server.set_request_policy(wiring::request_policy(&config));
                self.doors.reload(&config.server);
                tracing::info!(file = %file.display(), "reloaded the configuration");
                loaded.iter().for_each(print_warnings);
                for key in self.config.keys_for_restart(&config) {
                    output::note(&format!(
                        "note: `{key}` changed; it takes effect at the next start"
                    ));
                }
                self.file.refers_to(&config);
                self.config = config;
                if let Err(error) = self.folder.announce(&self.doors, Some(&file)) {
                    tracing::warn!(%error, "cannot write the configuration path to `host.json`");
                }
            }
            Err(error) => output::note(&format!("error: {error}")),
        }
    }
}

impl Running {
    /// Restarts runners and tool servers whose program, script or paths changed; runs finish on the old process.
    async fn restart_changed(&mut self) {
        let runners = {
            let address = self.doors.for_children();
            wiring::runners(&self.config, &self.program, self.folder.path(), address)
        };
        let (data, address) = (self.folder.path(), self.doors.for_children());
        let resources = wiring::resources(&self.config, &self.program, data, address);
        if runners == self.runners && resources == self.resources {
            return;
        }
        for runner in runners.iter().filter(|runner| !self.runners.contains(runner)) {
            tracing::info!(runner = runner.name, "restarting: its files changed");
        }
        let settings =
            wiring::settings(&self.config, self.folder.path(), self.doors.for_children());
        match self.host.reload(settings, runners.clone(), resources.clone()).await {
            Ok(()) => (self.runners, self.resources) = (runners, resources),
            Err(error) => output::note(&format!("error: {error}")),
        }
    }

    /// Prints once which tools and runners of agents do not exist, and which agents lack models.
    fn print_missing(&mut self) {
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

/// The URL of the host, with a sign-in code unless the output goes to the journal.
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

/// Raises the limit of open files: every connection takes a descriptor.
fn raise_open_files() {
    let limit = getrlimit(Resource::Nofile);
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }) {
        tracing::warn!(%error, "cannot raise the limit of open files, it stays at {:?}", limit.current);
    }
}
