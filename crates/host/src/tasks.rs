//! The tasks of the host: named, counted, and awaited on shutdown.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument;

#[derive(Clone, Default)]
pub struct Tasks {
    tracker: TaskTracker,
    stop: CancellationToken,
}

impl Tasks {
    /// Spawns a task; its log lines carry the name.
    pub fn spawn<F>(&self, name: &'static str, work: F) -> tokio::task::JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let span = tracing::debug_span!("task", name);
        // Boxed at once: a run's future is several kilobytes, and spawning moves it a dozen times. With its type
        // erased, spawning is compiled once for all tasks.
        let work: Pin<Box<dyn Future<Output = F::Output> + Send>> = Box::pin(work);
        self.tracker.spawn(work.instrument(span))
    }

    /// Is cancelled when the host stops.
    pub fn stopping(&self) -> &CancellationToken {
        &self.stop
    }

    /// Asks every task to end and waits for them for a while.
    pub async fn stop(&self, wait: Duration) {
        self.stop.cancel();
        self.tracker.close();
        if tokio::time::timeout(wait, self.tracker.wait()).await.is_err() {
            tracing::warn!(tasks = self.tracker.len(), "tasks did not end in time");
        }
    }
}
