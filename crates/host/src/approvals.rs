//! Approvals: listing and answering them, waking the calls that wait for them, and their expiry.
//!
//! Invariant: a decision is committed, together with the delivery it allows, before it is shown; a call that
//! waits reads it from the store. A restart loses only the waiting calls.

mod input;

use crate::follow_up::FollowUp;
use crate::host::{Host, Shared};
use crate::ids::{now_ms, rfc3339};
use crate::query::Page;
use crate::settings::Settings;
use greenroom_protocol::Object;
use greenroom_protocol::api::platform::{
    ApprovalOutcome, ApprovalStatus, ApprovalView, OutcomeStatus, TOOL_CALL,
};
use greenroom_store::commands::{
    ASKED_PAYLOAD, AnswerApproval, Answered, CancelApproval, Decision, ExpireApprovals,
};
use greenroom_store::reads::approvals::ApprovalFilter;
use greenroom_store::types::{ApprovalRow, Delivered, DeliveryStatus};
use greenroom_store::{StoreError, reads};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, broadcast};

/// The key in the target of a stored approval that holds its subject.
pub(crate) const SUBJECT: &str = "subject";
/// Approvals that expire in one commit.
const EXPIRE_BATCH: i64 = 512;
/// Announcements buffered for a slow listener; one that misses some reads the store.
const REQUESTS_BUFFERED: usize = 256;
/// Pause after an error of the store.
const STORE_AGAIN: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) struct Approvals {
    /// Calls that wait for an answer.
    pub(crate) answered: Waiting,
    /// Calls that wait for the outcome of a delivery.
    pub(crate) delivered: Waiting,
    /// There is a new approval, which may expire before all others.
    due: Notify,
    /// The ids of runs that asked for an approval.
    requested: broadcast::Sender<Arc<str>>,
}

impl Default for Approvals {
    fn default() -> Self {
        Self {
            answered: Waiting::default(),
            delivered: Waiting::default(),
            due: Notify::new(),
            requested: broadcast::Sender::new(REQUESTS_BUFFERED),
        }
    }
}

impl Approvals {
    /// A run asked for an approval, which is stored.
    pub(crate) fn announce(&self, run_id: &str) {
        self.due.notify_one();
        // Without a listener, sending fails: that is the usual case.
        let _ = self.requested.send(run_id.into());
    }
}

/// Calls that wait, by the id of what they wait for.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    by_id: Mutex<HashMap<String, Arc<Notify>>>,
}

/// A call that waits, until this is dropped.
#[derive(Debug)]
pub(crate) struct Waiter<'a> {
    waiting: &'a Waiting,
    id: String,
    news: Arc<Notify>,
}

