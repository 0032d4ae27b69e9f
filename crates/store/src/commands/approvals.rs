//! Actions and their approvals: requested, answered, expired, cancelled.
//!
//! Invariant: an action acts through its one row in the outbox, which is written in the transaction of the
//! decision that allows it. A decision is made once; the approval of a call does not stay pending after the end
//! of its run.

use super::Command;
use super::audit::open;
use super::fence::{RunFence, fence, fence_params};
use super::results::{insert_delivery, insert_host_event};
use super::tools::{BeginToolCall, Begun};
use crate::approvals::{ApprovalKind, ApprovalRow, ApprovalStatus, NewApproval};
use crate::audit::OpenCall;
use crate::sql::Tx;
use crate::types::{HostEvent, NewDelivery};
use crate::{StoreError, params, reads};
use greenroom_protocol::RunStatus;
use serde_json::{Value, json};

/// The key of a payload that holds the values of an answer.
const ANSWER: &str = "answer";

/// An action that a live run requests through the proxy.
#[derive(Debug, Clone)]
pub struct RequestAction {
    pub fence: RunFence,
    pub conversation_id: Option<String>,
    pub wanted: Wanted,
    /// Approvals of one run that may be pending.
    pub pending_max: i64,
    /// The call that requests it and waits; open from here on, unless nothing was done.
    pub call: Option<OpenCall>,
    pub now_ms: i64,
}

