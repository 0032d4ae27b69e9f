//! Rows 1 to 3: one run after another, 64 at once, and what each costs the host in CPU time.
//!
//! Invariant: the runs of all three are the same, on the same host, and every one of them is found
//! completed afterwards.

use super::client::{Client, event};
use super::host::{BenchHost, Setup};
use super::pipe::Pipe;
use super::report::{Baseline, Budget, Measure, Unit};
use super::sample::Sample;
use super::{Plan, process};
use anyhow::ensure;
use std::collections::HashSet;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

const WARM_RUNS: usize = 200;
const AT_ONCE: usize = 64;
const SYNCS: [&str; 2] = ["normal", "full"];

/// The same frames without a host.
struct Bare {
    pipe: Sample,
    pipe_cpu_ms: f64,
}

/// What one host showed.
struct Round {
    sync: &'static str,
    /// `fdatasync` of this disk, just before and just after the runs one at a time.
    sync_ms: f64,
    one: Load,
    many: Load,
}

/// One way of sending many runs.
struct Load {
    times: Sample,
    per_s: f64,
    cpu_ms: f64,
    runs: usize,
}

pub(super) async fn measure(plan: &Plan) -> anyhow::Result<Vec<Measure>> {
    plan.note("rows 1 to 3: the bare pipe");
    let bare = Bare::measure(plan)?;
    let mut measures = Vec::new();
    for sync in SYNCS {
        plan.note(&format!("rows 1 to 3: runs with sync = {sync}"));
        let host = BenchHost::start(&plan.dir, Setup::Agent { sync }).await?;
        host.warm(WARM_RUNS).await?;
        let mut syncs = sync_times(&plan.dir, plan.size(250, 50))?;
        let one = load(&host, 1, plan.size(4_000, 500)).await?;
        syncs.extend(sync_times(&plan.dir, plan.size(250, 50))?);
        let many = load(&host, AT_ONCE, plan.size(20_000, 3_000)).await?;
        check_all_completed(&host, WARM_RUNS + one.runs + many.runs).await?;
        host.stop().await?;
        let sync_ms = syncs.into_iter().collect::<Sample>().percentile_ms(50);
        measures.extend(round_measures(&bare, &Round { sync, sync_ms, one, many }));
    }
    measures.sort_by_key(|measure| measure.row);
    measures.retain(|measure| plan.wants(measure.row));
    Ok(measures)
}

fn round_measures(bare: &Bare, round: &Round) -> Vec<Measure> {
    let Round { sync, sync_ms, one, many } = round;
    let budget_ms = if *sync == "normal" { 2.0 } else { 1.5 + 2.0 * sync_ms };
    let pipe = |value| Some(Baseline { what: "bare pipe", value });
    let cpu = |load: &Load, what: &str, budget_ms: f64| Measure {
        row: 3,
        what: format!("CPU time the host adds to a run, {what}, sync {sync}"),
        unit: Unit::Milliseconds,
        budget: Budget::AtMost(budget_ms),
        measured: load.cpu_ms - bare.pipe_cpu_ms,
        baseline: pipe(bare.pipe_cpu_ms),
        detail: format!("host {:.3} ms, {} runs", load.cpu_ms, load.runs),
    };
    vec![
        Measure {
            row: 1,
            what: format!("event to answer, one at a time, p50, sync {sync}"),
            unit: Unit::Milliseconds,
            budget: Budget::AtMost(budget_ms),
            measured: one.times.percentile_ms(50),
            baseline: pipe(bare.pipe.percentile_ms(50)),
            detail: format!(
                "p99 {:.3} ms; bare pipe p99 {:.3} ms; fdatasync p50 {sync_ms:.3} ms; {} runs",
                one.times.percentile_ms(99),
                bare.pipe.percentile_ms(99),
                one.runs
            ),
        },
        Measure {
            row: 2,
            what: format!("event to answer, {AT_ONCE} at once, sync {sync}"),
            unit: Unit::PerSecond,
            budget: Budget::AtLeast(2_000.0),
            measured: many.per_s,
            baseline: Some(Baseline { what: "one at a time", value: one.per_s }),
            detail: format!(
                "p50 {:.1} ms, p99 {:.1} ms; {} runs, none lost",
                many.times.percentile_ms(50),
                many.times.percentile_ms(99),
                many.runs
            ),
        },
        cpu(one, "one at a time", 0.6),
        cpu(many, "64 at once", 0.3),
    ]
}

