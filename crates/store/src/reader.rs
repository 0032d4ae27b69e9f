//! Readers: a few threads, each with a connection of its own.
//!
//! Invariant: every read is answered, with what was found or with why nothing could be; a reader never
//! waits without end for a database that went away.

use crate::StoreError;
use crate::drivers::Driver;
use crate::sql::Tx;
use std::time::Duration;
use tokio::sync::mpsc;

/// Tries to reach a database that went away before a read gives up.
const RECONNECT_TRIES: u32 = 25;
const RECONNECT_PAUSE: Duration = Duration::from_millis(200);

/// A read; it hands its answer over by itself. Called again after a new connection, so it must not keep
/// what it saw.
pub(crate) type ReadJob = Box<dyn FnMut(&mut dyn Tx, Turn) -> Answer + Send>;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    /// A lost connection need not be told yet.
    MayRepeat,
    /// Whatever comes is the answer.
    Last,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    Given,
    /// The connection was lost: once more, please.
    Repeat,
}

/// Runs reads until every handle is gone.
pub(crate) fn run(mut driver: Box<dyn Driver>, mut jobs: mpsc::Receiver<ReadJob>) {
    while let Some(mut job) = jobs.blocking_recv() {
        if job(&mut *driver, Turn::MayRepeat) == Answer::Given {
            continue;
        }
        let back = (0..RECONNECT_TRIES).any(|_| reconnect(&mut *driver).is_ok());
        tracing::warn!(back, "a reader lost the database");
        let _ = job(&mut *driver, Turn::Last);
    }
}

fn reconnect(driver: &mut dyn Driver) -> Result<(), StoreError> {
    driver.reconnect().inspect_err(|_| std::thread::sleep(RECONNECT_PAUSE))
}
