//! Row 6: a host that was just started and does nothing.

use super::host::{BenchHost, Setup};
use super::report::{Baseline, Budget, Measure, Unit};
use super::sample::Sample;
use super::{Plan, process};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How long a host is left alone before its memory is looked at.
const REST: Duration = Duration::from_secs(2);
const MEGABYTE: f64 = 1e6;

pub(super) async fn measure(plan: &Plan) -> anyhow::Result<Vec<Measure>> {
    plan.note("row 6: starting and resting");
    let starts = plan.size(15, 5);
    let mut ready = Vec::new();
    for _ in 1..starts {
        let host = BenchHost::start(&plan.dir, Setup::Plain).await?;
        ready.push(host.ready_after);
        host.stop().await?;
    }
    let host = BenchHost::start(&plan.dir, Setup::Plain).await?;
    ready.push(host.ready_after);
    let ready: Sample = ready.into_iter().collect();
    tokio::time::sleep(REST).await;
    let resident = process::resident(host.pid())? as f64 / MEGABYTE;
    let family = process::family(host.pid());
    let tree: u64 = family.iter().filter_map(|pid| process::resident(*pid).ok()).sum();
    host.stop().await?;
    let size = std::fs::metadata(std::env::current_exe()?)?.len() as f64 / MEGABYTE;
    let exec: Sample =
        (0..starts).map(|_| exec()).collect::<anyhow::Result<Vec<_>>>()?.into_iter().collect();
    let plain = |what: &str, budget, measured, detail| Measure {
        row: 6,
        what: what.to_owned(),
        unit: Unit::Megabytes,
        budget: Budget::AtMost(budget),
        measured,
        baseline: None,
        detail,
    };
    let tree = format!("{:.1} MB in {} processes", tree as f64 / MEGABYTE, family.len());
    Ok(vec![
        plain("resident memory of an idle host", 22.0, resident, tree),
        Measure {
            row: 6,
            what: "ready after exec, p50".to_owned(),
            unit: Unit::Milliseconds,
            budget: Budget::AtMost(60.0),
            measured: ready.percentile_ms(50),
            baseline: Some(Baseline { what: "exec `--version`", value: exec.percentile_ms(50) }),
            detail: format!(
                "slowest {:.1} ms of {starts}, each with a new data folder",
                ready.percentile_ms(100)
            ),
        },
        plain("size of the program", 34.0, size, "as it was built".to_owned()),
    ])
}

/// The least that starting this program costs.
#[expect(clippy::disallowed_methods, reason = "the baseline is the start of a process")]
fn exec() -> anyhow::Result<Duration> {
    let begin = Instant::now();
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).status()?;
    Ok(begin.elapsed())
}
