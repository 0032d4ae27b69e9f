//! Waiting for something that will be true soon.
//!
//! Invariant: a wait has a deadline, and missing it is a panic that names what was waited for.

use std::time::{Duration, Instant};

/// Between two looks.
pub const PAUSE: Duration = Duration::from_millis(5);

/// Looks until there is something to see.
pub async fn wait_for<T>(
    what: &str,
    patience: Duration,
    mut look: impl AsyncFnMut() -> Option<T>,
) -> T {
    let patience_ends = Instant::now() + patience;
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(Instant::now() < patience_ends, "not within {patience:?}: {what}");
        tokio::time::sleep(PAUSE).await;
    }
}
