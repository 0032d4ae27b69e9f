//! `platform.request_action`: carried out at once, or after somebody has allowed it.
//!
//! Invariant: the question is committed before the call waits; the run's deadline stands still meanwhile. A
//! call that is given up takes its question back.

use super::call::{Answer, Call, answer, failed, refuse, stale};
use crate::actions::{Planned, plan};
use crate::approvals::{Waiter, expires_ms};
use crate::host::Shared;
use crate::ids::now_ms;
use crate::settings::Approval;
use greenroom_protocol::api::platform::{
    ActionOutcome, ActionStatus, ApprovalStatus, RequestActionParams,
};
use greenroom_protocol::{AgentAPIError, ErrorCode};
use greenroom_store::commands::{RequestAction, Requested, Wanted};
use greenroom_store::reads;
use greenroom_store::types::{ApprovalKind, DeliveryStatus};
use std::sync::Arc;
use std::time::Duration;

/// How long a call waits for the outcome of what is on its way.
const OUTCOME_WAIT: Duration = Duration::from_secs(30);
/// When the store cannot be read.
const STORE_AGAIN: Duration = Duration::from_millis(500);

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
        Approval::Ask | Approval::Never => Some(ask(call, &shared, &planned).await?),
    };
    let status = outcome(call, &delivered, &delivery_id).await?;
    let delivery_id = Some(delivery_id);
    answer(&ActionOutcome { status, action, delivery_id, approval_id, result: None })
}

/// The call is open from its commit on: only at its end it is known what to record of it.
fn command(call: &mut Call<'_>, wanted: Wanted) -> RequestAction {
    let call_id = match &wanted {
        Wanted::Act { delivery, .. } => &delivery.delivery_id,
        Wanted::Ask(question) => &question.delivery.delivery_id,
    };
    RequestAction {
        call: call.keep_open(call_id),
        fence: call.fence(),
        conversation_id: call.rights.identity.conversation_id.clone(),
        wanted,
        pending_max: call.settings.limits.approvals_pending,
        now_ms: now_ms(),
    }
}

/// Puts the action on its way. What was done is in the event log with this commit.
async fn act(call: &mut Call<'_>, planned: Planned) -> Result<(), AgentAPIError> {
    let log = planned.log(&call.rights.identity);
    let command = command(call, Wanted::Act { delivery: planned.delivery, log });
    let requested = call.shared.store.request_action(command).await;
    match requested.map_err(|error| failed(&error))? {
        Requested::Queued => {
            call.shared.wake_delivery.notify_one();
            Ok(())
        }
        Requested::Asked | Requested::TooMany | Requested::Stale => Err(stale()),
    }
}

/// Asks, and waits until it is allowed; everything else refuses the call.
async fn ask(
    call: &mut Call<'_>,
    shared: &Arc<Shared>,
    planned: &Planned,
) -> Result<String, AgentAPIError> {
    let expires_at = now_ms() + expires_ms(call.settings);
    let question = planned.question(ApprovalKind::Call, &call.rights.identity, expires_at);
    let approval_id = question.approval_id.clone();
    let answered = shared.approvals.answered.enter(&approval_id);
    let _pause = call.live.deadline.pause();
    let workspace = call.workspace().to_owned();
    let mut question_asked =
        Asked { shared: Arc::clone(shared), question: Some((workspace, approval_id.clone())) };
    let requested = shared.store.request_action(command(call, Wanted::Ask(Box::new(question))));
    match requested.await.map_err(|error| failed(&error))? {
        Requested::Asked => {}
        Requested::TooMany => {
            question_asked.question = None;
            let message = "too many actions of this run wait for approval";
            return Err(refuse(ErrorCode::RateLimited, message));
        }
        Requested::Queued | Requested::Stale => {
            question_asked.question = None;
            return Err(stale());
        }
    }
    shared.approvals.due.notify_one();
    let status = decision(call, &answered, &approval_id).await;
    question_asked.question = None;
    match status {
        ApprovalStatus::Allowed => Ok(approval_id),
        ApprovalStatus::Cancelled | ApprovalStatus::Pending => Err(stale()),
        refused @ (ApprovalStatus::Denied | ApprovalStatus::Expired) => {
            let message = match refused {
                ApprovalStatus::Denied => "the action was denied",
                _ => "nobody allowed the action in time",
            };
            let error = refuse(ErrorCode::Unauthorized, message);
            Err(error.detail("reason", refused.as_str()).detail("approval_id", approval_id))
        }
    }
}

/// Waits until the question is settled.
async fn decision(call: &Call<'_>, answered: &Waiter<'_>, approval_id: &str) -> ApprovalStatus {
    loop {
        let (workspace, id) = (call.workspace().to_owned(), approval_id.to_owned());
        let read = call.shared.store.read(move |tx| reads::approvals::get(tx, &workspace, &id));
        match read.await {
            Ok(Some(row)) if row.status != ApprovalStatus::Pending => return row.status,
            Ok(Some(_)) => answered.news().await,
            Ok(None) => return ApprovalStatus::Cancelled,
            Err(error) => {
                tracing::warn!(%error, "an approval cannot be read");
                tokio::time::sleep(STORE_AGAIN).await;
            }
        }
    }
}

/// What became of the delivery, as far as it is known after a while.
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
                Some((DeliveryStatus::Pending | DeliveryStatus::Claimed, _)) | None => {
                    delivered.news().await;
                }
            }
        }
    };
    tokio::time::timeout(OUTCOME_WAIT, settled).await.unwrap_or(Ok(ActionStatus::Queued))
}

/// A question that a call waits for. If the call goes away first, so does the question.
struct Asked {
    shared: Arc<Shared>,
    question: Option<(String, String)>,
}

impl Drop for Asked {
    fn drop(&mut self) {
        if let Some((workspace, approval_id)) = self.question.take() {
            self.shared.give_up(workspace, approval_id);
        }
    }
}
