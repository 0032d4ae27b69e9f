//! Removes secrets from the texts of deltas.
//!
//! Invariant: each message is one text, however it is split and whatever comes between its deltas. Text that is
//! held back is released before any other result.

use super::json::empty_object;
use super::{Intake, Ledger};
use crate::redaction::{Redactor, Stream};
use greenroom_protocol::payload::{DeltaRef, MessageChunk, MessageDelta};
use greenroom_protocol::result::kind;
use greenroom_protocol::{RawResult, Role};
use greenroom_store::chunk::Delta;
use greenroom_store::types::ResultRecord;
use serde_json::value::{RawValue, to_raw_value};
use std::borrow::Cow;

/// Messages of one run that are streamed at the same time.
const MESSAGES_MAX: usize = 16;

impl Ledger {
    pub(super) fn take_delta(&mut self, result: RawResult, now_ms: i64, intake: &mut Intake) {
        let mut record = self.unnumbered(result, now_ms);
        let delta = match DeltaRef::parse(record.data.get()) {
            Ok(delta) => delta,
            Err(error) => return self.note("invalid_result", &error.to_string(), now_ms),
        };
        if !self.may_speak(kind::MESSAGE_DELTA, delta.role, now_ms) {
            return;
        }
        let (before, changed) = self.deltas.clean(&delta, &record.data);
        for delta in before {
            self.release_delta(&delta, now_ms, intake);
        }
        record.sequence = self.next_number();
        match changed {
            None => self.keep_delta(&record, &delta),
            Some(data) => {
                record.data = data;
                if let Ok(delta) = DeltaRef::parse(record.data.get()) {
                    self.keep_delta(&record, &delta);
                }
            }
        }
        self.show_delta(record, intake);
    }

    /// Releases the text of deltas that is held back.
    pub(super) fn flush_deltas(&mut self, now_ms: i64, intake: &mut Intake) {
        for delta in self.deltas.flush() {
            self.release_delta(&delta, now_ms, intake);
        }
    }

    fn release_delta(&mut self, delta: &MessageDelta, now_ms: i64, intake: &mut Intake) {
        let data = to_raw_value(delta).unwrap_or_else(|_| empty_object());
        let record = self.host_record(kind::MESSAGE_DELTA, data, now_ms);
        if let Ok(delta) = DeltaRef::parse(record.data.get()) {
            self.keep_delta(&record, &delta);
        }
        self.show_delta(record, intake);
    }

    fn keep_delta(&mut self, record: &ResultRecord, delta: &DeltaRef<'_>) {
        self.unfinished.push(delta);
        if delta.has_more {
            return self.pending.push(record);
        }
        self.pending.push_delta(Delta {
            sequence: record.sequence,
            role: delta.role,
            message_id: delta.message_id.as_deref(),
            text: &delta.content,
            at_ms: record.at_ms,
            runner_sequence: record.runner_sequence,
            runner_timestamp: record.runner_timestamp,
        });
    }

    fn show_delta(&self, record: ResultRecord, intake: &mut Intake) {
        if intake.held.is_empty() && record.sequence <= self.reserved_seq {
            intake.live.push(record);
        } else {
            intake.held.push(record);
        }
    }
}

#[derive(Debug)]
pub(super) struct Deltas {
    redactor: Redactor,
    /// The most recent is last.
    messages: Vec<Streamed>,
}

#[derive(Debug)]
struct Streamed {
    role: Role,
    message_id: Option<String>,
    id_is_clean: bool,
    text: Stream,
}

impl Deltas {
    pub(super) fn new(redactor: Redactor) -> Self {
        Self { redactor, messages: Vec::new() }
    }

    /// Applies secrets that became known since.
    pub(super) fn refresh(&mut self) {
        self.messages.iter_mut().for_each(|message| message.text.refresh());
    }

    /// The data of a delta, rewritten if it contained a secret, and what has to be published before it.
    pub(super) fn clean(
        &mut self,
        delta: &DeltaRef<'_>,
        data: &RawValue,
    ) -> (Vec<MessageDelta>, Option<Box<RawValue>>) {
        if delta.replace {
            // Held back text of the message is replaced as well.
            let id = delta.message_id.as_deref();
            let is_others = |message: &Streamed| {
                message.message_id.is_some() && message.message_id.as_deref() != id
            };
            self.messages.retain(is_others);
        }
        let before = self.touch(delta);
        let Some(message) = self.messages.last_mut() else { return (before, None) };
        let content = message.text.push(&delta.content);
        let more = delta.has_more.then(|| self.redactor.json(data)).flatten();
        if matches!(content, Cow::Borrowed(_)) && message.id_is_clean && more.is_none() {
            return (before, None);
        }
        let mut value: serde_json::Value =
            serde_json::from_str(data.get()).unwrap_or_else(|_| serde_json::json!({"chunk": {}}));
        self.redactor.value(&mut value);
        value["chunk"]["content"] = content.into();
        (before, to_raw_value(&value).ok())
    }

    /// The held back text of all messages.
    pub(super) fn flush(&mut self) -> Vec<MessageDelta> {
        let redactor = &self.redactor;
        self.messages.iter_mut().filter_map(|message| message.flush(redactor)).collect()
    }

    /// Makes the delta's message the most recent; the least recent may be dropped.
    fn touch(&mut self, delta: &DeltaRef<'_>) -> Vec<MessageDelta> {
        let is_its =
            |message: &Streamed| message.message_id.as_deref() == delta.message_id.as_deref();
        if self.messages.last().is_some_and(is_its) {
            return Vec::new();
        }
        if let Some(index) = self.messages.iter().position(is_its) {
            self.messages[index..].rotate_left(1);
            return Vec::new();
        }
        let message_id = delta.message_id.as_deref().map(str::to_owned);
        let id = message_id.as_deref().unwrap_or_default();
        let id_is_clean = matches!(self.redactor.text(id), Cow::Borrowed(_));
        let text = self.redactor.stream();
        self.messages.push(Streamed { role: delta.role, message_id, id_is_clean, text });
        if self.messages.len() <= MESSAGES_MAX {
            return Vec::new();
        }
        self.messages.remove(0).flush(&self.redactor).into_iter().collect()
    }
}

impl Streamed {
    fn flush(&mut self, redactor: &Redactor) -> Option<MessageDelta> {
        if !self.text.is_holding() {
            return None;
        }
        let content = self.text.flush();
        let message_id = self.message_id.as_deref().map(|id| redactor.text(id).into_owned());
        let chunk = MessageChunk { role: self.role, content, message_id, replace: false };
        (!chunk.content.is_empty()).then_some(MessageDelta { chunk })
    }
}
