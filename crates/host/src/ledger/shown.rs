//! Results that are only shown: pieces of reasoning and of arguments, steps, activities, sub-agents, the client's state.
//!
//! Invariant: pieces of one text are one text for the removal of secrets, whatever comes between them. What is held back
//! is released before any result of another kind.

use super::json::empty_object;
use super::{Intake, Ledger};
use crate::redaction::{Redactor, Stream};
use greenroom_protocol::result::kind;
use greenroom_protocol::{Object, RawResult};
use serde_json::value::to_raw_value;

/// Texts of one run that come in pieces at the same time.
const TEXTS_MAX: usize = 16;

/// The field with the piece of a text, for the types that have one.
fn text_field(result_kind: &str) -> Option<&'static str> {
    match result_kind {
        kind::REASONING_DELTA => Some("text"),
        kind::TOOL_CALL_DELTA => Some("args_text"),
        _ => None,
    }
}

#[derive(Debug, Default)]
pub(super) struct Texts {
    /// The most recent is last.
    open: Vec<Text>,
}

#[derive(Debug)]
struct Text {
    result_kind: &'static str,
    field: &'static str,
    /// The data without its text: the same for all pieces.
    about: Object,
    stream: Stream,
}

impl Texts {
    pub(super) fn refresh(&mut self) {
        self.open.iter_mut().for_each(|text| text.stream.refresh());
    }

    /// The piece without secrets; empty if all of it is held back. None if the result is no piece of a text.
    fn clean(&mut self, result: &RawResult, redactor: &Redactor) -> Option<(Object, String)> {
        let field = text_field(&result.kind)?;
        let result_kind = kind::SHOWN.into_iter().find(|known| *known == result.kind)?;
        let data = result.data.as_ref().map(|data| data.get()).unwrap_or("{}");
        let mut about: Object = serde_json::from_str(data).ok()?;
        let piece = match about.remove(field) {
            Some(serde_json::Value::String(piece)) => piece,
            _ => return None,
        };
        let mut clean = serde_json::Value::Object(about);
        redactor.value(&mut clean);
        let serde_json::Value::Object(about) = clean else { return None };
        let known = self
            .open
            .iter()
            .position(|text| text.result_kind == result_kind && text.about == about);
        match known {
            Some(index) => self.open[index..].rotate_left(1),
            None => {
                let stream = redactor.stream();
                self.open.push(Text { result_kind, field, about: about.clone(), stream });
                // The least recent is not continued: what it holds back may be the beginning of a secret.
                if self.open.len() > TEXTS_MAX {
                    self.open.remove(0);
                }
            }
        }
        let shown = self.open.last_mut()?.stream.push(&piece).into_owned();
        about_with(about, field, shown)
    }

    /// What is held back, as results.
    fn flush(&mut self) -> Vec<(&'static str, Object)> {
        let held = self.open.iter_mut().filter(|text| text.stream.is_holding());
        let flushed = held.map(|text| {
            let mut data = text.about.clone();
            let rest = text.stream.flush();
            let is_empty = rest.is_empty();
            data.insert(text.field.to_owned(), rest.into());
            (!is_empty).then_some((text.result_kind, data))
        });
        flushed.flatten().collect()
    }
}

fn about_with(mut about: Object, field: &str, shown: String) -> Option<(Object, String)> {
    about.insert(field.to_owned(), shown.clone().into());
    Some((about, shown))
}

impl Ledger {
    /// Takes a piece of a text, without the secrets in it; false if the result is something else.
    pub(super) fn take_piece(
        &mut self,
        result: &mut RawResult,
        now_ms: i64,
        intake: &mut Intake,
    ) -> bool {
        let Some((data, shown)) = self.texts.clean(result, &self.terms.redactor) else {
            return false;
        };
        if !shown.is_empty() {
            result.data = to_raw_value(&data).ok();
            self.flush_deltas(now_ms, intake);
            let record = self.number(
                RawResult {
                    run_id: String::new(),
                    kind: result.kind.clone(),
                    data: result.data.take(),
                    sequence: result.sequence,
                    timestamp: result.timestamp,
                    usage: None,
                },
                now_ms,
            );
            self.pending.push(&record);
            intake.held.push(record);
        }
        true
    }

    /// Releases what is held back of texts that come in pieces.
    pub(super) fn flush_texts(&mut self, now_ms: i64, intake: &mut Intake) {
        for (result_kind, data) in self.texts.flush() {
            let data = to_raw_value(&data).unwrap_or_else(|_| empty_object());
            let record = self.host_record(result_kind, data, now_ms);
            self.pending.push(&record);
            intake.held.push(record);
        }
    }
}
