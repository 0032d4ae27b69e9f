//! Changes of a run other than results: late grant, cancellation, new attempt.
//!
//! Invariant: a run that was cancelled or has had an effect is never started again.

use super::Command;
use super::accept::insert_grant;
use super::approvals::cancel_calls;
use super::fence::{RunFence, fence, fence_params};
use super::rates::count_run;
use super::results::{insert_chunk, insert_diagnostic};
use super::start::start_next;
use crate::chunk::ChunkBuilder;
use crate::sql::Tx;
use crate::types::{Chunk, Diagnostic, GrantDoc, RunRow};
use crate::{StoreError, params, reads};
use greenroom_protocol::error::run_code;
use greenroom_protocol::{RunError, RunStatus};

/// Sets the grant of a run that was accepted before its runner's manifest was known.
#[derive(Debug, Clone)]
pub struct FreezeGrant {
    pub fence: RunFence,
    pub grant: GrantDoc,
    /// The grant lets the run pull messages that arrive while it runs.
    pub steers: bool,
}

impl Command for FreezeGrant {
    type Outcome = bool;

    fn execute(&self, tx: &mut dyn Tx) -> Result<bool, StoreError> {
        let changed = tx.execute(
            concat!(
                "UPDATE runs SET grant_hash = ?6, steers = ?7 WHERE ",
                fence!(),
                " AND (grant_hash IS NULL OR grant_hash = ?6)"
            ),
            fence_params![self.fence, &self.grant.hash, i64::from(self.steers)],
        )?;
        if changed == 1 {
            insert_grant(tx, &self.grant)?;
        }
        Ok(changed == 1)
    }
}

/// Cancels a run: at once while it is queued, by a stored mark while it runs.
#[derive(Debug, Clone)]
pub struct CancelQueued {
    pub workspace_id: String,
    pub run_id: String,
    pub epoch_now: i64,
    pub now_ms: i64,
}

#[derive(Debug, Clone, PartialEq)]
pub enum CancelRequest {
    NotFound,
    /// It was queued and is cancelled now.
    Cancelled {
        run: Box<RunRow>,
        next: Option<Box<RunRow>>,
    },
    /// It runs: the host has to end it.
    Running,
    /// It had ended before.
    Ended(RunStatus),
}

impl Command for CancelQueued {
    type Outcome = CancelRequest;
    const FROM_OUTSIDE: bool = true;

    fn execute(&self, tx: &mut dyn Tx) -> Result<CancelRequest, StoreError> {
        let Some(run) = reads::runs::get(tx, &self.workspace_id, &self.run_id)? else {
            return Ok(CancelRequest::NotFound);
        };
        match run.status {
            RunStatus::Queued => {
                let ended = end_queued(tx, &self.workspace_id, &self.run_id, self.now_ms)?;
                let conversation = run.conversation_id.as_deref();
                let next =
                    start_next(tx, &self.workspace_id, conversation, self.epoch_now, self.now_ms)?;
                Ok(ended.map_or(CancelRequest::NotFound, |run| CancelRequest::Cancelled {
                    run: Box::new(run),
                    next,
                }))
            }
            RunStatus::Running => {
                mark_cancelled(tx, &self.workspace_id, &self.run_id, self.now_ms)?;
                Ok(CancelRequest::Running)
            }
            ended => Ok(CancelRequest::Ended(ended)),
        }
    }
}

/// Starts a new attempt of a run that was interrupted, announced by a result of the host; it has to pull messages
/// again. Refused when the run has had an effect or was to be cancelled, and when the chunk would reuse a number
/// that a reader may have seen.
#[derive(Debug, Clone)]
pub struct RestartRun {
    /// The run in the attempt and epoch that were interrupted.
    pub fence: RunFence,
    pub epoch_now: i64,
    /// Holds `run.restarted`, numbered above what was reserved.
    pub chunk: Chunk,
    pub reserved_seq: i64,
    pub now_ms: i64,
}