impl Bare {
    fn measure(plan: &Plan) -> anyhow::Result<Self> {
        let runs = plan.size(4_000, 500);
        let mut pipe = Pipe::start()?;
        for _ in 0..WARM_RUNS {
            pipe.run("hi")?;
        }
        let before = process::cpu(std::process::id())?;
        let times = (0..runs).map(|_| Ok(pipe.run("hi")?.took));
        let times: Sample = times.collect::<anyhow::Result<Vec<_>>>()?.into_iter().collect();
        let cpu = process::cpu(std::process::id())?.saturating_sub(before);
        Ok(Self { pipe: times, pipe_cpu_ms: cpu.as_secs_f64() * 1e3 / runs as f64 })
    }
}

/// `fdatasync` after 4 KiB more, as a log does it.
fn sync_times(dir: &Path, times: usize) -> anyhow::Result<Vec<Duration>> {
    let path = dir.join(format!("greenroom-bench-sync-{}", std::process::id()));
    let mut file = OpenOptions::new().create(true).append(true).open(&path)?;
    let block = [7_u8; 4096];
    let mut append = || {
        file.write_all(&block)?;
        let begin = Instant::now();
        file.sync_data()?;
        Ok::<Duration, std::io::Error>(begin.elapsed())
    };
    let found: Result<Vec<_>, _> = (0..times).map(|_| append()).collect();
    std::fs::remove_file(&path)?;
    Ok(found?)
}

/// So many runs over so many connections, each with a conversation of its own.
async fn load(host: &BenchHost, connections: usize, runs: usize) -> anyhow::Result<Load> {
    let each = runs / connections;
    let mut clients = Vec::new();
    for _ in 0..connections {
        clients.push(Client::connect(&host.place).await?);
    }
    let cpu_before = process::cpu(host.pid())?;
    let begin = Instant::now();
    let mut senders = JoinSet::new();
    for (number, mut client) in clients.into_iter().enumerate() {
        senders.spawn(async move {
            let event = event(&format!("c{connections}-{number}"), "hi");
            let mut times = Vec::with_capacity(each);
            for _ in 0..each {
                let run = client.follow(&event).await?;
                ensure!(run.deltas == 1, "a run showed {} deltas instead of one", run.deltas);
                times.push(run.took);
            }
            Ok(times)
        });
    }
    let mut times = Vec::with_capacity(runs);
    while let Some(sent) = senders.join_next().await {
        times.extend(sent??);
    }
    let took = begin.elapsed().as_secs_f64();
    let cpu = process::cpu(host.pid())?.saturating_sub(cpu_before).as_secs_f64();
    let runs = times.len();
    let (per_s, cpu_ms) = (runs as f64 / took, cpu * 1e3 / runs as f64);
    Ok(Load { times: times.into_iter().collect(), per_s, cpu_ms, runs })
}

/// Asks the host for every run it has.
async fn check_all_completed(host: &BenchHost, expected: usize) -> anyhow::Result<()> {
    let mut client = Client::connect(&host.place).await?;
    let mut seen = HashSet::new();
    let mut path = "/v1/runs?status=completed&limit=200".to_owned();
    loop {
        let (status, page) = client.call("GET", &path, "").await?;
        ensure!(status == 200, "a page of runs was answered with {status}");
        let runs = page["items"].as_array().into_iter().flatten();
        seen.extend(runs.filter_map(|run| run["run_id"].as_str()).map(str::to_owned));
        let Some(cursor) = page["next_cursor"].as_str() else { break };
        path = format!("/v1/runs?status=completed&limit=200&cursor={cursor}");
    }
    ensure!(seen.len() == expected, "{} of {expected} runs are completed", seen.len());
    Ok(())
}
