//! The changes of a run since the last commit.
//!
//! Invariant: committed as a whole or not at all.

use super::effect::Changes;
use greenroom_store::commands::{ApplyResults, Terminal};
use greenroom_store::types::{Chunk, Diagnostic, RunRow};

/// The content of the next commit.
pub(crate) struct Pending {
    pub(crate) chunk: Option<Chunk>,
    pub(crate) reserved_seq: i64,
    pub(crate) changes: Changes,
    pub(super) approvals_pending_max: i64,
    pub(crate) diagnostics: Vec<Diagnostic>,
    pub(crate) terminal: Option<Terminal>,
}

impl Pending {
    /// The command that commits it, on condition that this host still owns the run.
    pub(crate) fn into_command(
        self,
        run: &RunRow,
        epoch_now: i64,
        isolation: Option<String>,
        now_ms: i64,
    ) -> ApplyResults {
        ApplyResults {
            fence: run.fence(),
            epoch_now,
            conversation_id: run.conversation_id.clone(),
            chunk: self.chunk,
            reserved_seq: self.reserved_seq,
            effects: self.changes.effects,
            isolation,
            state: self.changes.state,
            items: self.changes.items,
            deliveries: self.changes.deliveries,
            artifacts: Vec::new(),
            approvals: self.changes.approvals,
            approvals_pending_max: self.approvals_pending_max,
            diagnostics: self.diagnostics,
            log: self.changes.log,
            terminal: self.terminal,
            now_ms,
        }
    }
}
