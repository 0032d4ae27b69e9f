//! Text without a `message.completed` becomes one message when its run ends.
//!
//! Invariant: a message larger than a result may be waits until its bytes are stored; it comes before the other
//! deliveries of the run's end.

use super::Ledger;
use crate::artifacts::is_large;
use greenroom_protocol::payload::Message;
use std::borrow::Cow;

/// A message whose bytes have to be stored before it can be committed.
pub(crate) struct Folded {
    pub(crate) message: Message,
    sequence: i64,
    /// Number of deliveries before it.
    deliveries: usize,
}

impl Ledger {
    /// Adds the unfinished text, or the message that the terminal carries.
    pub(super) fn finish_messages(&mut self, message: Option<Message>, sequence: i64) {
        let unfinished = std::mem::take(&mut self.unfinished);
        let message = match message {
            Some(message) if !self.saw_message => message,
            // Text that was separated by other results may be a secret once it is joined.
            _ if !unfinished.is_empty() => match self.terms.redactor.text(&unfinished) {
                Cow::Owned(clean) => Message::assistant(clean),
                Cow::Borrowed(_) => Message::assistant(unfinished),
            },
            _ => return,
        };
        if is_large(&message, self.terms.result_bytes_max) {
            let deliveries = self.changes.deliveries.len();
            self.folded = Some(Folded { message, sequence, deliveries });
        } else {
            self.changes.message(&message, sequence, &self.identity);
        }
    }

    /// The message that has to be made smaller before the next commit.
    pub(crate) fn take_folded(&mut self) -> Option<Folded> {
        self.folded.take()
    }

    /// Puts the message back, now small enough.
    pub(crate) fn put_folded(&mut self, folded: &Folded) {
        let behind = self.changes.deliveries.split_off(folded.deliveries);
        self.changes.message(&folded.message, folded.sequence, &self.identity);
        self.changes.deliveries.extend(behind);
    }
}
