//! Stops runs.
//!
//! Invariant: a run that is told to stop is already over for the host; a process that keeps it beyond its
//! grace period is replaced.

use super::Connection;
use crate::run::Run;
use crate::wires::StopRun;
use std::sync::Arc;

impl Connection {
    /// Tells the runner to stop a run, and replaces the process unless the run ends within its grace period.
    pub(crate) fn cancel(self: &Arc<Self>, run: &Arc<Run>, reason: &str) {
        let Some((number, runner)) = self.number_of(run) else { return };
        if self.withdraw(number) {
            return;
        }
        let stop = StopRun { number, run_id: &run.id, runner: &runner, reason };
        let grace = self.codec.cancel_run(self, &stop);
        // After its terminal result, its response may wait behind what other runs write.
        let (grace, since) = match run.has_terminal() {
            true => (self.limits.drain_max, "its terminal result"),
            false => (grace, "its cancellation"),
        };
        let (connection, run) = (self.clone(), run.clone());
        self.tasks.spawn(async move {
            let is_gone = tokio::time::timeout(grace, connection.gone()).await.is_ok();
            if !is_gone && connection.number_of(&run).is_some() {
                let grace_s = grace.as_secs_f32();
                connection.replace(format!("did not end a run within {grace_s} s of {since}"));
            }
        });
    }
}
