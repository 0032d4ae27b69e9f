//! Commands that no caller waits for: they are committed with the next command, or with a flush.
//!
//! Invariant: a postponed command is executed before every command that is submitted after it, and in the
//! same commit where there is room. A crash may lose it, so only [`Postponable`] commands may be postponed.

use super::{Store, closed, lock};
use crate::StoreError;
use crate::commands::Postponable;
use crate::job::{Job, Queued};
use tokio::sync::mpsc;

/// Postponed commands from which on the caller has to flush at once.
const POSTPONED_MAX: usize = 1024;

/// What a caller that has postponed a command has to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Postponed {
    /// It is the only one: the caller has to flush soon.
    First,
    /// An earlier caller flushes.
    Behind,
    /// Too many are postponed: the caller has to flush now.
    Full,
}

impl Store {
    /// Queues a command for the next commit.
    pub fn postpone(&self, command: impl Postponable) -> Postponed {
        let (job, _) = Queued::new(command);
        let mut waiting = lock(&self.inner.postponed);
        waiting.push_back(job);
        match waiting.len() {
            1 => Postponed::First,
            POSTPONED_MAX.. => Postponed::Full,
            _ => Postponed::Behind,
        }
    }

    /// Hands everything postponed so far to the writer.
    pub async fn flush(&self) -> Result<(), StoreError> {
        let writer = lock(&self.inner.writer).clone().ok_or_else(closed)?;
        self.send_postponed(&writer).await
    }

    pub(super) async fn send_postponed(
        &self,
        writer: &mpsc::Sender<Box<dyn Job>>,
    ) -> Result<(), StoreError> {
        while !lock(&self.inner.postponed).is_empty() {
            let permit = writer.reserve().await.map_err(|_| closed())?;
            // Held until it is sent: a caller that finds the queue empty comes after it.
            let mut waiting = lock(&self.inner.postponed);
            if let Some(job) = waiting.pop_front() {
                permit.send(job);
            }
        }
        Ok(())
    }

    /// The same while closing. Blocks.
    pub(super) fn send_postponed_last(&self, writer: &mpsc::Sender<Box<dyn Job>>) {
        for job in lock(&self.inner.postponed).drain(..) {
            // Fails only when the writer has ended, which has logged why.
            let _ = writer.blocking_send(job);
        }
    }
}
