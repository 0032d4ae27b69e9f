//! Search indexing, behind everything else.
//!
//! Invariant: nobody waits for the index. What is not in it yet is found by scanning, so being late costs a
//! search time and never a hit.

use crate::host::Shared;
use futures_util::FutureExt;
use std::sync::Arc;
use std::time::Duration;

/// Items of one step: short enough that a run's commit behind it does not notice.
const STEP_ITEMS: i64 = 64;
/// The transcript has to be still for so long: while runs come in, the writer is theirs.
const STILL: Duration = Duration::from_millis(300);
/// Between two steps.
const PAUSE: Duration = Duration::from_millis(10);
/// Above so many unindexed items a search would feel it, and the index gets more of the writer.
const BACKLOG: i64 = 5_000;
/// How long a busy transcript keeps the index waiting before it looks how far it is behind.
const BUSY_MAX: Duration = Duration::from_secs(2);
const PAUSE_BEHIND: Duration = Duration::from_millis(5);
/// After an error.
const PAUSE_FAILED: Duration = Duration::from_secs(2);

/// Keeps the index up with the transcript until the host stops.
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
                still(&shared).await;
                PAUSE
            }
            Ok(_) => {
                still(&shared).await;
                PAUSE
            }
            Err(error) => {
                tracing::warn!(%error, "the search index waits");
                PAUSE_FAILED
            }
        };
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = stopping.cancelled() => return,
        }
    }
}

/// Waits until nothing has come in for a while, or the host stops. A backlog does not wait for that.
async fn still(shared: &Shared) {
    let until = tokio::time::Instant::now() + BUSY_MAX;
    while tokio::time::Instant::now() < until {
        // Asleep meanwhile, so that a commit wakes nobody for the index: what came in has left its mark.
        tokio::select! {
            () = tokio::time::sleep(STILL) => {}
            () = shared.tasks.stopping().cancelled() => return,
        }
        if shared.wake_indexing.notified().now_or_never().is_none() {
            return;
        }
    }
}
