//! Messages that come while the run is going on: `steering.pull` (CONTRACT §4).
//!
//! Invariant: what was pulled is answered by this run; the host gives it no run of its own.

use crate::RunCtx;
use greenroom_protocol::AgentAPIError;
use greenroom_protocol::api::steering::{SteeringItem, SteeringItems, SteeringPullParams};

/// The method `steering.pull`, for one run.
pub struct SteeringApi<'a>(pub(crate) &'a RunCtx);

impl SteeringApi<'_> {
    /// Takes all messages that wait, in the order in which they came; empty when there are none.
    pub async fn pull(&self) -> Result<Vec<SteeringItem>, AgentAPIError> {
        self.pull_with(SteeringPullParams::default()).await
    }

    /// Takes at most so many.
    pub async fn pull_with(
        &self,
        params: SteeringPullParams,
    ) -> Result<Vec<SteeringItem>, AgentAPIError> {
        let pulled: SteeringItems = self.0.ask(&params).await?;
        Ok(pulled.items)
    }
}
