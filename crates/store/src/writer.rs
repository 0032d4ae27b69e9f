//! The one writer: takes whatever is waiting, commits it together, then tells everyone.
//!
//! Invariant: an outcome is told only after its commit; one bad command fails alone (savepoint); a commit
//! whose answer was lost is carried out again, which changes nothing the second time.

use crate::StoreError;
use crate::commands::{Command, Outcome};
use crate::drivers::Driver;
use crate::fault;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};

/// Commands in one transaction at most.
const BATCH_MAX: usize = 512;
/// Between two tries to reach a database that went away.
const RECONNECT_PAUSE: Duration = Duration::from_millis(200);

pub(crate) struct Job {
    pub(crate) command: Command,
    pub(crate) reply: oneshot::Sender<Result<Outcome, StoreError>>,
}

pub(crate) struct Writer {
    pub(crate) driver: Box<dyn Driver>,
    pub(crate) jobs: mpsc::Receiver<Job>,
    pub(crate) lost: watch::Sender<Option<StoreError>>,
    /// Told after each commit, for the checkpointer.
    pub(crate) committed: std::sync::mpsc::SyncSender<()>,
}

impl Writer {
    /// Runs until every handle is gone or the store is lost.
    pub(crate) fn run(mut self) {
        let mut batch = Vec::new();
        while self.jobs.blocking_recv_many(&mut batch, BATCH_MAX) > 0 {
            if let Err(error) = self.commit(&mut batch) {
                tracing::error!(%error, "the store is lost, the host has to end");
                for job in batch.drain(..) {
                    let _ = job.reply.send(Err(error.clone()));
                }
                self.lost.send_replace(Some(error));
                return;
            }
        }
    }

    /// Commits a batch and tells its outcomes; an error means that nothing may be written any more.
    fn commit(&mut self, batch: &mut Vec<Job>) -> Result<(), StoreError> {
        loop {
            match self.try_commit(batch) {
                Ok(outcomes) => {
                    fault::point("after_commit");
                    let _ = self.committed.try_send(());
                    for (job, outcome) in batch.drain(..).zip(outcomes) {
                        let _ = job.reply.send(outcome);
                    }
                    return Ok(());
                }
                Err(error) if error.is_connection() => self.reconnect(&error)?,
                Err(error @ StoreError::Lost(_)) => return Err(error),
                Err(error) => {
                    self.driver.rollback();
                    for job in batch.drain(..) {
                        let _ = job.reply.send(Err(error.clone()));
                    }
                    return Ok(());
                }
            }
        }
    }

    fn try_commit(
        &mut self,
        batch: &[Job],
    ) -> Result<Vec<Result<Outcome, StoreError>>, StoreError> {
        self.driver.begin()?;
        let mut outcomes = Vec::with_capacity(batch.len());
        for job in batch {
            outcomes.push(self.try_command(&job.command)?);
        }
        fault::point("before_commit");
        self.driver.commit()?;
        Ok(outcomes)
    }

    fn try_command(
        &mut self,
        command: &Command,
    ) -> Result<Result<Outcome, StoreError>, StoreError> {
        self.driver.execute("SAVEPOINT command", &[])?;
        let outcome = command.execute(&mut *self.driver);
        match &outcome {
            Ok(_) => {}
            Err(error) if error.is_connection() => return Err(error.clone()),
            Err(StoreError::Lost(_) | StoreError::Full) => return outcome.map(Ok),
            Err(error) => {
                tracing::error!(%error, ?command, "a command failed");
                self.driver.execute("ROLLBACK TO SAVEPOINT command", &[])?;
            }
        }
        self.driver.execute("RELEASE SAVEPOINT command", &[])?;
        Ok(outcome)
    }

    fn reconnect(&mut self, cause: &StoreError) -> Result<(), StoreError> {
        tracing::warn!(error = %cause, "lost the database, connecting again");
        loop {
            match self.driver.reconnect() {
                Ok(()) => return Ok(()),
                Err(error @ StoreError::Lost(_)) => return Err(error),
                Err(error) => tracing::debug!(%error, "the database is not back yet"),
            }
            std::thread::sleep(RECONNECT_PAUSE);
        }
    }
}