impl Waiting {
    /// Call this before the commit to wait for: a notification is stored until it is awaited.
    pub(crate) fn enter(&self, id: &str) -> Waiter<'_> {
        let news = Arc::new(Notify::new());
        self.lock().insert(id.to_owned(), Arc::clone(&news));
        Waiter { waiting: self, id: id.to_owned(), news }
    }

    pub(crate) fn wake(&self, id: &str) {
        if let Some(news) = self.lock().get(id) {
            news.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<Notify>>> {
        self.by_id.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiter<'_> {
    pub(crate) async fn news(&self) {
        self.news.notified().await;
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        self.waiting.lock().remove(&self.id);
    }
}

/// How long an approval may be answered.
pub(crate) fn expires_ms(settings: &Settings) -> i64 {
    i64::try_from(settings.approvals.expires.as_millis()).unwrap_or(i64::MAX / 2)
}

/// Expires unanswered approvals until the host stops.
pub(crate) async fn expire(shared: Arc<Shared>) {
    loop {
        let due = match shared.store.read(|tx| reads::approvals::next_due(tx)).await {
            Ok(due) => due,
            Err(error) => {
                tracing::warn!(%error, "cannot read which approvals expire, will retry");
                Some(now_ms() + 1_000)
            }
        };
        let passed = async {
            match due {
                Some(due) => {
                    let left_ms = u64::try_from(due - now_ms()).unwrap_or(0);
                    tokio::time::sleep(Duration::from_millis(left_ms)).await;
                    due
                }
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            due = passed => shared.expire_due(due).await,
            () = shared.approvals.due.notified() => {}
            () = shared.tasks.stopping().cancelled() => return,
        }
    }
}

impl Shared {
    /// `due_ms` has passed by the monotonic clock, even if the wall clock was set back.
    async fn expire_due(self: &Arc<Self>, due_ms: i64) {
        let now_ms = now_ms();
        let due_ms = due_ms.max(now_ms);
        let command = ExpireApprovals { due_ms, limit: EXPIRE_BATCH, now_ms };
        match self.store.commit(command).await {
            Ok(expired) => self.follow_up(FollowUp::expired(expired)).await,
            Err(error) => {
                tracing::warn!(%error, "cannot expire approvals, will retry");
                tokio::time::sleep(STORE_AGAIN).await;
            }
        }
    }

    /// Cancels an approval that no call waits for any more.
    pub(crate) fn cancel_approval(self: &Arc<Self>, workspace_id: String, approval_id: String) {
        let shared = Arc::clone(self);
        self.tasks.spawn("cancel approval", async move {
            let id = approval_id.clone();
            let command = CancelApproval { workspace_id, approval_id, now_ms: now_ms() };
            if let Err(error) = shared.store.commit(command).await {
                tracing::warn!(%error, approval.id = id, "cannot cancel approval");
            }
        });
    }
}

/// Filters of a list of approvals.
#[derive(Debug, Clone, Default)]
pub struct ApprovalQuery {
    pub status: Option<ApprovalStatus>,
    pub run_id: Option<String>,
}

impl Host {
    /// The ids of runs that ask for an approval from now on. A listener that lags must read the store.
    pub fn approval_requests(&self) -> broadcast::Receiver<Arc<str>> {
        self.shared.approvals.requested.subscribe()
    }

    /// Approvals, newest first; none if the cursor does not belong to this list.
    pub async fn approvals(
        &self,
        workspace: &str,
        query: ApprovalQuery,
        cursor: Option<&str>,
        limit: usize,
    ) -> Result<Option<Page<ApprovalView>>, StoreError> {
        let status = query.status.map_or("", ApprovalStatus::as_str);
        let run_id = query.run_id.clone().unwrap_or_default();
        let domain = ["approvals", workspace, status, &run_id];
        let Ok(before) = self.position(&domain, cursor) else { return Ok(None) };
        let filter = ApprovalFilter { status: query.status, run_id: query.run_id };
        let owner = workspace.to_owned();
        let wanted = i64::try_from(limit).unwrap_or(i64::MAX - 1) + 1;
        let rows = self
            .store()
            .read(move |tx| reads::approvals::page(tx, &owner, &filter, before.as_deref(), wanted));
        let mut rows = rows.await?;
        let has_more = rows.len() > limit;
        rows.truncate(limit);
        let next = rows.last().map(|row| row.request.approval_id.clone());
        let items = rows.into_iter().map(view).collect();
        Ok(Some(self.page(&domain, items, next, has_more)))
    }

    pub async fn approval(
        &self,
        workspace: &str,
        approval_id: &str,
    ) -> Result<Option<ApprovalView>, StoreError> {
        let (workspace, id) = (workspace.to_owned(), approval_id.to_owned());
        let row = self.store().read(move |tx| reads::approvals::get(tx, &workspace, &id)).await?;
        Ok(row.map(view))
    }

    /// Answers an approval. Once committed, it is followed up even if the caller disconnects.
    pub async fn answer_approval(
        &self,
        workspace: &str,
        approval_id: &str,
        nonce: String,
        given: GivenAnswer,
    ) -> Result<ApprovalAnswer, StoreError> {
        let (owner, id) = (workspace.to_owned(), approval_id.to_owned());
        let row = self.store().read(move |tx| reads::approvals::get(tx, &owner, &id)).await?;
        let Some(row) = row else { return Ok(ApprovalAnswer::NotFound) };
        let GivenAnswer { decision, by, values, edited } = given;
        let values = match input::values(&row.request, decision, values) {
            Ok(values) => values,
            Err(reason) => return Ok(ApprovalAnswer::Invalid(reason)),
        };
        let edited = edited.filter(|_| decision == Decision::Allow);
        if let Some(edited) = &edited
            && let Err(reason) = self.shared.check_edited(&row, edited)
        {
            return Ok(ApprovalAnswer::InvalidArgs(reason));
        }
        let command = AnswerApproval {
            workspace_id: workspace.to_owned(),
            approval_id: approval_id.to_owned(),
            nonce,
            decision,
            edited: edited.map(|edited| Value::Object(edited).to_string()),
            by,
            values,
            now_ms: now_ms(),
        };
        let shared = Arc::clone(&self.shared);
        let work = async move { shared.answer(command).await };
        let answered = self.shared.tasks.spawn("answer approval", work).await;
        answered.map_err(|error| StoreError::Refused(error.to_string()))?
    }
}

/// An answer, and who gives it.
#[derive(Debug, Clone, PartialEq)]
pub struct GivenAnswer {
    pub decision: Decision,
    pub by: String,
    /// For a question with a form.
    pub values: Option<Object>,
    /// Other arguments for the call than it asked for.
    pub edited: Option<Object>,
}

/// The outcome of an answer.
#[derive(Debug, Clone, PartialEq)]
pub enum ApprovalAnswer {
    /// The values do not match what was asked; nothing was decided.
    Invalid(String),
    /// The edited arguments are not valid or not granted; nothing was decided.
    InvalidArgs(String),
    /// The approval has this decision, from now or from before.
    Decided(ApprovalView),
    /// It has another decision, has expired, or its run has ended.
    Settled(ApprovalView),
    WrongNonce,
    NotFound,
}

impl Shared {
    /// Why the arguments of a waiting call cannot be replaced by these, by its tool's schema and its run's grant.
    fn check_edited(&self, row: &ApprovalRow, edited: &Object) -> Result<(), String> {
        // The answer itself says what became of an approval that no longer waits.
        if row.status != ApprovalStatus::Pending {
            return Ok(());
        }
        if row.request.action != TOOL_CALL {
            return Err("only the arguments of a tool call can be edited".to_owned());
        }
        let Some(live) = self.live.get(&row.run_id) else { return Ok(()) };
        let Some(rights) = live.rights() else { return Ok(()) };
        let target: Value = serde_json::from_str(&row.request.target).unwrap_or_default();
        let tool = target["tool_name"].as_str().unwrap_or_default();
        rights.admit_edited(tool, edited).map(drop).map_err(|failure| failure.message)
    }

    async fn answer(
        self: &Arc<Self>,
        command: AnswerApproval,
    ) -> Result<ApprovalAnswer, StoreError> {
        let approval_id = command.approval_id.clone();
        let answered = self.store.commit(command).await?;
        self.follow_up(FollowUp::answered(&approval_id, &answered)).await;
        Ok(match answered {
            Answered::New(row) => {
                tracing::info!(
                    approval.id = approval_id,
                    run.id = row.run_id,
                    status = row.status.as_str(),
                    by = row.answered_by,
                    "approval answered"
                );
                ApprovalAnswer::Decided(view(*row))
            }
            Answered::Repeated(row) => ApprovalAnswer::Decided(view(*row)),
            Answered::Conflict(row) => ApprovalAnswer::Settled(view(*row)),
            Answered::WrongNonce => ApprovalAnswer::WrongNonce,
            Answered::NotFound => ApprovalAnswer::NotFound,
        })
    }
}

/// An approval as the API shows it.
fn view(row: ApprovalRow) -> ApprovalView {
    let object = |text: &str| serde_json::from_str::<Object>(text).unwrap_or_default();
    let asked = row.request;
    let mut target = object(&asked.target);
    let subject = target.remove(SUBJECT).and_then(|subject| serde_json::from_value(subject).ok());
    // It is that of the arguments that were asked for.
    let subject = subject.filter(|_| !target.contains_key(ASKED_PAYLOAD));
    let outcome = row.delivered.map(|Delivered { status, error }| ApprovalOutcome {
        status: outcome_of(status),
        delivery_id: asked.delivery.as_ref().map(|delivery| delivery.delivery_id.clone()),
        error,
    });
    ApprovalView {
        approval_id: asked.approval_id,
        nonce: asked.nonce,
        status: row.status,
        target,
        payload: object(&asked.payload),
        subject,
        action: asked.action,
        agent: asked.agent,
        runner_id: asked.runner_id,
        run_id: row.run_id,
        conversation_id: row.conversation_id,
        actor: asked.actor.and_then(|actor| serde_json::from_str(&actor).ok()),
        created_at: rfc3339(row.created_at),
        expires_at: rfc3339(asked.expires_at),
        answered_at: row.answered_at.map(rfc3339),
        answered_by: row.answered_by,
        outcome,
    }
}

fn outcome_of(status: DeliveryStatus) -> OutcomeStatus {
    match status {
        DeliveryStatus::Pending | DeliveryStatus::Claimed => OutcomeStatus::Queued,
        DeliveryStatus::Done => OutcomeStatus::Done,
        DeliveryStatus::Failed | DeliveryStatus::Discarded => OutcomeStatus::Failed,
        DeliveryStatus::Unknown => OutcomeStatus::Unknown,
    }
}
