//! Reader threads, each with its own connection.
//!
//! Invariant: every read gets a result or an error; a reader waits for a database that is down for a limited time only.

use crate::drivers::Driver;
use crate::health::{Health, READ_PATIENCE};
use crate::sql::Tx;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// Between two connection attempts.
const RECONNECT_PAUSE: Duration = Duration::from_millis(200);

/// A read, which sends its own reply. It is called again after a new connection, so it must not keep state.
pub(crate) type ReadJob = Box<dyn FnMut(&mut dyn Tx, Turn) -> Answer + Send>;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    /// A lost connection is not reported yet.
    MayRepeat,
    /// Any outcome is the reply.
    Last,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    Given,
    /// The connection was lost: call it again.
    Repeat,
}

/// Runs reads until every handle is dropped.
pub(crate) fn run(
    mut driver: Box<dyn Driver>,
    mut jobs: mpsc::Receiver<ReadJob>,
    health: &Arc<Health>,
) {
    while let Some(mut job) = jobs.blocking_recv() {
        let turn = if health.failed_recently() { Turn::Last } else { Turn::MayRepeat };
        if job(&mut *driver, turn) == Answer::Given {
            continue;
        }
        reconnect(&mut *driver, health);
        let _ = job(&mut *driver, Turn::Last);
    }
}

/// Waits for a database that has just gone down; tries one that has been down for longer once.
fn reconnect(driver: &mut dyn Driver, health: &Health) {
    let patience_ends = Instant::now() + health.left_of(READ_PATIENCE);
    loop {
        match driver.reconnect() {
            Ok(()) => {
                tracing::info!("reader reconnected to the database");
                return health.works();
            }
            Err(error) if Instant::now() + RECONNECT_PAUSE >= patience_ends => {
                tracing::warn!(%error, "database does not answer");
                return health.failed();
            }
            Err(_) => std::thread::sleep(RECONNECT_PAUSE),
        }
    }
}
