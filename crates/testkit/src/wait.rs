//! Waits for a condition.
//!
//! Invariant: a wait has a deadline, and missing it is a panic that names the condition.

use std::time::{Duration, Instant};

/// Poll interval.
pub const PAUSE: Duration = Duration::from_millis(5);

/// Polls until there is a value.
pub async fn wait_for<T>(
    what: &str,
    patience: Duration,
    mut poll: impl AsyncFnMut() -> Option<T>,
) -> T {
    let deadline = Instant::now() + patience;
    loop {
        if let Some(value) = poll().await {
            return value;
        }
        assert!(Instant::now() < deadline, "not within {patience:?}: {what}");
        tokio::time::sleep(PAUSE).await;
    }
}