impl Command for RestartRun {
    type Outcome = bool;

    fn execute(&self, tx: &mut dyn Tx) -> Result<bool, StoreError> {
        let (workspace, run_id) = self.fence.run();
        let attempt = self.fence.attempt + 1;
        let changed = tx.execute(
            concat!(
                "UPDATE runs SET attempt = ?6, epoch = ?7, started_at = ?8, last_seq = ?9,
                     steered_seq = NULL,
                     reserved_seq = CASE WHEN reserved_seq > ?10 THEN reserved_seq ELSE ?10 END
                 WHERE ",
                fence!(),
                " AND effects = 0 AND cancel_requested = 0 AND reserved_seq < ?11"
            ),
            fence_params![
                self.fence,
                attempt,
                self.epoch_now,
                self.now_ms,
                self.chunk.last_seq,
                self.reserved_seq,
                self.chunk.first_seq,
            ],
        )?;
        if changed == 1 {
            insert_chunk(tx, run_id, &self.chunk)?;
            return Ok(true);
        }
        let run = reads::runs::get(tx, workspace, run_id)?;
        Ok(run.is_some_and(|run| {
            run.attempt == attempt
                && run.epoch == self.epoch_now
                && run.status == RunStatus::Running
        }))
    }
}

/// Stores what a run sent after its end.
#[derive(Debug, Clone)]
pub struct RecordDiagnostics {
    pub run_id: String,
    pub diagnostics: Vec<Diagnostic>,
}

impl Command for RecordDiagnostics {
    type Outcome = bool;

    fn execute(&self, tx: &mut dyn Tx) -> Result<bool, StoreError> {
        for diagnostic in &self.diagnostics {
            insert_diagnostic(tx, &self.run_id, diagnostic)?;
        }
        Ok(true)
    }
}

/// Writes the terminal of a queued run.
pub(super) fn end_queued(
    tx: &mut dyn Tx,
    workspace: &str,
    run_id: &str,
    now_ms: i64,
) -> Result<Option<RunRow>, StoreError> {
    let Some(run) = reads::runs::get(tx, workspace, run_id)? else { return Ok(None) };
    let error = RunError {
        code: run_code::CANCELLED.to_owned(),
        message: "cancelled before it started".to_owned(),
        retryable: false,
    };
    let seq = run.last_seq.max(0) + 1;
    let chunk = ChunkBuilder::terminal_failed(seq, &error, now_ms);
    let error_text = serde_json::to_string(&error).unwrap_or_default();
    let ended = tx.execute(
        "UPDATE runs SET status = ?7, finished_at = ?3, error = ?4, error_code = ?6, last_seq = ?5
         WHERE workspace_id = ?1 AND run_id = ?2 AND status = ?8",
        params![
            workspace,
            run_id,
            now_ms,
            &error_text,
            seq,
            &error.code,
            RunStatus::Cancelled,
            RunStatus::Queued
        ],
    )?;
    if ended == 1 {
        count_run(tx, workspace, RunStatus::Cancelled, now_ms - run.created_at, now_ms)?;
    }
    insert_chunk(tx, run_id, &chunk)?;
    reads::runs::get(tx, workspace, run_id)
}

/// Marks a running run, so that a crash before its terminal does not bring it back, and cancels the approvals
/// that its calls wait for.
pub(super) fn mark_cancelled(
    tx: &mut dyn Tx,
    workspace: &str,
    run_id: &str,
    now_ms: i64,
) -> Result<(), StoreError> {
    let marked = tx.query_opt(
        "UPDATE runs SET cancel_requested = 1
         WHERE workspace_id = ?1 AND run_id = ?2 AND status = ?3 RETURNING asked",
        params![workspace, run_id, RunStatus::Running],
    )?;
    let asked = marked.map(|mut row| row.int()).transpose()?;
    if asked == Some(1) {
        cancel_calls(tx, workspace, run_id, now_ms)?;
    }
    Ok(())
}
