//! Approvals, one by id or a page of them, newest first.

use crate::approvals::{ApprovalKind, ApprovalRow, ApprovalStatus, Delivered, NewApproval};
use crate::conditions::approval_is_pending;
use crate::sql::{Row, Tx};
use crate::types::{DeliveryStatus, NewDelivery};
use crate::{StoreError, params};

/// The columns of an approval, in the order in which `read` takes them.
macro_rules! select {
    ($($tail:tt)+) => {
        concat!(
            "SELECT a.workspace_id, a.run_id, a.attempt, a.conversation_id, a.approval_id, a.nonce,
                 a.kind, a.agent, a.runner_id, a.actor, a.action, a.target, a.payload,
                 a.delivery_id, a.surface, a.lane, a.sequence, a.delivery, a.expires_at, a.status,
                 a.created_at, a.answered_at, a.answered_by, o.status, o.error
             FROM approvals a LEFT JOIN outbox o ON o.delivery_id = a.delivery_id ",
            $($tail)+
        )
    };
}

pub fn get(
    tx: &mut dyn Tx,
    workspace: &str,
    approval_id: &str,
) -> Result<Option<ApprovalRow>, StoreError> {
    let row = tx.query_opt(
        select!("WHERE a.workspace_id = ?1 AND a.approval_id = ?2"),
        params![workspace, approval_id],
    )?;
    row.map(read).transpose()
}

/// What a listing is narrowed to.
#[derive(Debug, Clone, Default)]
pub struct ApprovalFilter {
    pub status: Option<ApprovalStatus>,
    pub run_id: Option<String>,
}

/// A page of approvals, newest first, older than `before`.
pub fn page(
    tx: &mut dyn Tx,
    workspace: &str,
    filter: &ApprovalFilter,
    before: Option<&str>,
    limit: i64,
) -> Result<Vec<ApprovalRow>, StoreError> {
    let status = filter.status;
    let rows = match (&filter.run_id, filter.status) {
        (Some(run_id), _) => tx.query(
            select!(
                "WHERE a.run_id = ?2 AND a.workspace_id || '' = ?1
                   AND (CAST(?3 AS TEXT) IS NULL OR a.approval_id < ?3)
                   AND (CAST(?4 AS TEXT) IS NULL OR a.status = ?4)
                 ORDER BY a.approval_id DESC LIMIT ?5"
            ),
            params![workspace, run_id, before, status, limit],
        )?,
        (None, Some(ApprovalStatus::Pending)) => tx.query(
            select!(
                "WHERE a.workspace_id = ?1 AND a.",
                approval_is_pending!(),
                " AND (CAST(?2 AS TEXT) IS NULL OR a.approval_id < ?2)
                 ORDER BY a.approval_id DESC LIMIT ?3"
            ),
            params![workspace, before, limit],
        )?,
        (None, _) => tx.query(
            select!(
                "WHERE a.workspace_id = ?1
                   AND (CAST(?2 AS TEXT) IS NULL OR a.approval_id < ?2)
                   AND (CAST(?3 AS TEXT) IS NULL OR a.status = ?3)
                 ORDER BY a.approval_id DESC LIMIT ?4"
            ),
            params![workspace, before, status, limit],
        )?,
    };
    rows.into_iter().map(read).collect()
}

/// When the next pending approval expires.
pub fn next_due(tx: &mut dyn Tx) -> Result<Option<i64>, StoreError> {
    let row = tx.query_opt(
        concat!(
            "SELECT expires_at FROM approvals WHERE ",
            approval_is_pending!(),
            " AND expires_at >= 0 ORDER BY expires_at LIMIT 1"
        ),
        &[],
    )?;
    row.map(|mut row| row.int()).transpose()
}

/// Pending approvals that have expired, the earliest first.
pub(crate) fn due(tx: &mut dyn Tx, at_ms: i64, limit: i64) -> Result<Vec<ApprovalRow>, StoreError> {
    let rows = tx.query(
        select!(
            "WHERE a.",
            approval_is_pending!(),
            " AND a.expires_at <= ?1 ORDER BY a.expires_at LIMIT ?2"
        ),
        params![at_ms, limit],
    )?;
    rows.into_iter().map(read).collect()
}

/// The calls of a run that wait for an answer.
pub(crate) fn waiting(
    tx: &mut dyn Tx,
    workspace: &str,
    run_id: &str,
) -> Result<Vec<ApprovalRow>, StoreError> {
    let rows = tx.query(
        select!(
            "WHERE a.run_id = ?2 AND a.workspace_id || '' = ?1 AND a.status || '' = ?3
               AND a.kind = ?4 ORDER BY a.approval_id"
        ),
        params![workspace, run_id, ApprovalStatus::Pending, ApprovalKind::Call],
    )?;
    rows.into_iter().map(read).collect()
}

/// How many approvals of a run are pending.
pub(crate) fn count_pending(
    tx: &mut dyn Tx,
    workspace: &str,
    run_id: &str,
) -> Result<i64, StoreError> {
    let row = tx.query_opt(
        "SELECT count(*) FROM approvals
         WHERE run_id = ?2 AND workspace_id || '' = ?1 AND status || '' = ?3",
        params![workspace, run_id, ApprovalStatus::Pending],
    )?;
    row.map_or(Ok(0), |mut row| row.int())
}

fn read(mut row: Row) -> Result<ApprovalRow, StoreError> {
    Ok(ApprovalRow {
        workspace_id: row.text()?,
        run_id: row.text()?,
        attempt: row.int()?,
        conversation_id: row.opt_text()?,
        request: read_request(&mut row)?,
        status: ApprovalStatus::parse(&row.text()?).ok_or_else(|| unknown("status"))?,
        created_at: row.int()?,
        answered_at: row.opt_int()?,
        answered_by: row.opt_text()?,
        delivered: read_delivered(&mut row)?,
    })
}

fn read_request(row: &mut Row) -> Result<NewApproval, StoreError> {
    Ok(NewApproval {
        approval_id: row.text()?,
        nonce: row.text()?,
        kind: ApprovalKind::parse(&row.text()?).ok_or_else(|| unknown("kind"))?,
        agent: row.text()?,
        runner_id: row.text()?,
        actor: row.opt_text()?,
        action: row.text()?,
        target: row.text()?,
        payload: row.text()?,
        delivery: read_delivery(row)?,
        expires_at: row.int()?,
    })
}

fn read_delivery(row: &mut Row) -> Result<Option<NewDelivery>, StoreError> {
    let delivery = NewDelivery {
        delivery_id: row.text()?,
        surface: row.text()?,
        target: row.text()?,
        sequence: row.int()?,
        payload: row.text()?,
    };
    Ok(Some(delivery).filter(|delivery| !delivery.delivery_id.is_empty()))
}

fn read_delivered(row: &mut Row) -> Result<Option<Delivered>, StoreError> {
    let (status, error) = (row.opt_text()?, row.opt_text()?);
    let Some(status) = status else { return Ok(None) };
    let status = DeliveryStatus::parse(&status).ok_or_else(|| unknown("delivery"))?;
    Ok(Some(Delivered { status, error }))
}

fn unknown(column: &str) -> StoreError {
    StoreError::Refused(format!("an approval has an unknown {column}"))
}
