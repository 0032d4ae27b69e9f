//! Readers: a few threads, each with a connection of its own.
//!
//! Invariant: every read is answered, with what was found or with why nothing could be; a reader never
//! waits without end for a database that went away.

use crate::drivers::Driver;
use crate::health::{Health, READ_PATIENCE};
use crate::sql::Tx;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// Between two tries to reach a database that went away.
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
pub(crate) fn run(
    mut driver: Box<dyn Driver>,
    mut jobs: mpsc::Receiver<ReadJob>,
    health: &Arc<Health>,
) {
    while let Some(mut job) = jobs.blocking_recv() {
        let turn = if health.failed_lately() { Turn::Last } else { Turn::MayRepeat };
        if job(&mut *driver, turn) == Answer::Given {
            continue;
        }
        reconnect(&mut *driver, health);
        let _ = job(&mut *driver, Turn::Last);
    }
}

/// A database that went away just now is waited for; one that has been down for longer is tried once.
fn reconnect(driver: &mut dyn Driver, health: &Health) {
    let patience_ends = Instant::now() + health.left_of(READ_PATIENCE);
    loop {
        match driver.reconnect() {
            Ok(()) => {
                tracing::info!("a reader is connected to the database again");
                return health.works();
            }
            Err(error) if Instant::now() + RECONNECT_PAUSE >= patience_ends => {
                tracing::warn!(%error, "the database does not answer");
                return health.failed();
            }
            Err(_) => std::thread::sleep(RECONNECT_PAUSE),
        }
    }
}
