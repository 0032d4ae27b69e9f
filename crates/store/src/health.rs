//! Whether the database answers, as its connections see it.
//!
//! Invariant: it is down from the first failed connection attempt until one succeeds. Callers wait for a database that
//! restarts; once it has been down for longer, they get an error at once.

use std::time::{Duration, Instant};
use tokio::sync::watch;

/// How long a read waits for a database that is down.
pub(crate) const READ_PATIENCE: Duration = Duration::from_secs(5);
/// How long a command from outside waits.
pub(crate) const WRITE_PATIENCE: Duration = Duration::from_secs(10);
/// How long a failed connection attempt counts for all connections.
const FRESH: Duration = Duration::from_secs(1);

pub(crate) struct Health {
    down: watch::Sender<Option<Down>>,
}

#[derive(Debug, Clone, Copy)]
struct Down {
    since: Instant,
    /// The last failed attempt.
    seen_at: Instant,
}

impl Default for Health {
    fn default() -> Self {
        Self { down: watch::Sender::new(None) }
    }
}

impl Health {
    /// A connection attempt failed.
    pub(crate) fn failed(&self) {
        let now = Instant::now();
        self.down.send_modify(|down| {
            let since = down.map_or(now, |down| down.since);
            *down = Some(Down { since, seen_at: now });
        });
    }

    /// A connection attempt succeeded.
    pub(crate) fn works(&self) {
        self.down.send_replace(None);
    }

    /// Whether an attempt failed so recently that another one would show nothing new.
    pub(crate) fn failed_recently(&self) -> bool {
        self.down.borrow().is_some_and(|down| down.seen_at.elapsed() < FRESH)
    }

    /// What is left of a time limit that began when the database went down.
    pub(crate) fn left_of(&self, patience: Duration) -> Duration {
        let since = self.down.borrow().map(|down| down.since);
        since.map_or(patience, |since| patience.saturating_sub(since.elapsed()))
    }

    /// Whether it answers within the time limit of a command from outside.
    pub(crate) async fn is_up_soon(&self) -> bool {
        if self.down.borrow().is_none() {
            return true;
        }
        let mut down = self.down.subscribe();
        let up = down.wait_for(Option::is_none);
        matches!(tokio::time::timeout(self.left_of(WRITE_PATIENCE), up).await, Ok(Ok(_)))
    }
}
