//! Row 10, beside the plugin itself: a LangBot plugin driven directly, as its own runtime would, and through a host.
//!
//! Invariant: the SDK's own command and its frames, nothing stored or checked; both are measured in turns, so that
//! the machine's other load falls on both.

use super::Plan;
use super::client::{Client, event};
use super::host::{AGENT, BenchHost, Setup};
use super::pipe::context;
use super::python::{AT_ONCE, WARM_RUNS, at_once};
use super::report::{Baseline, Budget, Measure, Unit};
use super::sample::Sample;
use anyhow::{Context, ensure};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

const ROUNDS: usize = 5;
const SECRET: &str = "bench";

/// The times of one side.
#[derive(Default)]
struct Times {
    one: Vec<Duration>,
    many: Duration,
}

pub(super) async fn measure(
    plan: &Plan,
    python: &Path,
    plugin: &Path,
    runner: &str,
) -> anyhow::Result<Vec<Measure>> {
    let runs = plan.size(2_000, 200) / ROUNDS;
    let config = format!(
        "[store]\nsync = \"normal\"\n\n[runners.python]\n{runner}\n\
         [agents.{AGENT}]\nrunner = \"plugin:bench/python/default\"\nevents = []\n"
    );
    let host = BenchHost::start(&plan.dir, Setup::Config(config)).await?;
    host.warm(WARM_RUNS).await?;
    let mut plugin = Plugin::start(python, plugin)?;
    plugin.run_all(WARM_RUNS, 1)?;
    let (mut direct, mut hosted) = (Times::default(), Times::default());
    let mut client = Client::connect(&host.place).await?;
    for _ in 0..ROUNDS {
        for _ in 0..runs {
            direct.one.push(plugin.run_all(1, 1)?);
            hosted.one.push(client.follow(&event("one", "hi")).await?.took);
        }
        direct.many += plugin.run_all(runs, AT_ONCE)?;
        let begin = Instant::now();
        at_once(&host, runs).await?;
        hosted.many += begin.elapsed();
    }
    host.stop().await?;
    Ok(measures(&direct, &hosted, runs * ROUNDS))
}

fn measures(direct: &Times, hosted: &Times, runs: usize) -> Vec<Measure> {
    let median = |times: &Times| {
        let sample: Sample = times.one.iter().copied().collect();
        sample.percentile_ms(50)
    };
    let each = |times: &Times| times.many.as_secs_f64() * 1e3 / runs as f64;
    let row = |what: &str, ratio: f64, direct: f64, hosted: f64| Measure {
        row: 10,
        what: what.to_owned(),
        unit: Unit::Milliseconds,
        budget: Budget::AtMost(ratio * direct),
        measured: hosted,
        baseline: Some(Baseline { what: "plugin driven directly", value: direct }),
        detail: format!("at most {ratio} times; in turns, sync normal, {runs} runs"),
    };
    vec![
        row(
            "event to answer of a LangBot plugin, one at a time, p50",
            2.5,
            median(direct),
            median(hosted),
        ),
        row(
            &format!("time per run of a LangBot plugin, {AT_ONCE} at once"),
            1.5,
            each(direct),
            each(hosted),
        ),
    ]
}

/// A plugin process on the SDK's own command.
struct Plugin {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    requests: u64,
}

impl Plugin {
    #[expect(clippy::disallowed_methods, reason = "the baseline speaks to the plugin itself")]
    fn start(python: &Path, folder: &Path) -> anyhow::Result<Self> {
        let mut child = Command::new(python)
            .args(["-m", "langbot_plugin.cli", "run", "-s", "--prod"])
            .env("LANGBOT_PLUGIN_REGISTRATION_CAPABILITY", SECRET)
            .current_dir(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let input = child.stdin.take().context("a pipe is missing")?;
        let output = BufReader::new(child.stdout.take().context("a pipe is missing")?);
        let mut plugin = Self { child, input, output, requests: 0 };
        let register = loop {
            let frame = plugin.read()?;
            if frame["action"] == "register_plugin" {
                break frame["seq_id"].clone();
            }
        };
        plugin.write(
            &json!({"seq_id": register, "code": 0, "message": "success", "data": {}, "chunk_status": "continue"}),
        )?;
        let settings = json!({"enabled": true, "priority": 0, "plugin_config": {}});
        let id = plugin.request("initialize_plugin", json!({ "plugin_settings": settings }))?;
        while plugin.read()?["seq_id"] != id {}
        Ok(plugin)
    }

    /// Runs so many, so many of them at once, from the first request to the last end.
    fn run_all(&mut self, runs: usize, window: usize) -> anyhow::Result<Duration> {
        let begin = Instant::now();
        let (mut sent, mut ended) = (0, 0);
        while ended < runs {
            while sent < runs && sent - ended < window {
                let run_id = format!("run_{}", uuid::Uuid::now_v7().simple());
                let data = json!({"runner_name": "default", "context": context(&run_id, "hi")});
                self.request("run_runner", data)?;
                sent += 1;
            }
            let frame = self.read()?;
            ensure!(frame["code"].as_i64().unwrap_or(0) == 0, "the plugin refused a run: {frame}");
            ended += usize::from(frame["chunk_status"] == "end");
        }
        Ok(begin.elapsed())
    }

    fn request(&mut self, action: &str, data: Value) -> anyhow::Result<u64> {
        self.requests += 1;
        let id = self.requests;
        self.write(&json!({"seq_id": id, "action": action, "data": data}))?;
        Ok(id)
    }

    fn write(&mut self, frame: &Value) -> anyhow::Result<()> {
        Ok(self.input.write_all(format!("{frame}\n").as_bytes())?)
    }

    /// The next message; a long one comes in pieces.
    fn read(&mut self) -> anyhow::Result<Value> {
        let mut pieces = String::new();
        loop {
            let mut line = String::new();
            ensure!(self.output.read_line(&mut line)? > 0, "the plugin ended");
            // The first line is plain text.
            let Ok(frame) = serde_json::from_str::<Value>(&line) else { continue };
            match frame["type"].as_str() {
                None => return Ok(frame),
                Some("chunk_data") => pieces += frame["data"].as_str().unwrap_or_default(),
                Some("chunk_end") => return Ok(serde_json::from_str(&pieces)?),
                Some(_) => pieces.clear(),
            }
        }
    }
}

impl Drop for Plugin {
    fn drop(&mut self) {
        // Fails only when the process has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
