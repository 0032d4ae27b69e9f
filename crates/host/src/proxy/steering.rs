//! `steering.pull`: messages that arrived during the run.
//!
//! Invariant: pulled messages are committed as pulled before the answer; they are not returned again and do
//! not start runs.

use super::call::{Answer, Call, answer, failed, refuse, stale};
use crate::context::Envelope;
use crate::ids::{now_ms, rfc3339};
use greenroom_protocol::api::PAGE_LIMIT_MAX;
use greenroom_protocol::api::steering::{SteeringItem, SteeringItems, SteeringPullParams};
use greenroom_protocol::{AgentAPIError, ErrorCode};
use greenroom_store::commands::{PullSteering, Pulled};
use greenroom_store::types::EventRow;

pub(super) async fn pull(call: &mut Call<'_>) -> Answer {
    let params: SteeringPullParams = call.params()?;
    let command = PullSteering {
        fence: call.fence(),
        limit: i64::from(params.limit.unwrap_or(PAGE_LIMIT_MAX)),
        // An event with its envelope never doubles its size.
        bytes_max: call.settings.limits.response_bytes / 2,
        audit: call.audit(),
        now_ms: now_ms(),
    };
    let pulled = call.shared.store.commit(command).await.map_err(|error| failed(&error))?;
    call.recorded();
    let Pulled::Events(events) = pulled else { return Err(stale()) };
    if let Some(last) = events.last().and_then(|event| event.conversation_seq) {
        call.live.pulled(last);
    }
    let items = events.into_iter().map(item).collect::<Result<Vec<_>, _>>()?;
    answer(&SteeringItems { items })
}

fn item(row: EventRow) -> Result<SteeringItem, AgentAPIError> {
    let body = row.body.unwrap_or_default();
    let envelope: Envelope = serde_json::from_str(&body)
        .map_err(|error| refuse(ErrorCode::RuntimeError, error.to_string()))?;
    let event = envelope.event;
    Ok(SteeringItem {
        event_id: row.event_id,
        event_type: row.event_type,
        conversation_id: row.conversation_id.unwrap_or_default(),
        thread_id: event.thread_id,
        actor: event.actor,
        input: event.input,
        data: event.data,
        created_at: rfc3339(row.created_at),
    })
}
