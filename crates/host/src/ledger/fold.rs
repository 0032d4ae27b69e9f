//! Texts without a `message.completed` become messages when their run ends.
//!
//! Invariant: everything that readers were shown is in the transcript and in the deliveries; the end's own message
//! is left out only if the run has completed the same content before. Messages of the end wait together until their
//! bytes are stored if one of them is larger than a result may be; they come before the other deliveries of the end.

use super::Ledger;
use crate::artifacts::is_large;
use greenroom_protocol::payload::Message;
use sha2::{Digest, Sha256};
use std::borrow::Cow;

/// Messages of which some have to be stored as bytes before they can be committed.
pub(crate) struct Folded {
    pub(crate) messages: Vec<Message>,
    sequence: i64,
    /// Number of deliveries before them.
    deliveries: usize,
}

impl Ledger {
    /// Adds the unfinished texts and the message that the terminal carries.
    pub(super) fn finish_messages(&mut self, message: Option<Message>, sequence: i64) {
        let message = message.filter(|message| !self.completed.contains(&content_hash(message)));
        let mut messages = self.unfinished.finish(message);
        for message in &mut messages {
            self.clean_joined(message);
        }
        let bytes_max = self.terms.result_bytes_max;
        if messages.iter().any(|message| is_large(message, bytes_max)) {
            let deliveries = self.changes.deliveries.len();
            self.folded = Some(Folded { messages, sequence, deliveries });
            return;
        }
        for message in &messages {
            self.changes.message(message, sequence, &self.identity);
        }
    }

    /// Text that was separated by other results may be a secret once it is joined.
    fn clean_joined(&self, message: &mut Message) {
        if let greenroom_protocol::MessageContent::Text(text) = &mut message.content
            && let Cow::Owned(clean) = self.terms.redactor.text(text)
        {
            *text = clean;
        }
    }

    /// The messages that have to be made smaller before the next commit.
    pub(crate) fn take_folded(&mut self) -> Option<Folded> {
        self.folded.take()
    }

    /// Puts the messages back, now small enough.
    pub(crate) fn put_folded(&mut self, folded: &Folded) {
        let behind = self.changes.deliveries.split_off(folded.deliveries);
        for message in &folded.messages {
            self.changes.message(message, folded.sequence, &self.identity);
        }
        self.changes.deliveries.extend(behind);
    }
}

/// By what a message is recognised that was completed before.
pub(super) fn content_hash(message: &Message) -> [u8; 32] {
    let content = serde_json::to_vec(&(&message.role, &message.content)).unwrap_or_default();
    Sha256::digest(content).into()
}
