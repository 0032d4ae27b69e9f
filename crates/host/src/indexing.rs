//! Search indexing, behind everything else.
//!
//! Invariant: nobody waits for the index. What is not in it yet is found by scanning, so being late costs a
//! search time and never a hit.

use crate::host::Shared;
use std::sync::Arc;
use std::time::Duration;

/// Items of one step: short enough that a run's commit behind it does not notice.
const STEP_ITEMS: i64 = 64;
/// After news, and between two steps: runs come first.
const PAUSE: Duration = Duration::from_millis(50);
/// Above so many unindexed items a search would feel it, and the index gets more of the writer.
const BACKLOG: i64 = 5_000;
const PAUSE_BEHIND: Duration = Duration::from_millis(5);
/// After an error.
const PAUSE_FAILED: Duration = Duration::from_secs(2);

/// Keeps the index up with the transcript until the host stops.
pub(crate) async fn keep(shared: Arc<Shared>) {
    let stopping = shared.tasks.stopping();
    loop {
        let pause = match shared.store.index_some(STEP_ITEMS).await {
            Ok(left) if left > BACKLOG => PAUSE_BEHIND,
            Ok(left) if left > 0 => PAUSE,
            Ok(_) => {
                tokio::select! {
                    () = shared.wake_indexing.notified() => {}
                    () = stopping.cancelled() => return,
                }
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
