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
use greenroom_store::commands::{RequestAction, Requested, Wanted};
use greenroom_store::reads;
use greenroom_store::types::NewApproval;
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

/// Asks, and waits until it is allowed; everything else refuses the call. Gives the approval's id.
pub(super) async fn ask(
    call: &mut Call<'_>,
    question: NewApproval,
    call_id: &str,
) -> Result<String, AgentAPIError> {
    let shared = &Arc::clone(call.shared);
    let approval_id = question.approval_id.clone();
    let answered = shared.approvals.answered.enter(&approval_id);
    let _pause = call.live.deadline.pause();
    let workspace = call.workspace().to_owned();
    let mut question_asked =
        Asked { shared: Arc::clone(shared), question: Some((workspace, approval_id.clone())) };
    let requested =
        shared.store.request_action(command(call, Wanted::Ask(Box::new(question)), call_id));
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
