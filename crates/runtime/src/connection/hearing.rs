//! Notices a process that does not read what it is told.

use super::Connection;
use tokio::time::MissedTickBehavior;

/// How often it is looked at within the time that makes a process deaf.
const LOOKS: u32 = 5;

impl Connection {
    /// Returns when a run has waited to be read for `deaf_after`, or up to a fifth longer.
    pub(crate) async fn is_deaf(&self) {
        let mut looks = tokio::time::interval(self.limits.deaf_after / LOOKS);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut before, mut in_vain) = (None, 0);
        while in_vain < LOOKS {
            looks.tick().await;
            let unread = self.outbox.first_unread();
            in_vain = if unread.is_some() && unread == before { in_vain + 1 } else { 0 };
            before = unread;
        }
    }
}
