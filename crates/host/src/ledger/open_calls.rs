//! Calls of the client's tools: the client answers them after the run.
//!
//! Invariant: only a tool that the client of the run's own event offers is one of its tools.

use super::Ledger;
use greenroom_protocol::payload::ToolCallStarted;

/// Calls of the client's tools that one run may leave open.
const OPEN_CALLS_MAX: usize = 64;

impl Ledger {
    /// A call of a tool of the client, which answers it after the run.
    pub(super) fn call_opened(&mut self, call: &ToolCallStarted) {
        let is_known = |open: &ToolCallStarted| open.tool_call_id == call.tool_call_id;
        let is_of_client = self.identity.client_tools.contains(&call.tool_name);
        let has_room = self.open_calls.len() < OPEN_CALLS_MAX;
        if is_of_client && has_room && !self.open_calls.iter().any(is_known) {
            self.open_calls.push(call.clone());
        }
    }
}
