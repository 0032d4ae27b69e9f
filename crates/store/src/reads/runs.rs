//! Runs, one by id or a page of them, newest first.

use crate::sql::{Row, Tx};
use crate::types::{Diagnostic, OnInterrupt, Queue, RunRow};
use crate::{StoreError, params};
use greenroom_protocol::RunStatus;

/// The columns of a run, in the order in which `read` takes them.
macro_rules! select {
    ($tail:literal) => {
        concat!(
            "SELECT workspace_id, run_id, event_seq, event_id, agent, runner_id, conversation_id,
                 conversation_seq, transcript_seq, queue, status, attempt, epoch, grant_hash,
                 on_interrupt, deadline_ms, surface, last_seq, reserved_seq, effects,
                 cancel_requested, steers, created_at, started_at, finished_at, error, usage,
                 isolation
             FROM runs ",
            $tail
        )
    };
}

pub fn get(tx: &mut dyn Tx, workspace: &str, run_id: &str) -> Result<Option<RunRow>, StoreError> {
    let row = tx.query_opt(
        select!("WHERE workspace_id = ?1 AND run_id = ?2"),
        params![workspace, run_id],
    )?;
    row.map(read).transpose()
}

/// The run of a conversation that was started at a given moment by the host.
pub(crate) fn started_at(
    tx: &mut dyn Tx,
    workspace: &str,
    conversation: &str,
    started_at: i64,
) -> Result<Option<RunRow>, StoreError> {
    let row = tx.query_opt(
        select!(
            "WHERE workspace_id = ?1 AND conversation_id = ?2
               AND status IN ('queued', 'running') AND status = 'running'
               AND queue <> 'parallel' AND started_at = ?3 LIMIT 1"
        ),
        params![workspace, conversation, started_at],
    )?;
    row.map(read).transpose()
}

/// Every run that has not ended, in the order of its events; for recovery.
pub fn open(tx: &mut dyn Tx) -> Result<Vec<RunRow>, StoreError> {
    let rows =
        tx.query(select!("WHERE status IN ('queued', 'running') ORDER BY event_seq"), &[])?;
    rows.into_iter().map(read).collect()
}

/// What a listing is narrowed to.
#[derive(Debug, Clone, Default)]
pub struct RunFilter {
    pub conversation_id: Option<String>,
    pub agent: Option<String>,
    pub status: Option<RunStatus>,
}

/// A page of runs, newest first, older than `before`.
pub fn page(
    tx: &mut dyn Tx,
    workspace: &str,
    filter: &RunFilter,
    before: Option<&str>,
    limit: i64,
) -> Result<Vec<RunRow>, StoreError> {
    let status = filter.status.map(RunStatus::as_str);
    let rows = match &filter.conversation_id {
        // `|| ''` keeps SQLite from walking through the whole workspace for one conversation.
        Some(conversation) => tx.query(
            select!(
                "WHERE workspace_id || '' = ?1 AND conversation_id = ?2
                   AND (CAST(?3 AS TEXT) IS NULL OR run_id < ?3)
                   AND (CAST(?4 AS TEXT) IS NULL OR agent = ?4)
                   AND (CAST(?5 AS TEXT) IS NULL OR status = ?5)
                 ORDER BY run_id DESC LIMIT ?6"
            ),
            params![workspace, conversation, before, &filter.agent, status, limit],
        )?,
        None => tx.query(
            select!(
                "WHERE workspace_id = ?1
                   AND (CAST(?2 AS TEXT) IS NULL OR run_id < ?2)
                   AND (CAST(?3 AS TEXT) IS NULL OR agent = ?3)
                   AND (CAST(?4 AS TEXT) IS NULL OR status = ?4)
                 ORDER BY run_id DESC LIMIT ?5"
            ),
            params![workspace, before, &filter.agent, status, limit],
        )?,
    };
    rows.into_iter().map(read).collect()
}

/// A grant's document by its hash.
pub fn grant(tx: &mut dyn Tx, hash: &str) -> Result<Option<String>, StoreError> {
    let row = tx.query_opt("SELECT body FROM grants WHERE hash = ?1", params![hash])?;
    row.map(|mut row| row.text()).transpose()
}

/// What a run sent that took no number.
pub fn diagnostics(
    tx: &mut dyn Tx,
    run_id: &str,
    limit: i64,
) -> Result<Vec<Diagnostic>, StoreError> {
    let rows = tx.query(
        "SELECT kind, message, created_at FROM diagnostics WHERE run_id = ?1 ORDER BY id LIMIT ?2",
        params![run_id, limit],
    )?;
    rows.into_iter()
        .map(|mut row| {
            Ok(Diagnostic { kind: row.text()?, message: row.text()?, created_at: row.int()? })
        })
        .collect()
}

fn read(mut row: Row) -> Result<RunRow, StoreError> {
    Ok(RunRow {
        workspace_id: row.text()?,
        run_id: row.text()?,
        event_seq: row.int()?,
        event_id: row.text()?,
        agent: row.text()?,
        runner_id: row.text()?,
        conversation_id: row.opt_text()?,
        conversation_seq: row.opt_int()?,
        transcript_seq: row.opt_int()?,
        queue: Queue::parse(&row.text()?).ok_or_else(|| strange("queue"))?,
        status: RunStatus::parse(&row.text()?).ok_or_else(|| strange("status"))?,
        attempt: row.int()?,
        epoch: row.int()?,
        grant_hash: row.opt_text()?,
        on_interrupt: match row.text()?.as_str() {
            "retry" => OnInterrupt::Retry,
            _ => OnInterrupt::Fail,
        },
        deadline_ms: row.int()?,
        surface: row.opt_text()?,
        last_seq: row.int()?,
        reserved_seq: row.int()?,
        effects: row.int()? != 0,
        cancel_requested: row.int()? != 0,
        steers: row.int()? != 0,
        created_at: row.int()?,
        started_at: row.opt_int()?,
        finished_at: row.opt_int()?,
        error: row.opt_text()?.and_then(|text| serde_json::from_str(&text).ok()),
        usage: row.opt_text()?.map(String::into_boxed_str),
        isolation: row.opt_text()?,
    })
}

fn strange(column: &str) -> StoreError {
    StoreError::Refused(format!("a run has an unknown {column}"))
}
