//! Detects a process that has stopped reading its stdin.

use super::Connection;
use tokio::time::MissedTickBehavior;

/// Checks per `stdin_stall_timeout`.
const CHECKS: u32 = 5;

impl Connection {
    /// Returns when the same run has been unread for `stdin_stall_timeout`, or up to a fifth longer.
    pub(crate) async fn stdin_stalled(&self) {
        let mut checks = tokio::time::interval(self.limits.stdin_stall_timeout / CHECKS);
        checks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut before, mut stalled) = (None, 0);
        while stalled < CHECKS {
            checks.tick().await;
            let unread = self.outbox.first_unread();
            stalled = if unread.is_some() && unread == before { stalled + 1 } else { 0 };
            before = unread;
        }
    }
}
