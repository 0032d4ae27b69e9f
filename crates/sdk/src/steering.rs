//! Messages that arrive during the run: `steering.pull` (CONTRACT §4).
//!
//! Invariant: a pulled message is answered by this run; the host starts no run for it.

use crate::RunCtx;
use greenroom_protocol::AgentAPIError;
use greenroom_protocol::api::steering::{SteeringItem, SteeringItems, SteeringPullParams};

/// The method `steering.pull`, for one run.
pub struct SteeringApi<'a>(pub(crate) &'a RunCtx);

impl SteeringApi<'_> {
    /// Takes all pending messages in order of arrival.
    pub async fn pull(&self) -> Result<Vec<SteeringItem>, AgentAPIError> {
        self.pull_with(SteeringPullParams::default()).await
    }

    /// Takes up to `limit` messages.
    pub async fn pull_with(
        &self,
        params: SteeringPullParams,
    ) -> Result<Vec<SteeringItem>, AgentAPIError> {
        let pulled: SteeringItems = self.0.ask(&params).await?;
        Ok(pulled.items)
    }
}
