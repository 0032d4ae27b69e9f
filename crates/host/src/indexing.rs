//! Search indexing, in the background.
//!
//! Invariant: nothing waits for the index. A search scans the items that are not indexed yet, so a late index
//! makes it slower, never incomplete.

use crate::host::Shared;
use futures_util::FutureExt;
use std::sync::Arc;
use std::time::Duration;

/// Items of one step: few enough not to delay the commits of runs.
const STEP_ITEMS: i64 = 64;
/// How long the transcript must be idle before a step: commits of runs come first.
const IDLE: Duration = Duration::from_millis(300);
/// Between two steps.
const PAUSE: Duration = Duration::from_millis(10);
/// Above this many unindexed items, which would slow searches down, steps do not wait for an idle transcript.
const BACKLOG: i64 = 5_000;
/// How long a busy transcript delays a step at most.
const BUSY_MAX: Duration = Duration::from_secs(2);
const PAUSE_BEHIND: Duration = Duration::from_millis(5);
/// After an error.
const PAUSE_FAILED: Duration = Duration::from_secs(2);

/// Indexes new items until the host stops.
pub(crate) async fn keep(shared: Arc<Shared>) {
    let stopping = shared.tasks.stopping();
    loop {
        let pause = match shared.store.index_some(STEP_ITEMS).await {
            Ok(left) if left > BACKLOG => PAUSE_BEHIND,
            Ok(0) => {
                tokio::select! {
                    () = shared.wake_indexing.notified() => {}
                    () = stopping.cancelled() => return,
                }
                idle(&shared).await;
                PAUSE
            }
            Ok(_) => {
                idle(&shared).await;
                PAUSE
            }
            Err(error) => {
                tracing::warn!(%error, "cannot update the search index, will retry");
                PAUSE_FAILED
            }
        };
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = stopping.cancelled() => return,
        }
    }
}

/// Waits until the transcript is idle, or has been busy for `BUSY_MAX`, or the host stops.
async fn idle(shared: &Shared) {
    let until = tokio::time::Instant::now() + BUSY_MAX;
    while tokio::time::Instant::now() < until {
        // A commit does not wake this task while it sleeps; its notification is stored.
        tokio::select! {
            () = tokio::time::sleep(IDLE) => {}
            () = shared.tasks.stopping().cancelled() => return,
        }
        if shared.wake_indexing.notified().now_or_never().is_none() {
            return;
        }
    }
}
