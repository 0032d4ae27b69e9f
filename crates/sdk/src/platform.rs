//! Actions on the platform: `platform.request_action` (CONTRACT §4).
//!
//! Invariant: the run's deadline is paused while an action waits for approval.

use crate::RunCtx;
use greenroom_protocol::api::platform::{ActionOutcome, RequestActionParams};
use greenroom_protocol::{AgentAPIError, Object};

/// The method `platform.request_action`, for one run.
pub struct PlatformApi<'a>(pub(crate) &'a RunCtx);

impl PlatformApi<'_> {
    /// Requests an action, such as `message.send`, and waits until it is done; if the agent's policy is `ask`, also
    /// until it is approved. A denial is `unauthorized` with `details.reason` `denied`, `expired` or
    /// `not_granted`.
    pub async fn request_action(
        &self,
        action: impl Into<String>,
        target: Object,
        payload: Object,
    ) -> Result<ActionOutcome, AgentAPIError> {
        let _pause = self.0.pause_deadline();
        self.0.ask(&RequestActionParams { action: action.into(), target, payload }).await
    }
}
