//! Rows 10 and 11: the same Python runner on the native wire and on that of LangBot, beside a bare Python pipe; and
//! its start.
//!
//! Invariant: both runners say the same with the same number of results; folder and processes are gone with the
//! measurement.

use super::client::{Client, event};
use super::host::{AGENT, BenchHost, Setup};
use super::pipe::Pipe;
use super::report::{Baseline, Budget, Measure, Unit};
use super::sample::Sample;
use super::{Plan, direct, process, starts};
use anyhow::{Context, ensure};
use std::path::{Path, PathBuf};
use tokio::task::JoinSet;

pub(super) const WARM_RUNS: usize = 100;
pub(super) const AT_ONCE: usize = 32;

const FILES: [(&str, &str); 6] = [
    ("bare.py", include_str!("python/bare.py")),
    ("native.py", include_str!("python/native.py")),
    ("plugin/main.py", include_str!("python/main.py")),
    ("plugin/manifest.yaml", include_str!("python/manifest.yaml")),
    ("plugin/components/runner/default.yaml", include_str!("python/default.yaml")),
    ("plugin/components/runner/default.py", include_str!("python/langbot.py")),
];

/// What runs cost: each by itself, and the host per run with many at once.
struct Seen {
    one: Sample,
    one_cpu_ms: f64,
    many_cpu_ms: f64,
    per_s: f64,
}

pub(super) async fn measure(plan: &Plan, python: &Path) -> anyhow::Result<Vec<Measure>> {
    let folder = Folder::make(&plan.dir)?;
    let venv = python.parent().and_then(Path::parent).context("the interpreter has no folder")?;
    let reach = format!("paths = [{venv:?}]\nplugin = \"bench/python\"\n");
    let mut measures = Vec::new();
    if plan.wants(10) {
        plan.note("row 10: a Python runner on both wires");
        measures.extend(both_wires(plan, python, &folder.0, &reach).await?);
    }
    if plan.wants(11) {
        plan.note("row 11: starts of a runner");
        measures.push(starts::measure(plan, python, &reach, &folder.0).await?);
    }
    Ok(measures)
}

async fn both_wires(
    plan: &Plan,
    python: &Path,
    dir: &Path,
    reach: &str,
) -> anyhow::Result<Vec<Measure>> {
    let runs = plan.size(2_000, 200);
    let bare = bare(python, dir, runs)?;
    let plugin = dir.join("plugin");
    let native = format!("command = [{python:?}, \"native.py\"]\ndir = {dir:?}\n{reach}");
    let langbot = format!("wire = \"langbot\"\ncommand = [{python:?}]\ndir = {plugin:?}\n{reach}");
    let mut measures = Vec::new();
    for (wire, runner) in [("native", &native), ("LangBot", &langbot)] {
        let seen = through_a_host(plan, runner, runs).await?;
        measures.push(measure_of(wire, &bare, &seen, runs));
    }
    measures.extend(direct::measure(plan, python, &plugin, &langbot).await?);
    Ok(measures)
}

fn measure_of(wire: &str, bare: &Seen, seen: &Seen, runs: usize) -> Measure {
    Measure {
        row: 10,
        what: format!(
            "CPU time the host adds to a run of a Python runner, {wire} wire, {AT_ONCE} at once"
        ),
        unit: Unit::Milliseconds,
        budget: Budget::AtMost(0.5),
        measured: seen.many_cpu_ms - bare.one_cpu_ms,
        baseline: Some(Baseline { what: "bare Python pipe", value: bare.one_cpu_ms }),
        detail: format!(
            "one at a time {:.3} ms; event to answer p50 {:.3} ms, p99 {:.3} ms, bare pipe p50 \
             {:.3} ms; {:.0}/s with {AT_ONCE} at once; sync normal, {runs} runs",
            seen.one_cpu_ms - bare.one_cpu_ms,
            seen.one.percentile_ms(50),
            seen.one.percentile_ms(99),
            bare.one.percentile_ms(50),
            seen.per_s
        ),
    }
}

fn bare(python: &Path, folder: &Path, runs: usize) -> anyhow::Result<Seen> {
    let script = folder.join("bare.py");
    let mut pipe = Pipe::start_with(python, &[script.as_os_str()])?;
    for _ in 0..WARM_RUNS {
        pipe.run("hi")?;
    }
    let before = process::cpu(std::process::id())?;
    let times = (0..runs).map(|_| Ok(pipe.run("hi")?.took));
    let one: Sample = times.collect::<anyhow::Result<Vec<_>>>()?.into_iter().collect();
    let cpu = process::cpu(std::process::id())?.saturating_sub(before);
    let one_cpu_ms = cpu.as_secs_f64() * 1e3 / runs as f64;
    Ok(Seen { one, one_cpu_ms, many_cpu_ms: one_cpu_ms, per_s: 0.0 })
}

async fn through_a_host(plan: &Plan, runner: &str, runs: usize) -> anyhow::Result<Seen> {
    let config = format!(
        "[store]\nsync = \"normal\"\n\n[runners.python]\n{runner}\n\
         [agents.{AGENT}]\nrunner = \"plugin:bench/python/default\"\nevents = []\n"
    );
    let host = BenchHost::start(&plan.dir, Setup::Config(config)).await?;
    host.warm(WARM_RUNS).await?;
    let before = process::cpu(host.pid())?;
    let mut client = Client::connect(&host.place).await?;
    let mut times = Vec::with_capacity(runs);
    for _ in 0..runs {
        let run = client.follow(&event("one", "hi")).await?;
        ensure!(run.deltas == 1, "a run showed {} deltas instead of one", run.deltas);
        times.push(run.took);
    }
    let between = process::cpu(host.pid())?;
    let begin = std::time::Instant::now();
    at_once(&host, runs).await?;
    let took = begin.elapsed();
    let after = process::cpu(host.pid())?;
    host.stop().await?;
    let per_run = |cpu: std::time::Duration| cpu.as_secs_f64() * 1e3 / runs as f64;
    Ok(Seen {
        one: times.into_iter().collect(),
        one_cpu_ms: per_run(between.saturating_sub(before)),
        many_cpu_ms: per_run(after.saturating_sub(between)),
        per_s: runs as f64 / took.as_secs_f64(),
    })
}

pub(super) async fn at_once(host: &BenchHost, runs: usize) -> anyhow::Result<()> {
    let mut senders = JoinSet::new();
    for number in 0..AT_ONCE {
        let mut client = Client::connect(&host.place).await?;
        let share = runs / AT_ONCE + usize::from(number < runs % AT_ONCE);
        senders.spawn(async move {
            let event = event(&format!("many-{number}"), "hi");
            for _ in 0..share {
                client.follow(&event).await?;
            }
            anyhow::Ok(())
        });
    }
    while let Some(sent) = senders.join_next().await {
        sent??;
    }
    Ok(())
}

/// The runners' files.
struct Folder(PathBuf);

impl Folder {
    fn make(dir: &Path) -> anyhow::Result<Self> {
        let folder = Self(dir.join(format!("greenroom-bench-{}", uuid::Uuid::now_v7().simple())));
        for (name, text) in FILES {
            let file = folder.0.join(name);
            std::fs::create_dir_all(file.parent().unwrap_or(&folder.0))?;
            std::fs::write(file, text)?;
        }
        Ok(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Left over at worst, in the folder for temporary files.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
