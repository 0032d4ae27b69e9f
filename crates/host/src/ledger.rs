//! Takes in a run's results: numbers and checks them, and collects what has to be committed.
//!
//! Invariant: no IO, but fresh ids and addresses of files. Numbers are unique and increase over all attempts. Deltas within the
//! reserved numbers may be published at once; everything after the first other result waits for its commit.
//! Secrets are removed before a result is numbered or recorded.

mod deltas;
mod effect;
mod fold;
mod json;
mod notes;
mod open_calls;
mod pending;
mod shown;
mod unfinished;

pub(crate) use effect::StateRights;
pub(crate) use fold::Folded;
pub(crate) use pending::Pending;
pub(crate) use unfinished::Unfinished;

use crate::actions::ActionRights;
use crate::context::Identity;
use crate::live::ToolCalls;
use crate::redaction::Redactor;
use deltas::Deltas;
use effect::Changes;
use greenroom_protocol::error::run_code;
use greenroom_protocol::payload::{Message, MessageCompleted, Payload, ToolCallStarted};
use greenroom_protocol::result::kind;
use greenroom_protocol::{RawResult, Role, RunError, RunStatus};
use greenroom_store::chunk::ChunkBuilder;
use greenroom_store::commands::Terminal;
use greenroom_store::types::{Diagnostic, ResultRecord};
use json::{complete_failure, empty_object, is_object, one_line};
use serde_json::value::{RawValue, to_raw_value};
use shown::Texts;
use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;

/// Numbers reserved with each commit.
const RESERVE_AHEAD: i64 = 65_536;
/// Numbers a new run has before its first commit.
pub(crate) const RESERVE_FIRST: i64 = 1024;
/// Text of deltas that may wait for its `message.completed`.
const UNFINISHED_BYTES_MAX: usize = 16 << 20;

pub(crate) struct Ledger {
    identity: Arc<Identity>,
    terms: Terms,
    deltas: Deltas,
    texts: Texts,
    /// Calls of the client's tools without a result so far.
    open_calls: Vec<ToolCallStarted>,
    next_seq: i64,
    reserved_seq: i64,
    runner_seq: Option<i64>,
    pending: ChunkBuilder,
    changes: Changes,
    diagnostics: Vec<Diagnostic>,
    diagnostics_count: usize,
    /// Texts of deltas without a `message.completed` so far.
    unfinished: Unfinished,
    /// The messages made of them, if one is large.
    folded: Option<Folded>,
    /// The contents of completed messages, as hashes.
    completed: HashSet<[u8; 32]>,
    terminal: Option<Terminal>,
}

/// The rights and limits of a run's results.
#[derive(Debug, Clone, Default)]
pub(crate) struct Terms {
    pub(crate) state: StateRights,
    pub(crate) actions: ActionRights,
    pub(crate) result_bytes_max: usize,
    pub(crate) redactor: Redactor,
    pub(crate) tool_calls: Arc<ToolCalls>,
}

/// The outcome of a batch of results.
#[derive(Default)]
pub(crate) struct Intake {
    /// Deltas to publish now.
    pub(crate) live: Vec<ResultRecord>,
    /// Results to publish once they are stored.
    pub(crate) held: Vec<ResultRecord>,
}

impl Ledger {
    pub(crate) fn new(
        identity: Arc<Identity>,
        terms: Terms,
        (last_seq, reserved_seq): (i64, i64),
    ) -> Self {
        Self {
            identity,
            deltas: Deltas::new(terms.redactor.clone()),
            terms,
            texts: Texts::default(),
            open_calls: Vec::new(),
            next_seq: last_seq + 1,
            reserved_seq,
            runner_seq: None,
            pending: ChunkBuilder::default(),
            changes: Changes::default(),
            diagnostics: Vec::new(),
            diagnostics_count: 0,
            unfinished: Unfinished::default(),
            folded: None,
            completed: HashSet::new(),
            terminal: None,
        }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.terminal.is_some()
    }

    /// The runner exceeded a limit and may still be sending.
    pub(crate) fn has_overflowed(&self) -> bool {
        let error = self.terminal.as_ref().and_then(|terminal| terminal.error.as_ref());
        error.is_some_and(|error| error.code == run_code::OVERFLOW)
    }

    pub(crate) fn unstored_bytes(&self) -> usize {
        self.pending.bytes()
    }