#[derive(Debug, Clone)]
pub enum Wanted {
    /// Allowed in advance: in the outbox with this commit.
    Act { delivery: NewDelivery, log: HostEvent },
    /// Needs approval.
    Ask(Box<NewApproval>),
    /// A tool call that needs approval; it is recorded with the request.
    AskForTool(Box<NewApproval>, Box<BeginToolCall>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Requested {
    /// In the outbox.
    Queued,
    /// Waits for an answer.
    Pending,
    /// The tool call was recorded before: there is no second request.
    Earlier(Begun),
    /// Too many of the run's approvals are pending; nothing was written.
    TooMany,
    /// The run has ended, or was to be cancelled.
    Stale,
}

impl Command for RequestAction {
    type Outcome = Requested;

    fn execute(&self, tx: &mut dyn Tx) -> Result<Requested, StoreError> {
        let requested = self.request(tx)?;
        match (&requested, &self.call) {
            (Requested::Queued | Requested::Pending, Some(call)) => {
                open(tx, self.fence.run(), call)?;
            }
            (Requested::Earlier(_) | Requested::TooMany | Requested::Stale, _) | (_, None) => {}
        }
        Ok(requested)
    }
}

impl RequestAction {
    fn request(&self, tx: &mut dyn Tx) -> Result<Requested, StoreError> {
        let (workspace_id, run_id) = self.fence.run();
        let asks = !matches!(self.wanted, Wanted::Act { .. });
        // A new attempt of the run could do it twice.
        let changed = tx.execute(
            concat!(
                "UPDATE runs SET effects = 1, asked = CASE WHEN ?6 = 1 THEN 1 ELSE asked END
                 WHERE ",
                fence!(),
                " AND cancel_requested = 0"
            ),
            fence_params![self.fence, i64::from(asks)],
        )?;
        if changed == 0 {
            return Ok(Requested::Stale);
        }
        let about = (self.conversation_id.as_deref(), Some(run_id));
        match &self.wanted {
            Wanted::Act { delivery, log } => {
                insert_delivery(tx, (workspace_id, run_id), delivery, self.now_ms)?;
                insert_host_event(tx, workspace_id, log, about, self.now_ms)?;
                Ok(Requested::Queued)
            }
            Wanted::Ask(approval) => self.ask(tx, approval),
            Wanted::AskForTool(approval, tool_call) => {
                let asked = reads::approvals::get(tx, workspace_id, &approval.approval_id)?;
                if let Some(earlier) = tool_call.earlier(tx)?.filter(|_| asked.is_none()) {
                    return Ok(Requested::Earlier(earlier));
                }
                let requested = self.ask(tx, approval)?;
                if requested == Requested::Pending {
                    tool_call.execute(tx)?;
                }
                Ok(requested)
            }
        }
    }

    fn ask(&self, tx: &mut dyn Tx, approval: &NewApproval) -> Result<Requested, StoreError> {
        let asked = ask(
            tx,
            &Question {
                workspace_id: &self.fence.workspace_id,
                run_id: &self.fence.run_id,
                attempt: self.fence.attempt,
                conversation_id: self.conversation_id.as_deref(),
                approval,
                pending_max: self.pending_max,
                now_ms: self.now_ms,
            },
        )?;
        Ok(if asked { Requested::Pending } else { Requested::TooMany })
    }
}

/// An approval request with its run.
pub(super) struct Question<'a> {
    pub(super) workspace_id: &'a str,
    pub(super) run_id: &'a str,
    pub(super) attempt: i64,
    pub(super) conversation_id: Option<&'a str>,
    pub(super) approval: &'a NewApproval,
    pub(super) pending_max: i64,
    pub(super) now_ms: i64,
}

/// Stores a request; false when too many of the run are pending.
pub(super) fn ask(tx: &mut dyn Tx, question: &Question<'_>) -> Result<bool, StoreError> {
    let Question { workspace_id, run_id, approval, .. } = question;
    if reads::approvals::get(tx, workspace_id, &approval.approval_id)?.is_some() {
        return Ok(true);
    }
    if reads::approvals::count_pending(tx, workspace_id, run_id)? >= question.pending_max {
        return Ok(false);
    }
    insert(tx, question)?;
    let row = reads::approvals::get(tx, workspace_id, &approval.approval_id)?;
    if let Some(row) = row {
        record(tx, &row, "requested", question.now_ms)?;
    }
    Ok(true)
}

fn insert(tx: &mut dyn Tx, question: &Question<'_>) -> Result<(), StoreError> {
    let approval = question.approval;
    let part = |of: fn(&NewDelivery) -> &String| approval.delivery.as_ref().map_or("", |d| of(d));
    tx.execute(
        "INSERT INTO approvals (workspace_id, approval_id, kind, run_id, attempt, agent, runner_id,
             conversation_id, actor, action, target, payload, nonce, delivery_id, surface, lane,
             sequence, delivery, status, created_at, expires_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18,
             ?21, ?19, ?20)",
        params![
            question.workspace_id,
            &approval.approval_id,
            approval.kind,
            question.run_id,
            question.attempt,
            &approval.agent,
            &approval.runner_id,
            question.conversation_id,
            &approval.actor,
            &approval.action,
            &approval.target,
            &approval.payload,
            &approval.nonce,
            part(|delivery| &delivery.delivery_id),
            part(|delivery| &delivery.surface),
            part(|delivery| &delivery.target),
            approval.delivery.as_ref().map_or(0, |delivery| delivery.sequence),
            part(|delivery| &delivery.payload),
            question.now_ms,
            approval.expires_at,
            ApprovalStatus::Pending,
        ],
    )?;
    Ok(())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    Allow,
    Deny,
}

impl Decision {
    /// The status it gives an approval.
    pub fn status(self) -> ApprovalStatus {
        match self {
            Decision::Allow => ApprovalStatus::Allowed,
            Decision::Deny => ApprovalStatus::Denied,
        }
    }
}

#[derive(Debug, Clone)]
pub struct AnswerApproval {
    pub workspace_id: String,
    pub approval_id: String,
    pub nonce: String,
    pub decision: Decision,
    /// With other arguments for the call than it asked for, as JSON; only if it is allowed.
    pub edited: Option<String>,
    /// Who answers.
    pub by: String,
    /// What was entered, as JSON text: kept as `answer` in the payload.
    pub values: Option<String>,
    pub now_ms: i64,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Answered {
    /// Decided now; if it was allowed, its delivery is in the outbox.
    New(Box<ApprovalRow>),
    /// The same decision had been made before.
    Repeated(Box<ApprovalRow>),
    /// It was decided otherwise, has expired, or its run has ended.
    Conflict(Box<ApprovalRow>),
    WrongNonce,
    NotFound,
}

impl Command for AnswerApproval {
    type Outcome = Answered;
    const FROM_OUTSIDE: bool = true;

