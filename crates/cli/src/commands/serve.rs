//! `greenroom serve`: starts the host.

use crate::client::DEFAULT_DATA;
use crate::config::Config;
use crate::data_folder::DataFolder;
use crate::failure::{Exit, Failure, Outcome};
use crate::{env, output, wiring};
use greenroom_host::{Host, HostOptions};
use greenroom_server::{Server, serve};
use greenroom_store::Store;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
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
}

/// How long runner processes of an earlier host may take to end.
const ORPHANS_WAIT: Duration = Duration::from_secs(10);
/// How often the configuration file is looked at.
const LOOK_AT_FILE: Duration = Duration::from_secs(1);

/// Starts the host and serves until a signal ends it.
pub async fn run(args: Args) -> Outcome {
    greenroom_runtime::make_undumpable();
    crate::logging::start();
    #[cfg(feature = "faults")]
    if let Some(spec) = env::get(env::FAULT) {
        greenroom_store::fault::arm(&spec);
    }
    let (config, loaded) = wiring::load(args.config.as_deref())?;
    let named = args.data.or_else(|| env::get(env::DATA).map(PathBuf::from));
    let folder = DataFolder::take(&named.unwrap_or_else(|| DEFAULT_DATA.into()))?;
    let file = loaded.map(|loaded| loaded.path().to_owned());
    let seen = changed_at(file.as_deref());
    let signals = Signals::listen()?;
    let running = Running::start(&config, folder, args.listen).await?;
    running.serve(file, seen, signals).await
}

/// Listened to before anyone can know that the host is there: unheard, each of them would end it at once.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
    reload: Signal,
}

impl Signals {
    fn listen() -> std::io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            reload: signal(SignalKind::hangup())?,
        })
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
    stop: CancellationToken,
    grace: Duration,
}

impl Running {
    async fn start(
        config: &Config,
        folder: DataFolder,
        listen: Option<SocketAddr>,
    ) -> Result<Self, Failure> {
        let data = folder.path().to_owned();
        let admin_token = folder.admin_token()?;
        let address = listen.unwrap_or(config.server.listen);
        let listener = greenroom_server::bind(address).map_err(|error| {
            Failure::from(
                anyhow::Error::new(error).context(format!("cannot listen on `{address}`")),
            )
            .hint("another host may run already; `--listen 127.0.0.1:0` picks a free port")
        })?;
        let left = greenroom_runtime::wait_for_orphans(&data.join("run"), ORPHANS_WAIT).await;
        if left > 0 {
            let message = format!("{left} runner processes of an earlier host are still there");
            return Err(Failure::new(message).hint("end them, then start again"));
        }
        std::fs::create_dir_all(data.join("runners").join("echo"))?;
        let options = wiring::store(config, &data);
        let store = tokio::task::spawn_blocking(move || Store::open(&options)).await;
        let store = store.map_err(anyhow::Error::new)?.map_err(|error| {
            Failure::from(anyhow::Error::new(error).context("cannot open the store"))
        })?;
        let program = std::env::current_exe()?.to_string_lossy().into_owned();
        let host = Host::start(HostOptions {
            store,
            settings: wiring::settings(config),
            runners: wiring::runners(config, &program, &data),
            runtime: wiring::runtime(config, &program, &data),
        });
        let host = host.await.map_err(anyhow::Error::new)?;
        let stop = CancellationToken::new();
        let access = wiring::access(config, &admin_token);
        let server = Server::new(host.clone(), access, wiring::server(config), stop.clone());
        let address = listener.local_addr()?;
        folder.announce(address)?;
        output::note(&format!(
            "greenroom is ready: http://{address}  (data in {})",
            data.display()
        ));
        let grace = Duration::from_secs(config.limits.shutdown_grace_s);
        Ok(Self {
            folder,
            admin_token,
            program,
            host,
            server,
            listener: Some(listener),
            stop,
            grace,
        })
    }

    async fn serve(
        mut self,
        file: Option<PathBuf>,
        mut seen: Option<SystemTime>,
        signals: Signals,
    ) -> Outcome {
        raise_open_files();
        let Some(listener) = self.listener.take() else { return Ok(Exit::Failure) };
        let serving = self.host.tasks().spawn("server", serve(listener, self.server.clone()));
        let Signals { mut interrupt, mut terminate, mut reload } = signals;
        loop {
            tokio::select! {
                _ = interrupt.recv() => break,
                _ = terminate.recv() => break,
                _ = reload.recv() => self.reload(file.as_deref()).await,
                () = tokio::time::sleep(LOOK_AT_FILE) => {
                    let now = changed_at(file.as_deref());
                    if now != seen {
                        seen = now;
                        self.reload(file.as_deref()).await;
                    }
                }
                error = self.lost() => {
                    // Nothing may be promised any more: end at once, the next start settles the rest.
                    output::note(&format!("error: {error}"));
                    self.folder.withdraw();
                    std::process::exit(Exit::Failure as i32);
                }
            }
        }
        output::note("stopping: runs get a while to finish");
        self.stop.cancel();
        if serving.await.is_err() {
            tracing::warn!("the server ended badly");
        }
        self.host.stop(self.grace).await;
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
    async fn reload(&self, file: Option<&Path>) {
        let Some(file) = file else { return };
        let config = match wiring::load(Some(file)) {
            Ok((config, _)) => config,
            Err(failure) => {
                output::note(&format!("{failure}\nnote: the configuration in force is unchanged"));
                return;
            }
        };
        let data = self.folder.path();
        let runners = wiring::runners(&config, &self.program, data);
        match self.host.reload(wiring::settings(&config), runners).await {
            Ok(()) => {
                self.server.set_access(wiring::access(&config, &self.admin_token));
                tracing::info!(file = %file.display(), "the configuration was reloaded");
            }
            Err(error) => output::note(&format!("error: {error}")),
        }
    }
}

/// Every connection takes a descriptor, and systems give programs few unless they ask for more.
fn raise_open_files() {
    let limit = getrlimit(Resource::Nofile);
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }) {
        tracing::warn!(%error, "the limit of open files stays at {:?}", limit.current);
    }
}

/// When the file last changed; nothing while it is not there.
fn changed_at(file: Option<&Path>) -> Option<SystemTime> {
    std::fs::metadata(file?).and_then(|found| found.modified()).ok()
}
