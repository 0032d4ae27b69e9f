//! Notices a process that does not read what it is told.

use super::Connection;
use tokio::time::MissedTickBehavior;

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
}
