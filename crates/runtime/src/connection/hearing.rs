//! Notices a process that does not read what it is told.

use super::Connection;
use std::time::Duration;
use tokio::time::MissedTickBehavior;

/// How many looks a longer time is divided into.
const LOOKS: u32 = 4;

impl Connection {
    /// Returns when a run has waited to be read for `deaf_after`, or up to twice as long.
    pub(crate) async fn is_deaf(&self) {
        let mut looks = tokio::time::interval(self.limits.deaf_after);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut before = None;
        loop {
            looks.tick().await;
            let unread = self.outbox.first_unread();
            if unread.is_some() && unread == before {
                return;
            }
            before = unread;
        }
    }

    /// Returns when there was something to read all of this time, or a little longer, and nothing of it was read.
    pub(crate) async fn reads_nothing_for(&self, time: Duration) {
        let mut looks = tokio::time::interval(time / LOOKS);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut before, mut same) = (None, 0);
        loop {
            looks.tick().await;
            let stopped_at = self.outbox.stopped_at();
            same = if stopped_at.is_some() && stopped_at == before { same + 1 } else { 0 };
            if same == LOOKS {
                return;
            }
            before = stopped_at;
        }
    }
}
