//! Asking somebody before a call acts.
//!
//! Invariant: the question is committed before the call waits; the run's deadline stands still meanwhile. A
//! call that is given up takes its question back.

use super::call::{Call, failed, refuse, stale};
use crate::approvals::Waiter;
use crate::host::Shared;
use crate::ids::now_ms;
use greenroom_protocol::api::platform::ApprovalStatus;
use greenroom_protocol::{AgentAPIError, ErrorCode};
use greenroom_store::commands::{Begun, RequestAction, Requested, Wanted};
use greenroom_store::reads;
use std::sync::Arc;
use std::time::Duration;

/// When the store cannot be read.
const STORE_AGAIN: Duration = Duration::from_millis(500);

/// The call is open from its commit on: only at its end it is known what to record of it.
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

/// What came of a question.
pub(super) enum Decided {
    /// By this approval.
    Allowed(String),
    /// Somebody said no, or nobody said anything in time.
    Refused(AgentAPIError),
    /// The call of the tool was begun before: nobody was asked.
    Earlier(Begun),
    /// It could not be asked; nothing was kept.
    NotAsked(AgentAPIError),
}

/// Asks, and waits for what is decided; an error is told where the run ended meanwhile.
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
    let mut question =
        Question { shared: Arc::clone(shared), asked: Some((workspace, approval_id.clone())) };
    let requested = shared.store.commit(command(call, wanted, call_id)).await;
    let not_asked = match requested.map_err(|error| failed(&error))? {
        Requested::Asked => None,
        Requested::Earlier(begun) => Some(Decided::Earlier(begun)),
        Requested::TooMany => {
            let message = "too many actions of this run wait for approval";
            Some(Decided::NotAsked(refuse(ErrorCode::RateLimited, message)))
        }
        Requested::Queued | Requested::Stale => Some(Decided::NotAsked(stale())),
    };
    if let Some(not_asked) = not_asked {
        question.asked = None;
        return Ok(not_asked);
    }
    shared.approvals.due.notify_one();
    shared.approvals.asked.tell(&call.rights.identity.run_id);
    let status = decision(call, &answered, &approval_id).await;
    question.asked = None;
    match status {
        ApprovalStatus::Allowed => Ok(Decided::Allowed(approval_id)),
        ApprovalStatus::Cancelled | ApprovalStatus::Pending => Err(stale()),
        refused @ (ApprovalStatus::Denied | ApprovalStatus::Expired) => {
            let message = match refused {
                ApprovalStatus::Denied => "the action was denied",
                _ => "nobody allowed the action in time",
            };
            let error = refuse(ErrorCode::Unauthorized, message);
            let error = error.detail("reason", refused.as_str());
            Ok(Decided::Refused(error.detail("approval_id", approval_id)))
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

/// A question that a call waits for. If the call goes away first, so does the question.
struct Question {
    shared: Arc<Shared>,
    asked: Option<(String, String)>,
}

impl Drop for Question {
    fn drop(&mut self) {
        if let Some((workspace, approval_id)) = self.asked.take() {
            self.shared.give_up(workspace, approval_id);
        }
    }
}
