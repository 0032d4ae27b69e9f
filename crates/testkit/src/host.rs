//! The real program in its own folder: started, killed, stopped, restarted.
//!
//! Invariant: the process ends with its `TestHost`; an address is published only once the host is ready.

use crate::api::{Api, Endpoint};
use crate::processes::{self, Memory};
use crate::wait::wait_for;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs::File;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;
use tempfile::TempDir;
use tokio::sync::watch;

/// How long a start or an exit may take.
const PATIENCE: Duration = Duration::from_secs(60);

pub struct TestHost {
    program: PathBuf,
    folder: TempDir,
    fault: Option<String>,
    env: Vec<(String, String)>,
    args: Vec<String>,
    child: Option<Child>,
    endpoint: watch::Sender<Option<Endpoint>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Started {
    Ready,
    /// The process ended before it was ready.
    Died(ExitStatus),
}

impl TestHost {
    /// Starts the program at `program` with `config` as its greenroom.toml.
    pub async fn start(program: impl Into<PathBuf>, config: &str) -> Self {
        let mut host = Self::prepare(program, config);
        host.start_again().await;
        host
    }

    /// Prepares a host without starting it.
    pub fn prepare(program: impl Into<PathBuf>, config: &str) -> Self {
        let folder = tempfile::Builder::new().prefix("greenroom-host-").tempdir();
        let folder = folder.expect("a temporary folder can be made");
        let (endpoint, _) = watch::channel(None);
        let host = Self {
            program: program.into(),
            folder,
            fault: None,
            env: Vec::new(),
            args: Vec::new(),
            child: None,
            endpoint,
        };
        host.configure(config);
        host
    }

    /// Writes the configuration for the next start.
    pub fn configure(&self, config: &str) {
        std::fs::write(self.folder.path().join("greenroom.toml"), config)
            .expect("the configuration can be written");
    }

    /// From the next start on, the process aborts when a fault point is passed for the n-th time (`NAME:n`). Needs a
    /// program built with the feature `faults`.
    pub fn set_fault(&mut self, fault: Option<String>) {
        self.fault = fault;
    }

    /// From the next start on, the process has this environment variable.
    pub fn set_env(&mut self, name: &str, value: &str) {
        self.env.push((name.to_owned(), value.to_owned()));
    }

    /// From the next start on, `serve` gets these arguments as well.
    pub fn set_args(&mut self, args: &[&str]) {
        self.args = args.iter().map(|arg| (*arg).to_owned()).collect();
    }

    /// Starts the program and waits until it is ready.
    pub async fn start_again(&mut self) {
        if let Started::Died(status) = self.try_start().await {
            panic!("the host ended with {status} before it was ready\n{}", self.log());
        }
    }

    /// Starts the program and waits until it is ready or has exited.
    pub async fn try_start(&mut self) -> Started {
        self.spawn();
        self.ready().await
    }

    /// Starts the program without waiting.
    #[expect(clippy::disallowed_methods, reason = "the program under test is started here")]
    pub fn spawn(&mut self) {
        assert!(self.child.is_none(), "the host is already running");
        let log = File::options().create(true).append(true).open(self.log_file());
        let log = log.expect("a log can be written");
        let mut command = Command::new(&self.program);
        command.arg("serve").arg("--data").arg(self.data());
        command.arg("--config").arg(self.folder.path().join("greenroom.toml"));
        command.args(&self.args).args(["--listen", "127.0.0.1:0"]).current_dir(self.folder.path());
        for name in ["GREENROOM_URL", "GREENROOM_TOKEN", "GREENROOM_DATA", "GREENROOM_CONFIG"] {
            command.env_remove(name);
        }
        command
            .env_remove("GREENROOM_FAULT")
            .envs(self.fault.iter().map(|it| ("GREENROOM_FAULT", it)))
            .envs(self.env.iter().cloned());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let child = command.spawn();
        let child = child.unwrap_or_else(|error| panic!("{}: {error}", self.program.display()));
        self.child = Some(child);
    }

