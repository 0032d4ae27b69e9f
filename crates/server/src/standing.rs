//! Whether whoever opened a stream may still listen.
//!
//! Invariant: a stream ends at once when its caller signs out or its token is taken away, and soon after its
//! session has run out.

use crate::access::Caller;
use crate::router::App;
use crate::stream::KEEP_ALIVE;
use tokio::sync::watch;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

pub(crate) struct Standing {
    app: App,
    token: [u8; 32],
    session: Option<[u8; 32]>,
    changes: watch::Receiver<()>,
    ticks: Interval,
}

impl Standing {
    pub(crate) fn of(app: &App, caller: &Caller) -> Self {
        let changes = app.sessions.changes();
        let mut ticks = interval_at(Instant::now() + KEEP_ALIVE, KEEP_ALIVE);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (token, session) = (*caller.token(), caller.session().copied());
        Self { app: app.clone(), token, session, changes, ticks }
    }

    /// Waits until the caller is nobody any more. May be dropped and asked again.
    pub(crate) async fn lost(&mut self) {
        // First of all: something may have changed since the caller was let in.
        while self.holds() {
            tokio::select! {
                changed = self.changes.changed() => if changed.is_err() { return },
                _ = self.ticks.tick() => {}
            }
        }
    }

    fn holds(&self) -> bool {
        let is_known = self.app.access.load().caller(&self.token).is_some();
        is_known && self.session.is_none_or(|session| self.app.sessions.is_open(&session))
    }
}