    /// Takes in results of the runner, in order.
    pub(crate) fn take_in(&mut self, results: Vec<RawResult>, now_ms: i64) -> Intake {
        let mut intake = Intake::default();
        self.deltas.refresh();
        self.texts.refresh();
        for result in results {
            if self.is_over() {
                let text = format!("`{}` arrived after the end", result.kind);
                self.note("after_terminal", &text, now_ms);
            } else if self.is_repeated(&result) {
                let number = result.sequence.unwrap_or_default();
                let text = format!("`{}` repeats sequence {number}", result.kind);
                self.note("duplicate", &text, now_ms);
            } else if let Some(message) = self.oversized(&result) {
                let end = crate::run::failure(run_code::OVERFLOW, message, false);
                intake.held.extend(self.end(RunStatus::Failed, end, now_ms));
            } else {
                self.take_one(result, now_ms, &mut intake);
            }
        }
        intake
    }

    fn take_one(&mut self, mut result: RawResult, now_ms: i64, intake: &mut Intake) {
        if result.kind == kind::MESSAGE_DELTA {
            return self.take_delta(result, now_ms, intake);
        }
        if self.take_piece(&mut result, now_ms, intake) {
            return;
        }
        self.clean(&mut result);
        let data = result.data.as_deref().map(RawValue::get);
        let payload = match Payload::parse(&result.kind, data) {
            Ok(payload) => payload,
            Err(error) => return self.note("invalid_result", &error.to_string(), now_ms),
        };
        if let Err(reason) = effect::check(&payload, &self.identity, &self.terms.state) {
            return self.note("refused_result", &reason, now_ms);
        }
        self.flush_deltas(now_ms, intake);
        self.flush_texts(now_ms, intake);
        let mut record = self.number(result, now_ms);
        match &payload {
            Payload::ToolCallStarted(call) => self.call_opened(call),
            Payload::ToolCallCompleted(done) => {
                self.open_calls.retain(|call| call.tool_call_id != done.tool_call_id);
            }
            Payload::RunCompleted(completed) => {
                let message = completed.message.clone();
                let message =
                    message.filter(|said| self.may_speak(kind::RUN_COMPLETED, said.role, now_ms));
                self.finish_messages(message, record.sequence);
                for call in std::mem::take(&mut self.open_calls) {
                    self.changes.pending_call(&call, &self.identity);
                }
                self.terminal = Some(Terminal {
                    status: RunStatus::Completed,
                    error: None,
                    usage: record.usage.as_ref().map(|usage| usage.get().into()),
                });
            }
            Payload::RunFailed(failed) => {
                let error = RunError {
                    code: failed.code.clone(),
                    message: failed.text().to_owned(),
                    retryable: failed.retryable,
                };
                record.data = complete_failure(&record.data, &error);
                self.finish_messages(None, record.sequence);
                self.fail(crate::run::status_of(&error.code), error, &record);
            }
            Payload::Unknown if !kind::SHOWN.contains(&record.kind.as_ref()) => {
                let text = format!("`{}` is not a known result type", record.kind);
                self.note("unknown_type", &text, now_ms);
            }
            _ => {}
        }
        if let Payload::MessageCompleted(completed) = &payload {
            self.unfinished.complete(completed.message.message_id.as_deref());
            self.completed.insert(fold::content_hash(&completed.message));
        }
        self.changes.apply(payload, &record, &self.identity, &self.terms);
        for reason in std::mem::take(&mut self.changes.refused) {
            self.note("refused_result", &reason, now_ms);
        }
        self.pending.push(&record);
        intake.held.push(record);
    }

    /// Ends the run by the host; returns the results to publish, the terminal last.
    pub(crate) fn end(
        &mut self,
        status: RunStatus,
        mut error: RunError,
        now_ms: i64,
    ) -> Vec<ResultRecord> {
        let mut intake = Intake::default();
        self.flush_deltas(now_ms, &mut intake);
        self.flush_texts(now_ms, &mut intake);
        error.message = self.terms.redactor.quote(&error.message);
        let data = to_raw_value(&error).unwrap_or_else(|_| RawValue::NULL.to_owned());
        let record = self.host_record(kind::RUN_FAILED, data, now_ms);
        self.finish_messages(None, record.sequence);
        self.fail(status, error, &record);
        self.pending.push(&record);
        // Stored before they are published, as the terminal after them is.
        intake.live.into_iter().chain(intake.held).chain([record]).collect()
    }

    /// Ends a run whose host stopped. Readers may have seen more of unfinished messages than is stored: a
    /// `message.completed` by the host for each says which text is valid; without any, an empty one. `stored` is free
    /// of secrets and small enough.
    pub(crate) fn end_interrupted(
        &mut self,
        mut stored: Vec<Message>,
        (status, error): (RunStatus, RunError),
        now_ms: i64,
    ) {
        if stored.is_empty() {
            stored.push(Message::assistant(String::new()));
        }
        for mut message in stored {
            message.metadata.get_or_insert_default().insert("interrupted".to_owned(), true.into());
            let completed = MessageCompleted { message };
            let data = to_raw_value(&completed).unwrap_or_else(|_| empty_object());
            let record = self.host_record(kind::MESSAGE_COMPLETED, data, now_ms);
            self.pending.push(&record);
            if !completed.message.content.text().is_empty() {
                self.changes.message(&completed.message, record.sequence, &self.identity);
            }
        }
        self.end(status, error, now_ms);
    }

