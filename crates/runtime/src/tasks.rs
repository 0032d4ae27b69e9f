//! The one place that spawns: every task of the runtime is known here and waited for.
//!
//! Invariant: after `finish` no task of this crate runs.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;
use tokio::task::AbortHandle;
use tokio_util::task::TaskTracker;

#[derive(Debug, Clone, Default)]
pub(crate) struct Tasks(TaskTracker);

impl Tasks {
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) -> AbortHandle {
        // Erased, the way into the async runtime is compiled once for all of them, and moves a pointer.
        let task: Pin<Box<dyn Future<Output = ()> + Send>> = Box::pin(task);
        self.0.spawn(task).abort_handle()
    }

    /// Waits for all of them; says whether they ended in time.
    pub(crate) async fn finish(&self, wait: Duration) -> bool {
        self.0.close();
        tokio::time::timeout(wait, self.0.wait()).await.is_ok()
    }
}
