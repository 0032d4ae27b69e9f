//! Row 11: what the sandbox adds to the start of a runner.
//!
//! Invariant: hosts with and without it start in turns, and differ in nothing else.

use super::Plan;
use super::client::{Client, event};
use super::host::{AGENT, BenchHost, Setup};
use super::report::{Baseline, Budget, Measure, Unit};
use super::sample::Sample;
use std::path::Path;
use std::time::{Duration, Instant};

pub(super) async fn measure(
    plan: &Plan,
    python: &Path,
    paths: &str,
    folder: &Path,
) -> anyhow::Result<Measure> {
    let starts = plan.size(40, 5);
    let (mut inside, mut outside) = (Vec::new(), Vec::new());
    for _ in 0..starts {
        inside.push(first_answer(plan, &config(python, paths, folder, "on")).await?);
        outside.push(first_answer(plan, &config(python, paths, folder, "off")).await?);
    }
    let inside: Sample = inside.into_iter().collect();
    let outside: Sample = outside.into_iter().collect();
    let baseline = outside.percentile_ms(50);
    Ok(Measure {
        row: 11,
        what: "start of a host to the answer of its runner, in its sandbox, p50".to_owned(),
        unit: Unit::Milliseconds,
        budget: Budget::AtMost(baseline + 15.0),
        measured: inside.percentile_ms(50),
        baseline: Some(Baseline { what: "without a sandbox", value: baseline }),
        detail: format!(
            "the sandbox adds {:.3} ms; p90 {:.1} ms, without {:.1} ms; in turns, {starts} starts of a Python runner",
            inside.percentile_ms(50) - baseline,
            inside.percentile_ms(90),
            outside.percentile_ms(90)
        ),
    })
}

/// The event is sent as soon as the host is ready, so that the run waits for its runner.
async fn first_answer(plan: &Plan, config: &str) -> anyhow::Result<Duration> {
    let begin = Instant::now();
    let host = BenchHost::start(&plan.dir, Setup::Config(config.to_owned())).await?;
    Client::connect(&host.place).await?.follow(&event("first", "hi")).await?;
    let took = begin.elapsed();
    host.stop().await?;
    Ok(took)
}

fn config(python: &Path, paths: &str, folder: &Path, sandbox: &str) -> String {
    format!(
        "[store]\nsync = \"normal\"\n\n[runners.python]\ncommand = [{python:?}, \"native.py\"]\n\
         dir = {folder:?}\n{paths}sandbox = \"{sandbox}\"\nnetwork = false\n\
         [agents.{AGENT}]\nrunner = \"plugin:bench/python/default\"\nevents = []\n"
    )
}