    /// Waits until a spawned program is ready or has exited, and publishes its address.
    pub async fn ready(&mut self) -> Started {
        self.answers("/readyz").await
    }

    /// The same for a program that answers, but may never be ready.
    pub async fn alive(&mut self) -> Started {
        self.answers("/healthz").await
    }

    async fn answers(&mut self, target: &str) -> Started {
        let data = self.data();
        let child = self.child.as_mut().expect("the host was started");
        let started = wait_for("a host that is ready", PATIENCE, async || {
            if let Some(status) = child.try_wait().expect("a child can be waited for") {
                return Some(Err(status));
            }
            let endpoint = endpoint(&data, child.id())?;
            let request = crate::http::Request::get(target);
            let answer = crate::http::send(endpoint.address, &request).await.ok()?;
            (answer.status == 200).then_some(Ok(endpoint))
        });
        match started.await {
            Ok(endpoint) => {
                self.endpoint.send_replace(Some(endpoint));
                Started::Ready
            }
            Err(status) => {
                self.child = None;
                Started::Died(status)
            }
        }
    }

    /// Kills the process, as a power failure would.
    pub fn kill(&mut self) {
        self.endpoint.send_replace(None);
        let mut child = self.child.take().expect("the host runs");
        child.kill().expect("a child can be killed");
        child.wait().expect("a child can be waited for");
    }

    /// Requests a stop and waits for the exit.
    pub async fn stop(&mut self) -> ExitStatus {
        self.endpoint.send_replace(None);
        let child = self.child.as_ref().expect("the host runs");
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        kill_process(pid.expect("a process id"), Signal::TERM).expect("a child can be asked");
        self.died().await
    }

    /// Waits for a process that exits by itself. Cancel safe.
    pub async fn died(&mut self) -> ExitStatus {
        let child = self.child.as_mut().expect("the host runs");
        let ended = wait_for("the end of the host", PATIENCE, async || {
            child.try_wait().expect("a child can be waited for")
        });
        let status = ended.await;
        self.child = None;
        self.endpoint.send_replace(None);
        status
    }

    /// Whether the process has exited.
    pub fn is_dead(&mut self) -> bool {
        let child = self.child.as_mut();
        child.is_none_or(|child| child.try_wait().expect("a child can be waited for").is_some())
    }

    pub fn api(&self) -> Api {
        Api::new(self.endpoint.subscribe())
    }

    pub fn pid(&self) -> u32 {
        self.child.as_ref().expect("the host runs").id()
    }

    pub fn memory(&self) -> Memory {
        processes::memory(self.pid())
    }

    /// Processes that use this host's folder and are not its own.
    pub fn leftovers(&self) -> Vec<String> {
        processes::leftovers(&self.data(), self.child.as_ref().map(Child::id))
    }

    pub fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// The folder that holds the configuration, the log and the data folder.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The program's output over all starts.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.log_file()).unwrap_or_default()
    }

    fn log_file(&self) -> PathBuf {
        self.folder.path().join("log")
    }
}

impl Drop for TestHost {
    fn drop(&mut self) {
        if self.child.is_some() {
            self.kill();
        }
        if std::thread::panicking() {
            self.folder.disable_cleanup(true);
            eprintln!("keeping the host's folder: {}", self.folder.path().display());
        }
    }
}

/// The endpoint that the host wrote, if it is this process.
fn endpoint(data: &Path, pid: u32) -> Option<Endpoint> {
    let file = std::fs::read_to_string(data.join("host.json")).ok()?;
    let file: Value = serde_json::from_str(&file).ok()?;
    if file["pid"].as_u64() != Some(u64::from(pid)) {
        return None;
    }
    let address: SocketAddr = file["address"].as_str()?.parse().ok()?;
    let token = std::fs::read_to_string(data.join("admin-token")).ok()?;
    Some(Endpoint { address, token: token.trim().into() })
}
