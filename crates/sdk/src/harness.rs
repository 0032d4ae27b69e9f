//! What an external harness may do with its own tools: `harness.permission` (CONTRACT §4).
//!
//! Invariant: the run's deadline is paused while a question waits for its answer.

use crate::RunCtx;
use greenroom_protocol::AgentAPIError;
use greenroom_protocol::api::harness::{HarnessPermission, HarnessPermissionParams};

/// The method `harness.permission`, for one run.
pub struct HarnessApi<'a>(pub(crate) &'a RunCtx);

impl HarnessApi<'_> {
    /// Asks the host whether the harness may do this; waits for a person if the agent's grant says `ask`.
    pub async fn permission(
        &self,
        params: &HarnessPermissionParams,
    ) -> Result<HarnessPermission, AgentAPIError> {
        let _pause = self.0.pause_deadline();
        self.0.ask(params).await
    }
}