    /// Whether a runner may speak in this role; a refusal is recorded.
    fn may_speak(&mut self, result_kind: &str, role: Role, now_ms: i64) -> bool {
        let reason = effect::check_role(result_kind, role).err();
        if let Some(reason) = &reason {
            self.note("refused_result", reason, now_ms);
        }
        reason.is_none()
    }

    /// Takes everything since the last commit.
    pub(crate) fn commit(&mut self) -> Pending {
        self.reserved_seq = self.reserved_seq.max(self.next_seq - 1 + self.ahead());
        Pending {
            chunk: self.pending.take(),
            reserved_seq: self.reserved_seq,
            changes: std::mem::take(&mut self.changes),
            approvals_pending_max: self.terms.actions.pending_max,
            diagnostics: std::mem::take(&mut self.diagnostics),
            terminal: self.terminal.clone(),
        }
    }

    fn ahead(&self) -> i64 {
        if self.is_over() || self.next_seq <= RESERVE_FIRST / 2 { 0 } else { RESERVE_AHEAD }
    }

    fn is_repeated(&mut self, result: &RawResult) -> bool {
        let Some(sequence) = result.sequence else { return false };
        let repeated = self.runner_seq.is_some_and(|last| sequence <= last);
        if !repeated {
            self.runner_seq = Some(sequence);
        }
        repeated
    }

    /// Why a result is too large, if it is.
    fn oversized(&self, result: &RawResult) -> Option<String> {
        let length =
            |part: &Option<Box<RawValue>>| part.as_ref().map_or(0, |part| part.get().len());
        let bytes = length(&result.data) + length(&result.usage);
        let max = self.terms.result_bytes_max;
        if bytes > max {
            return Some(format!(
                "a result of {bytes} bytes is larger than the {max} bytes allowed"
            ));
        }
        let waiting = self.unfinished.bytes() + bytes;
        (result.kind == kind::MESSAGE_DELTA && waiting > UNFINISHED_BYTES_MAX).then(|| {
            format!(
                "more than {UNFINISHED_BYTES_MAX} bytes of deltas without a `message.completed`"
            )
        })
    }

    /// Removes secrets from a result before anything acts on it.
    fn clean(&self, result: &mut RawResult) {
        let redactor = &self.terms.redactor;
        if let Some(clean) = result.data.as_ref().and_then(|data| redactor.json(data)) {
            result.data = Some(clean);
        }
        if let Cow::Owned(clean) = redactor.text(&result.kind) {
            result.kind = clean;
        }
    }

    fn number(&mut self, result: RawResult, now_ms: i64) -> ResultRecord {
        let mut record = self.unnumbered(result, now_ms);
        record.sequence = self.next_number();
        record
    }

    fn unnumbered(&self, result: RawResult, now_ms: i64) -> ResultRecord {
        let usage = result.usage.filter(|usage| is_object(usage)).map(one_line);
        ResultRecord {
            sequence: 0,
            kind: known_kind(result.kind),
            data: one_line(result.data.unwrap_or_else(empty_object)),
            at_ms: now_ms,
            runner_sequence: result.sequence,
            runner_timestamp: result.timestamp,
            usage: usage.map(|usage| self.terms.redactor.json(&usage).unwrap_or(usage)),
        }
    }

    fn host_record(
        &mut self,
        result_kind: &'static str,
        data: Box<RawValue>,
        now_ms: i64,
    ) -> ResultRecord {
        ResultRecord {
            sequence: self.next_number(),
            kind: Cow::Borrowed(result_kind),
            data,
            at_ms: now_ms,
            runner_sequence: None,
            runner_timestamp: None,
            usage: None,
        }
    }

    fn next_number(&mut self) -> i64 {
        let sequence = self.next_seq;
        self.next_seq += 1;
        sequence
    }

    fn fail(&mut self, status: RunStatus, error: RunError, record: &ResultRecord) {
        self.changes.failed(&error, record, &self.identity);
        let usage = record.usage.as_ref().map(|usage| usage.get().into());
        self.terminal = Some(Terminal { status, error: Some(error), usage });
    }
}

fn known_kind(text: String) -> Cow<'static, str> {
    kind::STABLE
        .iter()
        .chain(&kind::SHOWN)
        .find(|known| **known == text)
        .map_or(Cow::Owned(text), |k| Cow::Borrowed(k))
}

#[cfg(test)]
mod tests;
