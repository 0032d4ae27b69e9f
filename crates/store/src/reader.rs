//! Readers: a few threads, each with a connection of its own.

use crate::StoreError;
use crate::drivers::Driver;
use crate::sql::Tx;
use std::time::Duration;
use tokio::sync::mpsc;

/// Tries to reach a database that went away before a read gives up.
const RECONNECT_TRIES: u32 = 25;
const RECONNECT_PAUSE: Duration = Duration::from_millis(200);

/// A read; called again after a new connection, so it must not keep what it saw.
pub(crate) type ReadJob = Box<dyn FnMut(&mut dyn Tx) -> Result<(), StoreError> + Send>;

/// Runs reads until every handle is gone. The job itself hands its answer over when it succeeds; one
/// that is dropped without having succeeded has failed for its caller.
pub(crate) fn run(mut driver: Box<dyn Driver>, mut jobs: mpsc::Receiver<ReadJob>) {
    while let Some(mut job) = jobs.blocking_recv() {
        for _ in 0..RECONNECT_TRIES {
            match job(&mut *driver) {
                Err(error) if error.is_connection() => {
                    if driver.reconnect().is_err() {
                        std::thread::sleep(RECONNECT_PAUSE);
                    }
                }
                _ => break,
            }
        }
    }
}
