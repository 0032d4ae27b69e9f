//! Redacts a text that comes in pieces.
//!
//! Invariant: the output, concatenated, is the text without its secrets, however it was cut. An end that may be
//! the beginning of a secret is held back until that is decided.

use super::scan::{Rules, Scan};
use super::{MARK, Redactor};
use std::borrow::Cow;
use std::sync::Arc;

pub struct Stream {
    redactor: Redactor,
    rules: Arc<Rules>,
    scan: Scan,
    /// Read, but not emitted.
    held: Vec<u8>,
    /// The position up to which an emitted mark replaces the text.
    marked: Option<usize>,
}

/// Shows nothing of what it holds back.
impl std::fmt::Debug for Stream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Stream(…)")
    }
}

impl Stream {
    pub(super) fn new(redactor: Redactor) -> Self {
        let rules = redactor.rules();
        Self { redactor, rules, scan: Scan::default(), held: Vec::new(), marked: None }
    }

    /// Uses the current set of secrets from now on.
    pub fn refresh(&mut self) {
        if self.redactor.has_changed_from(&self.rules) {
            self.rules = self.redactor.rules();
            self.scan.again_from(self.scan.at - self.held.len());
            self.scan.read(&self.rules, &self.held);
        }
    }

    /// Adds a piece and emits what is decided: the piece itself if nothing is held back.
    pub fn push<'a>(&mut self, piece: &'a str) -> Cow<'a, str> {
        self.scan.read(&self.rules, piece.as_bytes());
        let safe = self.scan.safe(&self.rules);
        if self.held.is_empty() && self.scan.found.is_empty() && safe == self.scan.at {
            return Cow::Borrowed(piece);
        }
        self.held.extend_from_slice(piece.as_bytes());
        Cow::Owned(self.give(safe))
    }

    /// The same for bytes of any kind.
    pub fn push_bytes(&mut self, piece: &[u8]) -> Vec<u8> {
        self.scan.read(&self.rules, piece);
        let safe = self.scan.safe(&self.rules);
        self.held.extend_from_slice(piece);
        self.give_bytes(safe)
    }

    /// What is held back at the end of bytes of any kind.
    pub fn flush_bytes(&mut self) -> Vec<u8> {
        self.scan.interrupt(&self.rules);
        self.give_bytes(self.scan.at)
    }

    /// Whether something is held back.
    pub fn is_holding(&self) -> bool {
        !self.held.is_empty()
    }

    /// Emits what is held back because something else comes next. What is likely to be a secret is not emitted,
    /// and its rest is still detected when the text continues.
    pub fn flush(&mut self) -> String {
        self.scan.interrupt(&self.rules);
        self.give(self.scan.at)
    }

    fn give(&mut self, safe: usize) -> String {
        String::from_utf8_lossy(&self.give_bytes(safe)).into_owned()
    }

    fn give_bytes(&mut self, safe: usize) -> Vec<u8> {
        let base = self.scan.at - self.held.len();
        // What was emitted at an interruption is not emitted again.
        let safe = safe.max(base);
        let mut at = base.max(self.marked.unwrap_or(base));
        let mut out = Vec::new();
        let decided = self.scan.found.partition_point(|found| found.start < safe);
        for found in self.scan.found.drain(..decided) {
            // A range adjacent to the one before shares its mark, unless something was emitted since.
            if self.marked.is_none_or(|marked| found.start > marked || base > marked) {
                let start = found.start.max(at);
                out.extend_from_slice(&self.held[at - base..start - base]);
                out.extend_from_slice(MARK.as_bytes());
            }
            self.marked = self.marked.max(Some(found.end));
            at = at.max(found.end);
        }
        if at < safe {
            out.extend_from_slice(&self.held[at - base..safe - base]);
        }
        self.held.drain(..safe - base);
        out
    }
}
