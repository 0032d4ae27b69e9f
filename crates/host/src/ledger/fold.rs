//! Text that no `message.completed` took in becomes one message when its run ends.
//!
//! Invariant: a message that is more than a result may hold waits until its bytes are kept; it stands before
//! what else the end of the run delivers.

use super::Ledger;
use crate::artifacts::is_large;
use greenroom_protocol::payload::Message;

/// A message whose bytes have to be kept before it can be committed.
pub(crate) struct Folded {
    pub(crate) message: Message,
    sequence: i64,
    /// Deliveries that come before it.
    deliveries: usize,
}

impl Ledger {
    /// What was said and not finished, or what the end of the run says itself.
    pub(super) fn finish_messages(&mut self, message: Option<Message>, sequence: i64) {
        let unfinished = std::mem::take(&mut self.unfinished);
        let message = match message {
            Some(message) if !self.saw_message => message,
            // What other results stood between may be a secret once it is put together.
            _ if !unfinished.is_empty() => {
                Message::assistant(self.terms.redactor.text(&unfinished).into_owned())
            }
            _ => return,
        };
        if is_large(&message, self.terms.result_bytes_max) {
            let deliveries = self.changes.deliveries.len();
            self.folded = Some(Folded { message, sequence, deliveries });
        } else {
            self.changes.message(&message, sequence, &self.identity);
        }
    }

    /// The message that has to become smaller before the next commit.
    pub(crate) fn take_folded(&mut self) -> Option<Folded> {
        self.folded.take()
    }

    /// Takes in what was taken out, now small enough.
    pub(crate) fn put_folded(&mut self, folded: &Folded) {
        let behind = self.changes.deliveries.split_off(folded.deliveries);
        self.changes.message(&folded.message, folded.sequence, &self.identity);
        self.changes.deliveries.extend(behind);
    }
}
