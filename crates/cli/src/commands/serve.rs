//! `greenroom serve`: starts the host.

use crate::client::DEFAULT_DATA;
use crate::config::{Config, Loaded};
use crate::data_folder::DataFolder;
use crate::failure::{Exit, Failure, Outcome};
use crate::granted::{self, Offered, OfferedRunner};
use crate::secrets::Secrets;
use crate::watch::Watched;
use crate::{env, output, restart, sign_in, wiring};
use greenroom_host::artifacts::owner_of_bytes;
use greenroom_host::{Host, HostOptions, Redactor};
use greenroom_objects::Objects;
use greenroom_runtime::{RunnerSpec, RunnerStatus};
use greenroom_server::{Server, hash_token, serve};
use greenroom_store::Store;
use greenroom_tools::{McpServer, McpStatus};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

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
    let named = args.data.or_else(|| env::get(env::DATA).map(PathBuf::from));
    let folder = DataFolder::take(&named.unwrap_or_else(|| DEFAULT_DATA.into()))?;
    loaded.iter().for_each(tell_warnings);
    let file = Watched::new(loaded.map(|loaded| loaded.path().to_owned()), &config);
    let signals = Signals::listen()?;
    let running = Running::start(config, folder, file, args.listen, redactor).await?;
    running.serve(signals).await
}

/// What `check` would say of a file that is valid.
fn tell_warnings(loaded: &Loaded) {
    loaded.warnings().iter().for_each(|warning| output::note(&warning.told(loaded.path())));
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
    listener: Option<TcpListener>,
    address: SocketAddr,
    stop: CancellationToken,
    file: Watched,
    /// As the file was read last.
    config: Config,
    /// As they were started last.
    runners: Vec<RunnerSpec>,
    secrets: Secrets,
    /// Tools that are granted and not there, as they were told last.
    missing: Vec<String>,
}

impl Running {
    async fn start(
        config: Config,
        folder: DataFolder,
        file: Watched,
        listen: Option<SocketAddr>,
        redactor: Redactor,
    ) -> Result<Self, Failure> {
        let data = folder.path().to_owned();
        let admin_token = folder.admin_token()?;
        let mut secrets = Secrets::new(redactor.clone());
        secrets.add(wiring::secrets(&config, &admin_token));
        let listener = bind(listen.unwrap_or(config.server.listen))?;
        let left = greenroom_runtime::wait_for_orphans(&data.join("run"), ORPHANS_WAIT).await;
        if left > 0 {
            let message = format!("{left} runner processes of an earlier host are still there");
            return Err(Failure::new(message).hint("end them, then start again"));
        }
        for own in ["echo", "local-agent"] {
            std::fs::create_dir_all(data.join("runners").join(own))?;
        }
        let options = wiring::store(&config, &data);
        let store = tokio::task::spawn_blocking(move || Store::open(&options)).await;
        let store = store.map_err(anyhow::Error::new)?.map_err(|error| {
            Failure::from(anyhow::Error::new(error).context("cannot open the store"))
        })?;
        let program = std::env::current_exe()?.to_string_lossy().into_owned();
        let runners = wiring::runners(&config, &program, &data);
        let place = wiring::artifacts(&config, &data);
        let objects = Objects::open(&place, &owner_of_bytes(&store)).await.map_err(|error| {
            let context = format!("cannot use `{place}` for artifacts");
            Failure::from(anyhow::Error::new(error).context(context))
        })?;
        let host = Host::start(HostOptions {
            store,
            objects,
            settings: wiring::settings(&config),
            runners: runners.clone(),
            runtime: wiring::runtime(&config, &program, &data),
            resources: wiring::resources(&config, &program, listener.local_addr()?),
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
        let server = Server::new(host.clone(), access, options, stop.clone());
        let address = listener.local_addr()?;
        let code = server.sign_in_code(hash_token(&admin_token)).map_err(anyhow::Error::new)?;
        secrets.add(vec![code.clone()]);
        folder.announce(address, file.path())?;
        let url = sign_in::url(&format!("http://{}", sign_in::reachable(address)), &code);
        output::note(&format!("greenroom is ready: {url}  (data in {})", data.display()));
        Ok(Self {
            folder,
            admin_token,
            program,
            host,
            server,
            listener: Some(listener),
            address,
            stop,
            file,
            config,
            runners,
            secrets,
            missing: Vec::new(),
        })
    }

    async fn serve(mut self, signals: Signals) -> Outcome {
        let Signals { mut end, mut reload } = signals;
        raise_open_files();
        let Some(listener) = self.listener.take() else { return Ok(Exit::Failure) };
        let serving = TaskTracker::new().spawn(serve(listener, self.server.clone()));
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
        let grace = self.config.limits.shutdown_grace_s;
        output::note(&format!(
            "stopping: runs get {grace} s to finish; a second signal ends the host at once"
        ));
        tokio::select! {
            outcome = self.finish(serving, Duration::from_secs(grace)) => outcome,
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
        let resources = wiring::resources(&config, &self.program, self.address);
        match self.host.reload(wiring::settings(&config), runners.clone(), resources).await {
            Ok(()) => {
                self.runners = runners;
                self.server.set_access(wiring::access(&config, &self.admin_token));
                tracing::info!(file = %file.display(), "the configuration was reloaded");
                loaded.iter().for_each(tell_warnings);
                for key in restart::keys(&self.config, &config) {
                    output::note(&format!("note: `{key}` changed: takes effect at the next start"));
                }
                self.file.refers_to(&config);
                self.config = config;
                if let Err(error) = self.folder.announce(self.address, Some(&file)) {
                    tracing::warn!(%error, "`host.json` does not tell which configuration is used");
                }
            }
            Err(error) => output::note(&format!("error: {error}")),
        }
    }
}

impl Running {
    /// A runner whose program or script was saved anew is started anew; its runs end on the old process.
    async fn restart_changed(&mut self) {
        let runners = wiring::runners(&self.config, &self.program, self.folder.path());
        if runners == self.runners {
            return;
        }
        for runner in runners.iter().filter(|runner| !self.runners.contains(runner)) {
            tracing::info!(runner = runner.name, "its files changed, it is started anew");
        }
        let resources = wiring::resources(&self.config, &self.program, self.address);
        match self.host.reload(wiring::settings(&self.config), runners.clone(), resources).await {
            Ok(()) => self.runners = runners,
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
        let offered = Offered { tools: toolbox.names(), sources, runners };
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

fn bind(address: SocketAddr) -> Result<TcpListener, Failure> {
    greenroom_server::bind(address).map_err(|error| {
        Failure::from(anyhow::Error::new(error).context(format!("cannot listen on `{address}`")))
            .hint("another host may run already; `--listen 127.0.0.1:0` picks a free port")
    })
}

/// Every connection takes a descriptor, and systems give programs few unless they ask for more.
fn raise_open_files() {
    let limit = getrlimit(Resource::Nofile);
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }) {
        tracing::warn!(%error, "the limit of open files stays at {:?}", limit.current);
    }
}
