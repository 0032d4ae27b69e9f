//! The writer: commits queued commands in batches, then sends their outcomes.
//!
//! Invariant: an outcome is sent only after its commit; one bad command fails alone; when the reply to a commit is
//! lost, the database is asked whether it took effect, and the batch is executed again only if it did not.

use crate::StoreError;
use crate::condition::Condition;
use crate::drivers::Driver;
use crate::fault;
use crate::gate::Gate;
use crate::health::{Health, WRITE_PATIENCE};
use crate::job::Job;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, watch};

/// Most commands in one transaction.
const BATCH_MAX: usize = 512;

/// Between two connection attempts.
const RECONNECT_PAUSE: Duration = Duration::from_millis(200);

type Batch = Vec<Box<dyn Job>>;

/// How the commands of a batch are separated. Bad ones are rare, so a batch is tried without first.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fence {
    /// One bad command fails the attempt.
    None,
    /// One bad command fails alone.
    Savepoints,
}

enum Committed {
    Yes,
    /// The connection was lost before the commit; there is a new one.
    No,
}

pub(crate) struct Writer {
    pub(crate) driver: Box<dyn Driver>,
    pub(crate) lost: watch::Sender<Option<StoreError>>,
    /// Its end is the end of the thread that keeps the files.
    pub(crate) keeper: Option<std::sync::mpsc::SyncSender<()>>,
    pub(crate) gate: Arc<Gate>,
    pub(crate) condition: Arc<Condition>,
    /// Whether the last batch found no space.
    pub(crate) is_full: Arc<AtomicBool>,
    pub(crate) health: Arc<Health>,
}

impl Writer {
    /// Commits whatever is queued, together, until every sender is gone or the store is lost.
    pub(crate) fn run(mut self, mut jobs: mpsc::Receiver<Box<dyn Job>>) {
        let mut batch = Vec::new();
        while jobs.blocking_recv_many(&mut batch, BATCH_MAX) > 0 {
            if let Err(error) = self.condition.refuse_gone() {
                batch.drain(..).for_each(|job| job.fail(error.clone()));
                continue;
            }
            let gate = Arc::clone(&self.gate);
            let _turn = gate.write();
            if let Err(error) = self.commit(&mut batch) {
                tracing::error!(%error, "store lost, the host has to stop");
                batch.drain(..).for_each(|job| job.fail(error.clone()));
                self.lost.send_replace(Some(error));
                break;
            }
        }
        drop(self.keeper);
    }

    /// Commits a batch and sends its outcomes; an error means that nothing may be written any more.
    fn commit(&mut self, batch: &mut Batch) -> Result<(), StoreError> {
        let mut fence = Fence::None;
        loop {
            match self.try_commit(batch, fence) {
                Ok(Committed::Yes) => {
                    fault::point("after_commit");
                    self.is_full.store(false, Ordering::Relaxed);
                    batch.drain(..).for_each(|job| job.finish());
                    return Ok(());
                }
                Ok(Committed::No) => {}
                // Nothing of the batch was committed.
                Err(error) if error.is_connection() => self.reconnect(&error, batch)?,
                Err(error @ StoreError::Lost(_)) => return Err(error),
                Err(StoreError::Refused(_)) if fence == Fence::None && batch.len() > 1 => {
                    self.driver.rollback();
                    fence = Fence::Savepoints;
                }
                Err(error) => {
                    tracing::error!(%error, commands = batch.len(), "batch failed");
                    self.condition.note(&error);
                    if matches!(error, StoreError::Full) {
                        self.is_full.store(true, Ordering::Relaxed);
                    }
                    self.driver.rollback();
                    batch.drain(..).for_each(|job| job.fail(error.clone()));
                    return Ok(());
                }
            }
        }
    }

    fn try_commit(&mut self, batch: &mut Batch, fence: Fence) -> Result<Committed, StoreError> {
        self.driver.begin()?;
        for job in batch {
            match fence {
                Fence::None => job.execute(&mut *self.driver)?,
                Fence::Savepoints => self.execute_fenced(&mut **job)?,
            }
        }
        fault::point("before_commit");
        match self.driver.commit() {
            Ok(()) => Ok(Committed::Yes),
            Err(error) if error.is_connection() => match self.has_committed(&error)? {
                true => Ok(Committed::Yes),
                false => Ok(Committed::No),
            },
            Err(error) => Err(error),
        }
    }

