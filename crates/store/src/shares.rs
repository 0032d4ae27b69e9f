//! Fairness between workspaces: none can fill the writer's queue alone.
//!
//! Invariant: events of one workspace take at most its share of the queue; more of them wait, first in, first out,
//! without holding up other workspaces.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Workspaces remembered before idle ones are dropped.
const WORKSPACES_MAX: usize = 1024;

#[derive(Debug)]
pub(crate) struct Shares {
    size: usize,
    by_workspace: Mutex<HashMap<String, Arc<Semaphore>>>,
}

impl Shares {
    pub(crate) fn new(size: usize) -> Self {
        Self { size, by_workspace: Mutex::default() }
    }

    /// Waits for room in the workspace's share.
    pub(crate) async fn enter(&self, workspace: &str) -> Option<OwnedSemaphorePermit> {
        self.share(workspace).acquire_owned().await.ok()
    }

    fn share(&self, workspace: &str) -> Arc<Semaphore> {
        let mut shares = self.by_workspace.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(share) = shares.get(workspace) {
            return Arc::clone(share);
        }
        if shares.len() >= WORKSPACES_MAX {
            shares.retain(|_, share| Arc::strong_count(share) > 1);
        }
        let share = Arc::new(Semaphore::new(self.size));
        shares.insert(workspace.to_owned(), Arc::clone(&share));
        share
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_full_workspace_waits_and_another_passes_by() {
        let shares = Shares::new(2);
        let first = shares.enter("loud").await;
        let _second = shares.enter("loud").await;
        assert_eq!(shares.share("loud").available_permits(), 0);
        assert!(shares.enter("quiet").await.is_some());
        drop(first);
        assert!(shares.enter("loud").await.is_some());
    }

    #[tokio::test]
    async fn idle_workspaces_are_forgotten() {
        let shares = Shares::new(1);
        let _busy = shares.enter("busy").await;
        for number in 0..3 * WORKSPACES_MAX {
            shares.enter(&number.to_string()).await;
        }
        let known = shares.by_workspace.lock().unwrap();
        assert!(known.len() <= WORKSPACES_MAX && known.contains_key("busy"));
    }
}
