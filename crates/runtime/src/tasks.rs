//! The one place that spawns: every task of the runtime is registered and awaited here.
//!
//! Invariant: after `finish` no task of this crate runs, except those that it has reported.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::task::AbortHandle;
use tokio_util::task::TaskTracker;

#[derive(Debug, Clone, Default)]
pub(crate) struct Tasks {
    tracker: TaskTracker,
    /// Processes that have not ended, by name, with the number of tasks that watch each.
    processes: Processes,
}

type Processes = Arc<Mutex<BTreeMap<String, usize>>>;

/// A process that a task watches.
struct Attended {
    process: String,
    processes: Processes,
}

impl Tasks {
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) -> AbortHandle {
        // Boxed, so that spawning is compiled once and moves a pointer.
        let task: Pin<Box<dyn Future<Output = ()> + Send>> = Box::pin(task);
        self.tracker.spawn(task).abort_handle()
    }

    /// Spawns a task that lasts as long as a process, e.g. of `runner \`triage\``.
    pub(crate) fn attend(
        &self,
        process: String,
        task: impl Future<Output = ()> + Send + 'static,
    ) -> AbortHandle {
        let attended = Attended::new(process, self.processes.clone());
        self.spawn(async move {
            task.await;
            drop(attended);
        })
    }

    /// Waits for all tasks; after the timeout returns the processes that are left.
    pub(crate) async fn finish(&self, wait: Duration) -> Result<(), Vec<String>> {
        self.tracker.close();
        let ended = tokio::time::timeout(wait, self.tracker.wait()).await;
        ended.map_err(|_| {
            let processes = self.processes.lock().unwrap_or_else(PoisonError::into_inner);
            processes.keys().cloned().collect()
        })
    }
}

impl Attended {
    fn new(process: String, processes: Processes) -> Self {
        *processes
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .entry(process.clone())
            .or_default() += 1;
        Self { process, processes }
    }
}

impl Drop for Attended {
    fn drop(&mut self) {
        let mut processes = self.processes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = processes.get_mut(&self.process) {
            *count -= 1;
            if *count == 0 {
                processes.remove(&self.process);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_does_not_end_in_time_is_named() {
        let tasks = Tasks::default();
        tasks.attend("runner `quick`".to_owned(), async {});
        tasks.attend("tool `sleepy`".to_owned(), std::future::pending());
        let left = tasks.finish(Duration::from_millis(100)).await;
        assert_eq!(left, Err(vec!["tool `sleepy`".to_owned()]));
    }
}
