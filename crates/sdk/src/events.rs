//! The event log: `events.*` (CONTRACT §4).
//!
//! Invariant: no state between calls.

use crate::RunCtx;
use greenroom_protocol::AgentAPIError;
use greenroom_protocol::api::events::{EventGetParams, EventPage, EventPageParams, EventView};

/// The methods `events.*`, for one run.
pub struct EventsApi<'a>(pub(crate) &'a RunCtx);

impl EventsApi<'_> {
    /// One event; `not_found` if it does not exist or is not visible to the run.
    pub async fn get(&self, event_id: impl Into<String>) -> Result<EventView, AgentAPIError> {
        self.0.ask(&EventGetParams { event_id: event_id.into() }).await
    }

    /// One page of the log, newest first: messages, tool calls, deliveries and the host's own events.
    pub async fn page(&self, params: EventPageParams) -> Result<EventPage, AgentAPIError> {
        self.0.ask(&params).await
    }
}
