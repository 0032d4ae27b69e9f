//! A host of one's own: the same binary, a fresh data folder, loopback.
//!
//! Invariant: process and folder are gone with the value, whatever happened in between.

use super::client::Client;
use super::process;
use anyhow::{Context, bail, ensure};
use greenroom_config::env;
use rustix::process::{Pid, Signal, kill_process};
use std::fs::File;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The agent that takes the events of the measurements; the text of an event chooses what it does.
pub(super) const AGENT: &str = "bench";

/// How long a start or an end may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often a start is looked at: the error of its measurement.
const LOOK: Duration = Duration::from_micros(300);

/// Where a host is, and how to be let in.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub address: SocketAddr,
    pub token: String,
}

pub(super) struct BenchHost {
    child: Child,
    folder: PathBuf,
    pub place: Place,
    /// From before the process was made to the answer of `/readyz`.
    pub ready_after: Duration,
}

/// What a host is started with.
pub(super) enum Setup<'a> {
    /// No configuration file: what a newcomer gets.
    Plain,
    /// One agent more, and this `store.sync`.
    Agent { sync: &'a str },
    /// The reference agent, with a model at this address.
    LocalAgent { model_url: &'a str },
    /// This configuration, whose agent is called `AGENT`.
    Config(String),
}

impl BenchHost {
    pub(super) async fn start(dir: &Path, setup: Setup<'_>) -> anyhow::Result<Self> {
        let folder = dir.join(format!("greenroom-bench-{}", uuid::Uuid::now_v7().simple()));
        std::fs::create_dir_all(&folder)
            .with_context(|| format!("cannot create `{}`", folder.display()))?;
        let mut args = vec![];
        let config = match setup {
            Setup::Plain => None,
            Setup::Agent { sync } => Some(config(sync)),
            Setup::LocalAgent { model_url } => Some(local_agent(model_url)),
            Setup::Config(config) => Some(config),
        };
        if let Some(config) = config {
            let file = folder.join("greenroom.toml");
            std::fs::write(&file, config)?;
            std::fs::write(folder.join("key"), "any")?;
            args = vec!["--config".into(), file.into_os_string()];
        }
        let begin = Instant::now();
        let child = spawn(&folder, &args)?;
        let place = Place { address: SocketAddr::from(([127, 0, 0, 1], 0)), token: String::new() };
        let mut host = Self { child, folder, place, ready_after: Duration::ZERO };
        host.place = host.announced().await?;
        let (status, _) = Client::connect(&host.place).await?.call("GET", "/readyz", "").await?;
        host.ready_after = begin.elapsed();
        ensure!(status == 200, "`/readyz` answered {status}");
        Ok(host)
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until the built-in runner has introduced itself, by having it answer.
    pub(super) async fn warm(&self, runs: usize) -> anyhow::Result<()> {
        let mut client = Client::connect(&self.place).await?;
        for _ in 0..runs {
            client.follow(&super::client::event("warm", "hi")).await?;
        }
        Ok(())
    }

    /// Asks the host to end, and waits for it.
    pub(super) async fn stop(mut self) -> anyhow::Result<()> {
        let pid = i32::try_from(self.pid()).ok().and_then(Pid::from_raw);
        kill_process(pid.context("a process has an id")?, Signal::TERM)?;
        let until = Instant::now() + PATIENCE;
        while self.child.try_wait()?.is_none() {
            ensure!(Instant::now() < until, "the host does not end");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        Ok(())
    }

    /// What the host has written about itself once it listens.
    async fn announced(&mut self) -> anyhow::Result<Place> {
        let data = self.folder.join("data");
        let until = Instant::now() + PATIENCE;
        loop {
            if let Ok(text) = std::fs::read_to_string(data.join("host.json")) {
                let file: serde_json::Value = serde_json::from_str(&text)?;
                let address = file["address"].as_str().context("`host.json` names no address")?;
                let token = std::fs::read_to_string(data.join("admin-token"))?.trim().to_owned();
                return Ok(Place { address: address.parse()?, token });
            }
            if self.child.try_wait()?.is_some() || Instant::now() > until {
                let log = std::fs::read_to_string(self.folder.join("log")).unwrap_or_default();
                bail!("a host did not start: {}", log.trim());
            }
            tokio::time::sleep(LOOK).await;
        }
    }
}

impl Drop for BenchHost {
    fn drop(&mut self) {
        // Fails only when the process has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
        process::wait_until_gone(&self.folder, PATIENCE);
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

#[expect(clippy::disallowed_methods, reason = "a host is measured as a process of its own")]
fn spawn(folder: &Path, args: &[std::ffi::OsString]) -> anyhow::Result<Child> {
    let log = File::create(folder.join("log"))?;
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("serve").arg("--data").arg(folder.join("data")).args(args);
    command.args(["--listen", "127.0.0.1:0"]).current_dir(folder);
    for (name, _) in env::ALL {
        command.env_remove(name);
    }
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
    command.spawn().context("cannot start a host")
}

/// The limits are raised for one measurement alone: a run of a million deltas and one giant message.
fn config(sync: &str) -> String {
    format!(
        "[store]\nsync = \"{sync}\"\n\n\
         [limits]\noutput_bytes = 1073741824\nresult_bytes = 67108864\nline_bytes = 67108864\n\
         run_buffer_bytes = 268435456\n\n\
         [agents.{AGENT}]\nrunner = \"plugin:greenroom/echo/default\"\nevents = []\n\
         config = {{ modes = true }}\n"
    )
}

fn local_agent(model_url: &str) -> String {
    format!(
        "[models.main]\nprovider = \"openai\"\nmodel = \"scripted\"\nbase_url = \"{model_url}/v1\"\n\
         allow_private = true\napi_key = {{ file = \"key\" }}\n\n\
         [agents.{AGENT}]\nrunner = \"plugin:greenroom/local-agent/default\"\nevents = []\n\
         grant = {{ models = [\"main\"] }}\n"
    )
}
