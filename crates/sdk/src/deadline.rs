//! The run's deadline on this side of the wire.
//!
//! Invariant: only the host ends a run at its deadline; here pending calls fail when it passes. The clock is paused
//! while an action waits for approval, as at the host.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

pub(crate) struct Deadline {
    /// Without pauses; `None` when the run has no deadline.
    at: Option<Instant>,
    pauses: Mutex<Pauses>,
    resumed: Notify,
}

#[derive(Default)]
struct Pauses {
    /// How many actions wait, and since when the first of them.
    open: usize,
    since: Option<Instant>,
    /// Total of ended pauses.
    total: Duration,
}

impl Pauses {
    fn begin(&mut self, now: Instant) {
        self.open += 1;
        self.since.get_or_insert(now);
    }

    /// Ends one pause; true if none is left.
    fn finish(&mut self, now: Instant) -> bool {
        self.open -= 1;
        if self.open == 0 {
            let since = self.since.take().unwrap_or(now);
            self.total += now.saturating_duration_since(since);
        }
        self.open == 0
    }

    fn remaining(&self, at: Instant, now: Instant) -> Option<Duration> {
        let now = self.since.unwrap_or(now);
        Some(at.checked_add(self.total)?.saturating_duration_since(now))
    }
}

impl Deadline {
    pub(crate) fn new(at: Option<Instant>) -> Self {
        Self { at, pauses: Mutex::default(), resumed: Notify::new() }
    }

    pub(crate) fn remaining(&self) -> Option<Duration> {
        self.lock().remaining(self.at?, Instant::now())
    }

    /// Returns when the deadline has passed; never without a deadline.
    pub(crate) async fn passed(&self) {
        loop {
            let mut resumed = std::pin::pin!(self.resumed.notified());
            resumed.as_mut().enable();
            match self.remaining() {
                None => std::future::pending().await,
                _ if self.lock().open > 0 => resumed.await,
                Some(Duration::ZERO) => return,
                Some(left) => tokio::time::sleep(left).await,
            }
        }
    }

    /// Pauses the clock while the guard lives.
    pub(crate) fn pause(&self) -> Pause<'_> {
        self.lock().begin(Instant::now());
        Pause(self)
    }

    fn lock(&self) -> MutexGuard<'_, Pauses> {
        self.pauses.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(crate) struct Pause<'a>(&'a Deadline);

impl Drop for Pause<'_> {
    fn drop(&mut self) {
        let is_over = self.0.lock().finish(Instant::now());
        if is_over {
            self.0.resumed.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_deadline_is_paused_while_any_action_waits() {
        let begin = Instant::now();
        let after = |seconds: u64| begin + Duration::from_secs(seconds);
        let mut pauses = Pauses::default();
        let left = |pauses: &Pauses, now| pauses.remaining(after(10), now).unwrap().as_secs();
        assert_eq!(left(&pauses, after(2)), 8);
        pauses.begin(after(2));
        pauses.begin(after(50));
        assert!(!pauses.finish(after(100)));
        assert_eq!(left(&pauses, after(150)), 8);
        assert!(pauses.finish(after(202)));
        assert_eq!(left(&pauses, after(203)), 7);
        assert_eq!(left(&pauses, after(300)), 0);
    }
}
