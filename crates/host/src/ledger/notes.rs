//! What is recorded of a run beside its results.
//!
//! Invariant: a note takes no number, and the first ones of a run are kept.

use super::Ledger;
use greenroom_store::types::Diagnostic;

/// Diagnostics kept of one run.
const DIAGNOSTICS_MAX: usize = 100;

impl Ledger {
    /// Records something that gets no number.
    pub(crate) fn note(&mut self, note_kind: &str, message: &str, now_ms: i64) {
        self.diagnostics_count += 1;
        if self.diagnostics_count <= DIAGNOSTICS_MAX {
            let message = self.terms.redactor.text(message);
            self.diagnostics.push(Diagnostic {
                kind: note_kind.to_owned(),
                message: message.chars().filter(|c| *c != '\0').take(1000).collect(),
                created_at: now_ms,
            });
        }
    }

    pub(crate) fn take_diagnostics(&mut self) -> Vec<Diagnostic> {
        std::mem::take(&mut self.diagnostics)
    }
}
