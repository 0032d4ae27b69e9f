//! Row 7: ten thousand runs open at once, then all of them cancelled.
//!
//! Invariant: every run that was accepted is found cancelled at the end, and the host still serves.

use super::client::{Client, event};
use super::host::{BenchHost, Setup};
use super::report::{Baseline, Budget, Measure, Unit};
use super::{Plan, process};
use anyhow::{Context, ensure};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

const RUNS: usize = 10_000;
const CONNECTIONS: usize = 16;
/// Time for the last runs to reach their runner.
const SETTLE: Duration = Duration::from_secs(1);
const MEGABYTE: f64 = 1e6;

pub(super) async fn measure(plan: &Plan) -> anyhow::Result<Vec<Measure>> {
    plan.note("row 7: ten thousand open runs");
    let host = BenchHost::start(&plan.dir, Setup::Agent { sync: "normal" }).await?;
    host.warm(20).await?;
    let before = process::resident(host.pid())? as f64 / MEGABYTE;
    let begin = Instant::now();
    let runs = open_all(&host).await?;
    let opened = begin.elapsed();
    tokio::time::sleep(SETTLE).await;
    let resident = process::resident(host.pid())? as f64 / MEGABYTE;
    let family: u64 =
        process::family(host.pid()).iter().filter_map(|pid| process::resident(*pid).ok()).sum();
    let begin = Instant::now();
    cancel_all(&host, runs).await?;
    let cancelled = begin.elapsed();
    host.warm(20).await?;
    host.stop().await?;
    Ok(vec![Measure {
        row: 7,
        what: format!("resident memory with {RUNS} runs open at once"),
        unit: Unit::Megabytes,
        budget: Budget::AtMost(400.0),
        measured: resident,
        baseline: Some(Baseline { what: "no runs", value: before }),
        detail: format!(
            "{:.1} MB with its runner processes; opened in {:.1} s, cancelled in {:.1} s, none lost",
            family as f64 / MEGABYTE,
            opened.as_secs_f64(),
            cancelled.as_secs_f64()
        ),
    }])
}

/// Starts runs that never answer, each in a conversation of its own.
async fn open_all(host: &BenchHost) -> anyhow::Result<Vec<Vec<String>>> {
    let mut senders = JoinSet::new();
    for sender in 0..CONNECTIONS {
        let mut client = Client::connect(&host.place).await?;
        senders.spawn(async move {
            let mut runs = Vec::new();
            for number in 0..RUNS / CONNECTIONS {
                let event = event(&format!("open-{sender}-{number}"), "/hang");
                let (status, answer) = client.call("POST", "/v1/events", &event).await?;
                ensure!(status == 202, "an event was answered with {status}: {answer}");
                ensure!(answer["status"] == "running", "a run is not running: {answer}");
                runs.push(answer["run_id"].as_str().context("no run id")?.to_owned());
            }
            Ok(runs)
        });
    }
    let mut all = Vec::new();
    while let Some(sent) = senders.join_next().await {
        all.push(sent??);
    }
    Ok(all)
}

async fn cancel_all(host: &BenchHost, runs: Vec<Vec<String>>) -> anyhow::Result<()> {
    let mut senders = JoinSet::new();
    for runs in runs {
        let mut client = Client::connect(&host.place).await?;
        senders.spawn(async move {
            for run in &runs {
                let path = format!("/v1/runs/{run}/cancel");
                let (status, _) = client.call("POST", &path, "").await?;
                ensure!(status == 200, "a cancel was answered with {status}");
            }
            for run in &runs {
                let (_, run) = client.call("GET", &format!("/v1/runs/{run}"), "").await?;
                ensure!(run["status"] == "cancelled", "a run did not end cancelled: {run}");
            }
            Ok(())
        });
    }
    while let Some(done) = senders.join_next().await {
        done??;
    }
    Ok(())
}
