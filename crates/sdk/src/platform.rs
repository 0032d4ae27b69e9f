//! Actions on the platform: `platform.request_action` (CONTRACT §4).
//!
//! Invariant: a run that waits for a person loses none of its time.

use crate::RunCtx;
use greenroom_protocol::api::platform::{ActionOutcome, RequestActionParams};
use greenroom_protocol::{AgentAPIError, Object};

/// The method `platform.request_action`, for one run.
pub struct PlatformApi<'a>(pub(crate) &'a RunCtx);

impl PlatformApi<'_> {
    /// Asks for an action, such as `message.send`, and waits until it is carried out; where the agent's
    /// policy says `ask`, also until a person has allowed it. A denial is `unauthorized` with
    /// `details.reason` `denied`, `expired` or `not_granted`.
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
