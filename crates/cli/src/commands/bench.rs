//! `greenroom bench`: measures the budgets of the design beside their baselines.

use crate::failure::{Exit, Failure, Outcome};
use crate::output;
use anyhow::Context;
use greenroom_bench::Plan;
use std::path::PathBuf;
use tokio::signal::unix::{SignalKind, signal};

/// Measure latency, throughput and memory on this machine, beside their baselines
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Starts its own hosts in temporary folders; running hosts are not touched.
Rows: 1 one run at a time, 2 runs at once, 3 processor time, 4 calls from a run, 5 deltas,
6 an idle host, 7 ten thousand open runs, 8 turns of the reference agent, 9 open streams,
10 a Python runner on both wires, 11 the start of a runner (both need `--python`).

Examples:
  greenroom bench --quick
  greenroom bench --only 4 --only 5
  greenroom bench --write bench/RESULTS.md")]
pub struct Args {
    /// Fewer repetitions: half a minute instead of two
    #[arg(long)]
    quick: bool,
    /// Measure this row only; may be given several times
    #[arg(long, value_name = "ROW", value_parser = clap::value_parser!(u8).range(1..=11))]
    only: Vec<u8>,
    /// Interpreter that has `greenroom-sdk` and `langbot-plugin`, for rows 10 and 11
    #[arg(long, value_name = "FILE")]
    python: Option<PathBuf>,
    /// Folder for the data of the hosts, on the disk to measure [default: the temporary folder of the system]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Also write the table, as Markdown, to this file
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub async fn run(args: Args) -> Outcome {
    let dir = args.dir.unwrap_or_else(std::env::temp_dir);
    let dir = std::path::absolute(&dir)?;
    let python = args.python.map(std::path::absolute).transpose()?;
    if let Some(row) = args.only.iter().find(|row| **row >= 10 && python.is_none()) {
        let hint =
            "make one with `python3 -m venv`, install both packages, and pass its `bin/python`";
        return Err(Failure::new(format!("row {row} needs `--python FILE`"))
            .hint(hint)
            .exit(Exit::Usage));
    }
    let (quick, only) = (args.quick, args.only);
    let plan = Plan { quick, only, dir, python, on_progress: output::note };
    if cfg!(debug_assertions) {
        output::note("note: this is a debug build; its numbers do not compare with the budgets");
    }
    let mut terminate = signal(SignalKind::terminate())?;
    let report = tokio::select! {
        report = greenroom_bench::measure(&plan) => report?,
        // Dropping the measurement stops the hosts and removes their folders.
        _ = tokio::signal::ctrl_c() => return Err(Failure::new("interrupted")),
        _ = terminate.recv() => return Err(Failure::new("interrupted")),
    };
    if let Some(path) = &args.write {
        std::fs::write(path, report.markdown())
            .with_context(|| format!("cannot write `{}`", path.display()))?;
    }
    match args.json {
        true => output::print_json(&report.json())?,
        false => output::print(&format!("{}{}", output::table(&report.table()), report.notes()))?,
    }
    Ok(Exit::Ok)
}