    fn execute(&self, tx: &mut dyn Tx) -> Result<Answered, StoreError> {
        let found = reads::approvals::get(tx, &self.workspace_id, &self.approval_id)?;
        let Some(row) = found else { return Ok(Answered::NotFound) };
        if row.request.nonce != self.nonce {
            return Ok(Answered::WrongNonce);
        }
        if row.status == self.decision.status() && self.is_same(&row) {
            return Ok(Answered::Repeated(Box::new(row)));
        }
        if row.status != ApprovalStatus::Pending {
            return Ok(Answered::Conflict(Box::new(row)));
        }
        if row.request.expires_at <= self.now_ms {
            let row = settle(tx, row, ApprovalStatus::Expired, None, self.now_ms)?;
            return Ok(Answered::Conflict(Box::new(row)));
        }
        if row.request.kind == ApprovalKind::Call && !is_waiting(tx, &row)? {
            let row = settle(tx, row, ApprovalStatus::Cancelled, None, self.now_ms)?;
            return Ok(Answered::Conflict(Box::new(row)));
        }
        if let (Decision::Allow, Some(delivery)) = (self.decision, &row.request.delivery) {
            let run = (row.workspace_id.as_str(), row.run_id.as_str());
            insert_delivery(tx, run, delivery, self.now_ms)?;
        }
        self.keep_values(tx, &row)?;
        if let Some(edited) = &self.edited {
            edit(tx, &row, edited)?;
        }
        let row = settle(tx, row, self.decision.status(), Some(&self.by), self.now_ms)?;
        Ok(Answered::New(Box::new(row)))
    }
}

impl AnswerApproval {
    /// Whether the same values and arguments were given before.
    fn is_same(&self, row: &ApprovalRow) -> bool {
        let json = |text: &str| serde_json::from_str::<Value>(text).unwrap_or_default();
        if self.edited.as_ref().is_some_and(|edited| json(edited) != json(&row.request.payload)) {
            return false;
        }
        let Some(values) = self.given() else { return true };
        let payload: Value = serde_json::from_str(&row.request.payload).unwrap_or_default();
        payload.get(ANSWER) == Some(&values)
    }

    fn given(&self) -> Option<Value> {
        serde_json::from_str(self.values.as_deref()?).ok()
    }

    fn keep_values(&self, tx: &mut dyn Tx, row: &ApprovalRow) -> Result<(), StoreError> {
        let Some(values) = self.given() else { return Ok(()) };
        let mut payload: Value = serde_json::from_str(&row.request.payload).unwrap_or_default();
        if let Value::Object(payload) = &mut payload {
            payload.insert(ANSWER.to_owned(), values);
        }
        tx.execute(
            "UPDATE approvals SET payload = ?3 WHERE workspace_id = ?1 AND approval_id = ?2",
            params![&self.workspace_id, &self.approval_id, &payload.to_string()],
        )?;
        Ok(())
    }
}

/// The key in the target of an approval with the arguments that the call asked for, if they were edited.
pub const ASKED_PAYLOAD: &str = "asked_payload";

/// Replaces the arguments of a call; the target keeps those that it asked for.
fn edit(tx: &mut dyn Tx, row: &ApprovalRow, edited: &str) -> Result<(), StoreError> {
    let mut target: serde_json::Value =
        serde_json::from_str(&row.request.target).unwrap_or_default();
    target[ASKED_PAYLOAD] = serde_json::from_str(&row.request.payload).unwrap_or_default();
    tx.execute(
        "UPDATE approvals SET payload = ?3, target = ?4
         WHERE workspace_id = ?1 AND approval_id = ?2",
        params![&row.workspace_id, &row.request.approval_id, edited, &target.to_string()],
    )?;
    Ok(())
}

/// Whether the run still waits for the answer.
fn is_waiting(tx: &mut dyn Tx, row: &ApprovalRow) -> Result<bool, StoreError> {
    let run = reads::runs::get(tx, &row.workspace_id, &row.run_id)?;
    Ok(run.is_some_and(|run| {
        run.status == RunStatus::Running && run.attempt == row.attempt && !run.cancel_requested
    }))
}

/// Settles expired approvals and returns them.
#[derive(Debug, Clone)]
pub struct ExpireApprovals {
    /// Expiry times up to this one.
    pub due_ms: i64,
    pub limit: i64,
    pub now_ms: i64,
}

impl Command for ExpireApprovals {
    type Outcome = Vec<ApprovalRow>;

