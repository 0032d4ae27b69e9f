//! `platform.request_action`: carried out immediately, or after an approval.
//!
//! Invariant: an action is in the outbox, or its approval is requested, before the call waits for the
//! outcome.

use super::asking::{Decided, ask, command, commit};
use super::call::{Answer, Call, answer, failed, refuse, stale};
use crate::actions::{Planned, plan};
use crate::approvals::{Waiter, expires_ms};
use crate::ids::now_ms;
use crate::settings::Approval;
use greenroom_protocol::api::platform::{ActionOutcome, ActionStatus, RequestActionParams};
use greenroom_protocol::{AgentAPIError, ErrorCode};
use greenroom_store::commands::{Requested, Wanted};
use greenroom_store::types::{ApprovalKind, DeliveryStatus};
use greenroom_store::{StoreError, reads};
use std::sync::Arc;
use std::time::Duration;

/// How long a call waits for the outcome of a delivery.
const OUTCOME_WAIT: Duration = Duration::from_secs(30);

pub(super) async fn request(call: &mut Call<'_>) -> Answer {
    let params: RequestActionParams = call.params()?;
    let surface = call.rights.identity.surface.clone().unwrap_or_else(|| "api".to_owned());
    call.about(Some(&params.action), Some(surface.into()));
    let action = params.action.clone();
    let planned = plan(params, 0, &call.rights.grant.actions, &call.rights.identity);
    let planned = planned.map_err(|refused| refused.to_error())?;
    let shared = Arc::clone(call.shared);
    let delivery_id = planned.delivery.delivery_id.clone();
    let delivered = shared.approvals.delivered.enter(&delivery_id);
    let approval_id = match planned.approval {
        Approval::Always => {
            act(call, planned).await?;
            None
        }
        Approval::Ask | Approval::Never => {
            let expires_at = now_ms() + expires_ms(call.settings);
            let question = planned.question(ApprovalKind::Call, &call.rights.identity, expires_at);
            let wanted = Wanted::Ask(Box::new(question));
            match ask(call, wanted, &delivery_id).await? {
                Decided::Allowed { approval_id, .. } => Some(approval_id),
                Decided::Refused(error) | Decided::NotAsked(error) => return Err(error),
                Decided::Earlier(_) => return Err(stale()),
            }
        }
    };
    let status = outcome(call, &delivered, &delivery_id).await?;
    let delivery_id = Some(delivery_id);
    answer(&ActionOutcome { status, action, delivery_id, approval_id, result: None })
}

/// Commits the action: to the outbox, and to the event log. In a task of the host: a runner that gives up the call
/// does not stop what follows.
async fn act(call: &mut Call<'_>, planned: Planned) -> Result<(), AgentAPIError> {
    let log = planned.log(&call.rights.identity);
    let call_id = planned.delivery.delivery_id.clone();
    let command = command(call, Wanted::Act { delivery: planned.delivery, log }, &call_id);
    let shared = Arc::clone(call.shared);
    let work = async move { commit(&shared, command).await };
    let requested = call.shared.tasks.spawn("request action", work).await;
    match requested.map_err(|error| failed(&StoreError::Refused(error.to_string())))?? {
        Requested::Queued => Ok(()),
        Requested::Pending | Requested::Earlier(_) | Requested::TooMany | Requested::Stale => {
            Err(stale())
        }
    }
}

/// The outcome of the delivery, as far as it is known after a while.
async fn outcome(
    call: &Call<'_>,
    delivered: &Waiter<'_>,
    delivery_id: &str,
) -> Result<ActionStatus, AgentAPIError> {
    let settled = async {
        loop {
            let (workspace, id) = (call.workspace().to_owned(), delivery_id.to_owned());
            let read =
                call.shared.store.read(move |tx| reads::deliveries::get(tx, &workspace, &id));
            let row = read.await.map_err(|error| failed(&error))?;
            match row.map(|row| (row.status, row.error)) {
                Some((DeliveryStatus::Done, _)) => return Ok(ActionStatus::Done),
                Some((DeliveryStatus::Unknown, _)) => return Ok(ActionStatus::Unknown),
                Some((DeliveryStatus::Failed, error)) => {
                    let error = error.unwrap_or_default();
                    let refused = refuse(
                        ErrorCode::RuntimeError,
                        format!("the surface did not take the action: {error}"),
                    );
                    return Err(refused.detail("reason", "failed"));
                }
                Some((DeliveryStatus::Discarded, _)) => {
                    let message = "the action was discarded before the surface took it";
                    let refused = refuse(ErrorCode::RuntimeError, message.to_owned());
                    return Err(refused.detail("reason", "discarded"));
                }
                Some((DeliveryStatus::Pending | DeliveryStatus::Claimed, _)) | None => {
                    delivered.news().await;
                }
            }
        }
    };
    tokio::time::timeout(OUTCOME_WAIT, settled).await.unwrap_or(Ok(ActionStatus::Queued))
}
