//! The benchmark: measures the budgets of the design beside their baselines.
//!
//! Invariant: real processes, real sockets, a real disk; every number of a table comes from one run. The hosts
//! are started with the program of the current process.

mod calls;
mod client;
mod deltas;
mod direct;
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
mod starts;
mod streams;
mod turns;

pub use report::Report;

use machine::Machine;
use std::path::PathBuf;

/// What is measured, how thoroughly and where.
pub struct Plan {
    /// Fewer repetitions.
    pub quick: bool,
    /// Rows to measure; empty: all.
    pub only: Vec<u8>,
    /// Folder for the data of the hosts.
    pub dir: PathBuf,
    /// Interpreter for rows 10 and 11, which are skipped without one.
    pub python: Option<PathBuf>,
    /// Called with a line at the start of each row.
    pub on_progress: fn(&str),
}

impl Plan {
    fn wants(&self, row: u8) -> bool {
        self.only.is_empty() || self.only.contains(&row)
    }

    fn size(&self, full: usize, quick: usize) -> usize {
        if self.quick { quick } else { full }
    }

    fn note(&self, text: &str) {
        (self.on_progress)(text);
    }
}

/// Dropping the future stops the hosts and removes their folders.
pub async fn measure(plan: &Plan) -> anyhow::Result<Report> {
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
    if let Some(python) = plan.python.as_deref().filter(|_| (10..=11).any(|row| plan.wants(row))) {
        measures.extend(python::measure(plan, python).await?);
    }
    let machine = Machine::look(&plan.dir);
    Ok(Report { machine, load_before, load_after: machine::load(), measures })
}
