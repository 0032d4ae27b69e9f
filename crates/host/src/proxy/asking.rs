//! Requests an approval before a call acts.
//!
//! Invariant: the request is committed before the call waits; the run's deadline is paused meanwhile. A call
//! that is cancelled withdraws its request.

use super::call::{Call, failed, refuse, stale};
use crate::approvals::Waiter;
use crate::follow_up::FollowUp;
use crate::host::Shared;
use crate::ids::now_ms;
use greenroom_protocol::api::platform::ApprovalStatus;
use greenroom_protocol::{AgentAPIError, ErrorCode, Object};
use greenroom_store::commands::{ASKED_PAYLOAD, Begun, RequestAction, Requested, Wanted};
use greenroom_store::reads;
use greenroom_store::types::ApprovalRow;
use std::sync::Arc;
use std::time::Duration;

/// Delay between attempts while the store cannot be read.
const STORE_AGAIN: Duration = Duration::from_millis(500);

/// The call is open from its commit on: what to record of it is only known at its end.
pub(super) fn command(call: &mut Call<'_>, wanted: Wanted, call_id: &str) -> RequestAction {
    RequestAction {
        call: call.keep_open(call_id),
        fence: call.fence(),
        conversation_id: call.rights.identity.conversation_id.clone(),
        wanted,
        pending_max: call.settings.limits.approvals_pending,
        now_ms: now_ms(),
    }
}

pub(super) async fn commit(
    shared: &Arc<Shared>,
    command: RequestAction,
) -> Result<Requested, AgentAPIError> {
    let command = Arc::new(command);
    let requested = shared.store.commit(Arc::clone(&command)).await;
    let requested = requested.map_err(|error| failed(&error))?;
    shared.follow_up(FollowUp::requested(&command, &requested)).await;
    Ok(requested)
}

/// The outcome of an approval request.
pub(super) enum Decided {
    /// By this approval, perhaps with other arguments than the call's own.
    Allowed { approval_id: String, edited: Option<Object> },
    /// Rejected, or not answered in time.
    Refused(AgentAPIError),
    /// The tool call was begun before: no approval was requested.
    Earlier(Begun),
    /// The request was refused; nothing was stored.
    NotAsked(AgentAPIError),
}

/// Requests an approval and waits for the decision; fails if the run ends meanwhile.
pub(super) async fn ask(
    call: &mut Call<'_>,
    wanted: Wanted,
    call_id: &str,
) -> Result<Decided, AgentAPIError> {
    let shared = &Arc::clone(call.shared);
    let approval_id = match &wanted {
        Wanted::Ask(question) | Wanted::AskForTool(question, _) => question.approval_id.clone(),
        Wanted::Act { .. } => return Ok(Decided::NotAsked(stale())),
    };
    let answered = shared.approvals.answered.enter(&approval_id);
    let _pause = call.live.deadline.pause();
    let workspace = call.workspace().to_owned();
    let mut question = Withdrawn::new(shared, (workspace.clone(), approval_id.clone()));
    let not_asked = match commit(shared, command(call, wanted, call_id)).await? {
        Requested::Pending => None,
        Requested::Earlier(begun) => Some(Decided::Earlier(begun)),
        Requested::TooMany => {
            let message = "too many actions of this run wait for approval";
            Some(Decided::NotAsked(refuse(ErrorCode::RateLimited, message)))
        }
        Requested::Queued | Requested::Stale => Some(Decided::NotAsked(stale())),
    };
    if let Some(not_asked) = not_asked {
        question.settled();
        return Ok(not_asked);
    }
    let row = decision(shared, &answered, (&workspace, &approval_id)).await;
    question.settled();
    let Some(row) = row else { return Err(stale()) };
    match row.status {
        ApprovalStatus::Allowed => Ok(Decided::Allowed { approval_id, edited: edited(&row) }),
        ApprovalStatus::Cancelled | ApprovalStatus::Pending => Err(stale()),
        refused @ (ApprovalStatus::Denied | ApprovalStatus::Expired) => {
            let message = match refused {
                ApprovalStatus::Denied => "the action was denied",
                _ => "the action was not approved in time",
            };
            let error = refuse(ErrorCode::Unauthorized, message);
            let error = error.detail("reason", refused.as_str());
            Ok(Decided::Refused(error.detail("approval_id", approval_id)))
        }
    }
}

/// Waits until the approval is decided; none if it does not exist.
pub(super) async fn decision(
    shared: &Shared,
    answered: &Waiter<'_>,
    (workspace, approval_id): (&str, &str),
) -> Option<ApprovalRow> {
    loop {
        let (workspace, id) = (workspace.to_owned(), approval_id.to_owned());
        let read = shared.store.read(move |tx| reads::approvals::get(tx, &workspace, &id));
        match read.await {
            Ok(Some(row)) if row.status != ApprovalStatus::Pending => return Some(row),
            Ok(Some(_)) => answered.news().await,
            Ok(None) => return None,
            Err(error) => {
                tracing::warn!(%error, "cannot read an approval");
                tokio::time::sleep(STORE_AGAIN).await;
            }
        }
    }
}

/// The arguments that the answer gave the call in place of its own.
fn edited(row: &ApprovalRow) -> Option<Object> {
    let target: Object = serde_json::from_str(&row.request.target).ok()?;
    target.contains_key(ASKED_PAYLOAD).then(|| serde_json::from_str(&row.request.payload).ok())?
}

/// An approval that a call waits for; withdrawn if the call is dropped first.
pub(super) struct Withdrawn {
    shared: Arc<Shared>,
    asked: Option<(String, String)>,
}

impl Withdrawn {
    pub(super) fn new(shared: &Arc<Shared>, asked: (String, String)) -> Self {
        Self { shared: Arc::clone(shared), asked: Some(asked) }
    }

    /// Nothing is left to withdraw.
    pub(super) fn settled(&mut self) {
        self.asked = None;
    }
}

impl Drop for Withdrawn {
    fn drop(&mut self) {
        if let Some((workspace, approval_id)) = self.asked.take() {
            self.shared.cancel_approval(workspace, approval_id);
        }
    }
}
