//! Whether the database answers, as the connections to it see it.
//!
//! Invariant: down from the first failed try to connect until a try succeeds. A database that only restarts is
//! waited for; once it has been down for longer, whoever asks is answered at once.

use std::time::{Duration, Instant};
use tokio::sync::watch;

/// How long a read waits for a database that went away.
pub(crate) const READ_PATIENCE: Duration = Duration::from_secs(5);
/// How long a command from outside does.
pub(crate) const WRITE_PATIENCE: Duration = Duration::from_secs(10);
/// How long a failed try to connect speaks for all connections.
const FRESH: Duration = Duration::from_secs(1);

pub(crate) struct Health {
    down: watch::Sender<Option<Down>>,
}

#[derive(Debug, Clone, Copy)]
struct Down {
    since: Instant,
    /// The last failed try.
    seen_at: Instant,
}

impl Default for Health {
    fn default() -> Self {
        Self { down: watch::Sender::new(None) }
    }
}

impl Health {
    /// A try to connect failed.
    pub(crate) fn failed(&self) {
        let now = Instant::now();
        self.down.send_modify(|down| {
            let since = down.map_or(now, |down| down.since);
            *down = Some(Down { since, seen_at: now });
        });
    }

    /// A try to connect succeeded.
    pub(crate) fn works(&self) {
        self.down.send_replace(None);
    }

    /// Whether it is down and that was seen just now, so that another try would show nothing new.
    pub(crate) fn failed_lately(&self) -> bool {
        self.down.borrow().is_some_and(|down| down.seen_at.elapsed() < FRESH)
    }

    /// What is left of a patience that began when the database went away.
    pub(crate) fn left_of(&self, patience: Duration) -> Duration {
        let since = self.down.borrow().map(|down| down.since);
        since.map_or(patience, |since| patience.saturating_sub(since.elapsed()))
    }

    /// Whether it answers before a command from outside has waited long enough.
    pub(crate) async fn is_up_soon(&self) -> bool {
        if self.down.borrow().is_none() {
            return true;
        }
        let mut down = self.down.subscribe();
        let up = down.wait_for(Option::is_none);
        matches!(tokio::time::timeout(self.left_of(WRITE_PATIENCE), up).await, Ok(Ok(_)))
    }
}
