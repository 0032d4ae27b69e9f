//! Wake-ups for the task that serves the outbox.
//!
//! Invariant: a full mailbox loses nothing: the outbox is scanned instead.

use greenroom_store::reads::deliveries::Lane;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// Notes that are kept until they are read.
const NOTES_MAX: usize = 10_000;

#[derive(Default)]
pub(crate) struct Mailbox {
    changed: Notify,
    notes: Mutex<Notes>,
}

#[derive(Default)]
pub(super) struct Notes {
    /// Lanes that have new deliveries.
    pub(super) work: Vec<Lane>,
    /// Lanes to serve now, even if they are paused.
    pub(super) urgent: Vec<Lane>,
    pub(super) serve_all_now: bool,
    /// Notes were dropped because there were too many.
    pub(super) overflowed: bool,
}

impl Mailbox {
    /// Deliveries were stored.
    pub(crate) fn has_work(&self, lanes: impl IntoIterator<Item = Lane>) {
        self.note(|notes| notes.work.extend(lanes));
    }

    /// A user retried or discarded a delivery of this lane.
    pub(crate) fn serve_now(&self, lane: Lane) {
        self.note(|notes| notes.urgent.push(lane));
    }

    /// Surfaces may have changed: every paused lane is tried.
    pub(crate) fn serve_all_now(&self) {
        self.note(|notes| notes.serve_all_now = true);
    }

    pub(super) fn take(&self) -> Notes {
        std::mem::take(&mut *self.lock())
    }

    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }

    fn note(&self, add: impl FnOnce(&mut Notes)) {
        let mut notes = self.lock();
        add(&mut notes);
        if notes.work.len() + notes.urgent.len() > NOTES_MAX {
            let overflowed = notes.overflowed || !notes.work.is_empty();
            // Paused lanes are tried with all others then.
            let serve_all_now = notes.serve_all_now || !notes.urgent.is_empty();
            *notes = Notes { overflowed, serve_all_now, ..Notes::default() };
        }
        drop(notes);
        self.changed.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, Notes> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_mailbox_loses_nothing() {
        let mailbox = Mailbox::default();
        let lane = |name: usize| Lane { surface: "s".to_owned(), target: name.to_string() };
        mailbox.has_work([lane(1)]);
        let notes = mailbox.take();
        assert_eq!((notes.work, notes.overflowed), (vec![lane(1)], false));
        mailbox.has_work((0..NOTES_MAX).map(lane));
        mailbox.serve_now(lane(0));
        let notes = mailbox.take();
        assert!(notes.work.is_empty() && notes.urgent.is_empty());
        assert!(notes.overflowed && notes.serve_all_now);
    }
}