    fn execute(&self, tx: &mut dyn Tx) -> Result<Vec<ApprovalRow>, StoreError> {
        let due = reads::approvals::due(tx, self.due_ms, self.limit)?;
        let settled =
            due.into_iter().map(|row| settle(tx, row, ApprovalStatus::Expired, None, self.now_ms));
        settled.collect()
    }
}

/// Cancels the approval of a call that has stopped waiting; false when it was settled before.
#[derive(Debug, Clone)]
pub struct CancelApproval {
    pub workspace_id: String,
    pub approval_id: String,
    pub now_ms: i64,
}

impl Command for CancelApproval {
    type Outcome = bool;

    fn execute(&self, tx: &mut dyn Tx) -> Result<bool, StoreError> {
        let found = reads::approvals::get(tx, &self.workspace_id, &self.approval_id)?;
        let pending = found.filter(|row| row.status == ApprovalStatus::Pending);
        let Some(row) = pending else { return Ok(false) };
        settle(tx, row, ApprovalStatus::Cancelled, None, self.now_ms)?;
        Ok(true)
    }
}

/// Cancels the pending approvals of a run's calls.
pub(super) fn cancel_calls(
    tx: &mut dyn Tx,
    workspace: &str,
    run_id: &str,
    now_ms: i64,
) -> Result<(), StoreError> {
    for row in reads::approvals::waiting(tx, workspace, run_id)? {
        settle(tx, row, ApprovalStatus::Cancelled, None, now_ms)?;
    }
    Ok(())
}

/// Settles a pending approval and adds it to the event log.
fn settle(
    tx: &mut dyn Tx,
    row: ApprovalRow,
    status: ApprovalStatus,
    by: Option<&str>,
    now_ms: i64,
) -> Result<ApprovalRow, StoreError> {
    tx.execute(
        "UPDATE approvals SET status = ?3, answered_at = ?4, answered_by = ?5
         WHERE workspace_id = ?1 AND approval_id = ?2 AND status || '' = ?6",
        params![
            &row.workspace_id,
            &row.request.approval_id,
            status,
            now_ms,
            by,
            ApprovalStatus::Pending
        ],
    )?;
    let settled = reads::approvals::get(tx, &row.workspace_id, &row.request.approval_id)?;
    let settled = settled.unwrap_or(row);
    record(tx, &settled, status.as_str(), now_ms)?;
    Ok(settled)
}

fn record(tx: &mut dyn Tx, row: &ApprovalRow, word: &str, now_ms: i64) -> Result<(), StoreError> {
    let request = &row.request;
    let target: serde_json::Value = serde_json::from_str(&request.target).unwrap_or_default();
    let mut body = json!({"approval_id": request.approval_id, "run_id": row.run_id, "agent": request.agent,
        "action": request.action, "target": target, "asked_by": request.kind.as_str(),
        "answered_by": row.answered_by});
    if target.get(ASKED_PAYLOAD).is_some() {
        body["edited"] = true.into();
        body["payload"] = serde_json::from_str(&request.payload).unwrap_or_default();
    }
    let event = HostEvent {
        event_id: format!("{}.{word}", request.approval_id),
        event_type: format!("approval.{word}"),
        body: body.to_string(),
    };
    let about = (row.conversation_id.as_deref(), Some(row.run_id.as_str()));
    insert_host_event(tx, &row.workspace_id, &event, about, now_ms)
}
