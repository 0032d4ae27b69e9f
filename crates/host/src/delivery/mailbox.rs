//! What the rest of the host tells the task that serves the outbox.
//!
//! Invariant: nothing is lost by a full mailbox; the outbox is then read instead.

use greenroom_store::reads::deliveries::Lane;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// Notes that are kept between two looks.
const NOTES_MAX: usize = 10_000;

#[derive(Default)]
pub(crate) struct Mailbox {
    news: Notify,
    notes: Mutex<Notes>,
}

#[derive(Default)]
pub(super) struct Notes {
    /// Lanes that have new deliveries.
    pub(super) work: Vec<Lane>,
    /// Lanes that are to be served now, whatever they wait for.
    pub(super) hurried: Vec<Lane>,
    pub(super) hurry_all: bool,
    /// There were more notes than fit.
    pub(super) overflowed: bool,
}

impl Mailbox {
    /// To be called once deliveries are stored.
    pub(crate) fn has_work(&self, lanes: impl IntoIterator<Item = Lane>) {
        self.note(|notes| notes.work.extend(lanes));
    }

    /// A delivery of this lane was sent again or discarded by somebody.
    pub(crate) fn hurry(&self, lane: Lane) {
        self.note(|notes| notes.hurried.push(lane));
    }

    /// Surfaces may have changed: whatever waits is tried now.
    pub(crate) fn hurry_all(&self) {
        self.note(|notes| notes.hurry_all = true);
    }

    pub(super) fn take(&self) -> Notes {
        std::mem::take(&mut *self.lock())
    }

    pub(super) async fn news(&self) {
        self.news.notified().await;
    }

    fn note(&self, add: impl FnOnce(&mut Notes)) {
        let mut notes = self.lock();
        add(&mut notes);
        if notes.work.len() + notes.hurried.len() > NOTES_MAX {
            let overflowed = notes.overflowed || !notes.work.is_empty();
            // A lane that is hurried is tried with all others then.
            let hurry_all = notes.hurry_all || !notes.hurried.is_empty();
            *notes = Notes { overflowed, hurry_all, ..Notes::default() };
        }
        drop(notes);
        self.news.notify_one();
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
        mailbox.hurry(lane(0));
        let notes = mailbox.take();
        assert!(notes.work.is_empty() && notes.hurried.is_empty());
        assert!(notes.overflowed && notes.hurry_all);
    }
}
