//! The event log: `events.*` (CONTRACT §4).
//!
//! Invariant: nothing is kept between calls.

use crate::RunCtx;
use greenroom_protocol::AgentAPIError;
use greenroom_protocol::api::events::{EventGetParams, EventPage, EventPageParams, EventView};

/// The methods `events.*`, for one run.
pub struct EventsApi<'a>(pub(crate) &'a RunCtx);

impl EventsApi<'_> {
    /// One event; `not_found` when there is none or it is not the run's to see.
    pub async fn get(&self, event_id: impl Into<String>) -> Result<EventView, AgentAPIError> {
        self.0.ask(&EventGetParams { event_id: event_id.into() }).await
    }

    /// One page of the log, newest first: messages, tool calls, deliveries and what the host recorded.
    pub async fn page(&self, params: EventPageParams) -> Result<EventPage, AgentAPIError> {
        self.0.ask(&params).await
    }
}
