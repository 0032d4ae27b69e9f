//! `greenroom bench`: measures the budgets of the design beside their baselines.
//!
//! Invariant: real processes, real sockets, a real disk; every number of a table comes from one run.

mod calls;
mod client;
mod deltas;
mod host;
mod idle;
mod machine;
mod open;
mod pipe;
mod process;
mod python;
mod report;
mod runs;
mod sample;
mod streams;
mod turns;

use crate::failure::{Exit, Failure, Outcome};
use crate::output;
use anyhow::Context;
use machine::Machine;
use report::Report;
use std::path::PathBuf;
use tokio::signal::unix::{SignalKind, signal};

/// Measure this machine: latency, throughput, memory, each beside its baseline
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Starts hosts of its own in temporary folders on a real disk; a host that runs already is not touched.
Rows: 1 one run at a time, 2 runs at once, 3 processor time, 4 calls from a run, 5 deltas,
6 an idle host, 7 ten thousand open runs, 8 turns of the reference agent, 9 open streams,
10 a Python runner on both wires (needs `--python`).

Examples:
  greenroom bench --quick
  greenroom bench --only 4 --only 5
  greenroom bench --write bench/RESULTS.md")]
pub struct Args {
    /// Fewer repetitions: half a minute instead of two
    #[arg(long)]
    quick: bool,
    /// Measure this row only; may be given several times
    #[arg(long, value_name = "ROW", value_parser = clap::value_parser!(u8).range(1..=10))]
    only: Vec<u8>,
    /// Interpreter that has `greenroom-sdk` and `langbot-plugin`, for row 10
    #[arg(long, value_name = "FILE")]
    python: Option<PathBuf>,
    /// Folder for the hosts' data; it should be on the disk that counts [default: the system's for temporary files]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Also write the table, as Markdown, to this file
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What is measured, how thoroughly and where.
struct Plan {
    quick: bool,
    only: Vec<u8>,
    dir: PathBuf,
    python: Option<PathBuf>,
}

impl Plan {
    fn wants(&self, row: u8) -> bool {
        self.only.is_empty() || self.only.contains(&row)
    }

    fn size(&self, whole: usize, quick: usize) -> usize {
        if self.quick { quick } else { whole }
    }
}

pub async fn run(args: Args) -> Outcome {
    let dir = args.dir.unwrap_or_else(std::env::temp_dir);
    let dir = std::path::absolute(&dir)?;
    let python = args.python.map(std::path::absolute).transpose()?;
    if python.is_none() && args.only.contains(&10) {
        let hint =
            "make one with `python3 -m venv`, install both packages, and name its `bin/python`";
        return Err(Failure::new("row 10 takes `--python FILE`").hint(hint).exit(Exit::Usage));
    }
    let plan = Plan { quick: args.quick, only: args.only, dir, python };
    if cfg!(debug_assertions) {
        output::note("note: this is a debug build, its numbers say nothing about the budgets");
    }
    let mut terminate = signal(SignalKind::terminate())?;
    let report = tokio::select! {
        report = measure(&plan) => report?,
        // Leaving this way ends the hosts and removes their folders.
        _ = tokio::signal::ctrl_c() => return Err(Failure::new("interrupted")),
        _ = terminate.recv() => return Err(Failure::new("interrupted")),
    };
    if let Some(path) = &args.write {
        std::fs::write(path, report.markdown())
            .with_context(|| format!("cannot write `{}`", path.display()))?;
    }
    match args.json {
        true => output::print_json(&report.json())?,
        false => output::print(&report.to_string())?,
    }
    Ok(Exit::Ok)
}

async fn measure(plan: &Plan) -> anyhow::Result<Report> {
    let load_before = machine::load();
    let mut measures = Vec::new();
    if (1..=3).any(|row| plan.wants(row)) {
        measures.extend(runs::measure(plan).await?);
    }
    if plan.wants(4) {
        measures.extend(calls::measure(plan).await?);
    }
    if plan.wants(5) {
        measures.extend(deltas::measure(plan).await?);
    }
    if plan.wants(6) {
        measures.extend(idle::measure(plan).await?);
    }
    if plan.wants(7) {
        measures.extend(open::measure(plan).await?);
    }
    if plan.wants(8) {
        measures.extend(turns::measure(plan).await?);
    }
    if plan.wants(9) {
        measures.extend(streams::measure(plan).await?);
    }
    if let Some(python) = plan.python.as_deref().filter(|_| plan.wants(10)) {
        measures.extend(python::measure(plan, python).await?);
    }
    let machine = Machine::look(&plan.dir);
    Ok(Report { machine, load_before, load_after: machine::load(), measures })
}
