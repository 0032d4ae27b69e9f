//! Whether the caller that opened a stream may still read it.
//!
//! Invariant: a stream ends at once when its caller signs out or its token is removed, and soon after its
//! session or its token of one actor expires.

use crate::access::Caller;
use crate::router::App;
use crate::stream::KEEP_ALIVE;
use tokio::sync::watch;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

pub(crate) struct StreamAccess {
    app: App,
    caller: Caller,
    changes: watch::Receiver<()>,
    ticks: Interval,
}

impl StreamAccess {
    pub(crate) fn new(app: &App, caller: &Caller) -> Self {
        let changes = app.sessions.changes();
        let mut ticks = interval_at(Instant::now() + KEEP_ALIVE, KEEP_ALIVE);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self { app: app.clone(), caller: caller.clone(), changes, ticks }
    }

    /// Waits until the caller's access is revoked. Cancel safe.
    pub(crate) async fn revoked(&mut self) {
        // Checked first: access may have changed since the request was authenticated.
        while self.is_valid() {
            tokio::select! {
                changed = self.changes.changed() => if changed.is_err() { return },
                _ = self.ticks.tick() => {}
            }
        }
    }

    fn is_valid(&self) -> bool {
        let is_known = self.app.access.load().is_valid(&self.caller);
        is_known && self.caller.session().is_none_or(|session| self.app.sessions.is_open(session))
    }
}