    fn execute_fenced(&mut self, job: &mut dyn Job) -> Result<(), StoreError> {
        self.driver.execute("SAVEPOINT command", &[])?;
        match job.execute(&mut *self.driver) {
            Ok(()) => {}
            Err(error @ StoreError::Refused(_)) => {
                tracing::error!(%error, "command failed");
                self.driver.execute("ROLLBACK TO SAVEPOINT command", &[])?;
            }
            Err(error) => return Err(error),
        }
        self.driver.execute("RELEASE SAVEPOINT command", &[])?;
        Ok(())
    }

    /// Whether a commit whose reply was lost took effect.
    fn has_committed(&mut self, cause: &StoreError) -> Result<bool, StoreError> {
        loop {
            self.reconnect(cause, &mut Vec::new())?;
            match self.driver.has_committed() {
                Err(error) if error.is_connection() => {}
                known => return known,
            }
        }
    }

    /// Reconnects, however long it takes. Commands from outside among `refusable` fail after a while; the host's own
    /// wait.
    fn reconnect(&mut self, cause: &StoreError, refusable: &mut Batch) -> Result<(), StoreError> {
        tracing::warn!(error = %cause, "lost the database connection, reconnecting");
        let since = Instant::now();
        loop {
            match self.driver.reconnect() {
                Ok(()) => {
                    tracing::info!("database connection restored");
                    self.health.works();
                    return Ok(());
                }
                Err(error @ StoreError::Lost(_)) => return Err(error),
                Err(error) => tracing::debug!(%error, "reconnect failed"),
            }
            self.health.failed();
            if since.elapsed() >= WRITE_PATIENCE {
                let refused = refusable.extract_if(.., |job| job.is_from_outside());
                refused.for_each(|job| job.fail(cause.clone()));
            }
            std::thread::sleep(RECONNECT_PAUSE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::{Command, RecordDiagnostics, Touch};
    use crate::drivers::SqliteDriver;
    use crate::job::Queued;
    use crate::schema;
    use crate::store::Sync;
    use crate::types::Diagnostic;

    /// Commits one command.
    fn commit<C: Command>(writer: &mut Writer, command: C) -> Result<C::Outcome, StoreError> {
        let (job, mut outcome) = Queued::new(command);
        writer.commit(&mut vec![job]).unwrap();
        outcome.try_recv().unwrap()
    }

    fn large() -> RecordDiagnostics {
        let (kind, message) = ("large".to_owned(), "x".repeat(100_000));
        RecordDiagnostics {
            run_id: "r".to_owned(),
            diagnostics: vec![Diagnostic { kind, message, created_at: 1 }],
        }
    }

    #[test]
    fn a_write_without_space_is_refused_and_known_until_one_finds_some() {
        let folder = tempfile::tempdir().unwrap();
        let mut driver =
            SqliteDriver::writer(&folder.path().join("full.db"), Sync::Normal).unwrap();
        schema::prepare(&mut driver).unwrap();
        // Not one page more.
        driver.run_script("PRAGMA max_page_count = 1").unwrap();
        let mut writer = Writer {
            driver: Box::new(driver),
            lost: watch::Sender::new(None),
            keeper: None,
            gate: Arc::default(),
            condition: Arc::default(),
            is_full: Arc::default(),
            health: Arc::default(),
        };
        assert!(matches!(commit(&mut writer, large()), Err(StoreError::Full)));
        assert!(writer.is_full.load(Ordering::Relaxed));
        assert!(matches!(commit(&mut writer, Touch(7)), Err(StoreError::Full)));
        assert!(writer.is_full.load(Ordering::Relaxed));
        writer.driver.run_script("PRAGMA max_page_count = 100000").unwrap();
        assert!(commit(&mut writer, Touch(8)).is_ok());
        assert!(!writer.is_full.load(Ordering::Relaxed));
        assert!(matches!(commit(&mut writer, large()), Ok(true)));
    }
}
