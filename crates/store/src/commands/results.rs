//! Applies results of a run: ledger, state, transcript, deliveries and the terminal.
//!
//! Invariant: everything a batch of results changes is committed together, and only while the fence holds (same
//! attempt, same epoch, still running). Late output changes nothing.

use super::Command;
use super::approvals::{Question, ask, cancel_calls};
use super::artifacts::insert_artifact;
use super::fence::{RunFence, fence, fence_params};
use super::rates::count_run;
use super::start::start_next;
use super::state::{StateWritten, write_result};
use super::steering::requeue;
use super::transcript::{ItemPosition, insert_item, set_items};
use crate::sql::{Row, Tx, prose};
use crate::types::{
    Chunk, DeliveryStatus, Diagnostic, HostEvent, NewApproval, NewArtifact, NewDelivery, NewItem,
    RunRow, StateWrite,
};
use crate::{StoreError, params, reads};
use greenroom_protocol::{RunError, RunStatus};

#[derive(Debug, Clone)]
pub struct ApplyResults {
    pub fence: RunFence,
    /// The epoch of this start of the host, for the run that starts next.
    pub epoch_now: i64,
    pub conversation_id: Option<String>,
    /// A command that changes more than the run itself has the results it follows from: a repeated command is
    /// recognised by them.
    pub chunk: Option<Chunk>,
    /// Numbers up to here may be published before they are stored.
    pub reserved_seq: i64,
    /// The run has had an effect that cannot be undone: it is not tried again.
    pub effects: bool,
    pub isolation: Option<String>,
    pub state: Vec<StateWrite>,
    pub items: Vec<NewItem>,
    pub deliveries: Vec<NewDelivery>,
    /// Artifacts of the results; their bytes are stored already.
    pub artifacts: Vec<NewArtifact>,
    /// Actions that need approval.
    pub approvals: Vec<NewApproval>,
    /// Approvals of the run that may be pending.
    pub approvals_pending_max: i64,
    pub diagnostics: Vec<Diagnostic>,
    pub log: Vec<HostEvent>,
    pub terminal: Option<Terminal>,
    pub now_ms: i64,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Terminal {
    pub status: RunStatus,
    pub error: Option<RunError>,
    pub usage: Option<Box<str>>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Applied {
    /// Committed; `next` is the run of the same conversation that started with this terminal, `requeued` how
    /// many messages became runs because it never pulled them.
    Done { next: Option<Box<RunRow>>, requeued: usize },
    /// The fence did not hold: nothing was changed.
    Stale,
}

/// The run before the update: what its end has to clean up, and where its answers go.
struct RunBefore {
    /// One of its calls has requested an approval.
    asked: bool,
    /// Messages may wait for it.
    steers: bool,
    /// The conversation's event that it answers: its own, or the last that it pulled.
    event_seq: i64,
    /// How many items the conversation has.
    items: i64,
    created_at: i64,
}

impl Command for ApplyResults {
    type Outcome = Applied;

    fn execute(&self, tx: &mut dyn Tx) -> Result<Applied, StoreError> {
        let Some(run) = self.update_run(tx)? else { return self.apply_late(tx) };
        if let Some(chunk) = &self.chunk {
            insert_chunk(tx, &self.fence.run_id, chunk)?;
        }
        for write in &self.state {
            self.write_state(tx, write)?;
        }
        self.append_items(tx, &run)?;
        for delivery in &self.deliveries {
            insert_delivery(tx, self.fence.run(), delivery, self.now_ms)?;
        }
        for artifact in &self.artifacts {
            insert_artifact(tx, &self.fence.workspace_id, artifact, self.now_ms)?;
        }
        for diagnostic in &self.diagnostics {
            insert_diagnostic(tx, &self.fence.run_id, diagnostic)?;
        }
        for event in &self.log {
            let about = (self.conversation_id.as_deref(), Some(self.fence.run_id.as_str()));
            insert_host_event(tx, &self.fence.workspace_id, event, about, self.now_ms)?;
        }
        self.ask(tx)?;
        match &self.terminal {
            Some(end) => {
                let took_ms = self.now_ms - run.created_at;
                count_run(tx, &self.fence.workspace_id, end.status, took_ms, self.now_ms)?;
                self.finish(tx, &run)
            }
            None => Ok(Applied::Done { next: None, requeued: 0 }),
        }
    }
}

impl ApplyResults {
    /// Cancels calls that wait for approval, turns messages that were never pulled into runs, and starts the next
    /// run of the lane.
    fn finish(&self, tx: &mut dyn Tx, run: &RunBefore) -> Result<Applied, StoreError> {
        let (workspace, conversation) = (&self.fence.workspace_id, self.conversation_id.as_deref());
        if run.asked {
            cancel_calls(tx, workspace, &self.fence.run_id, self.now_ms)?;
        }
        let requeued = match run.steers {
            true => requeue(tx, workspace, &self.fence.run_id, self.now_ms)?,
            false => 0,
        };
        let next = start_next(tx, workspace, conversation, self.epoch_now, self.now_ms)?;
        Ok(Applied::Done { next, requeued })
    }

    /// Stores approval requests of results; one over the limit becomes a diagnostic.
    fn ask(&self, tx: &mut dyn Tx) -> Result<(), StoreError> {
        for approval in &self.approvals {
            let asked = ask(
                tx,
                &Question {
                    workspace_id: &self.fence.workspace_id,
                    run_id: &self.fence.run_id,
                    attempt: self.fence.attempt,
                    conversation_id: self.conversation_id.as_deref(),
                    approval,
                    pending_max: self.approvals_pending_max,
                    now_ms: self.now_ms,
                },
            )?;
            if !asked {
                let max = self.approvals_pending_max;
                let diagnostic = Diagnostic {
                    kind: "refused_result".to_owned(),
                    message: format!("more than {max} approvals of this run are pending"),
                    created_at: self.now_ms,
                };
                insert_diagnostic(tx, &self.fence.run_id, &diagnostic)?;
            }
        }
        Ok(())
    }

    /// Updates the run; none when the fence does not hold.
    fn update_run(&self, tx: &mut dyn Tx) -> Result<Option<RunBefore>, StoreError> {
        let first_seq = self.chunk.as_ref().map(|chunk| chunk.first_seq);
        let last_seq = self.chunk.as_ref().map(|chunk| chunk.last_seq);
        let status = self.terminal.as_ref().map_or(RunStatus::Running, |end| end.status);
        let finished_at = self.terminal.as_ref().map(|_| self.now_ms);
        let error = self.terminal.as_ref().and_then(|end| end.error.as_ref());
        let error_code = error.map(|error| prose(&error.code));
        let error = error.and_then(|error| serde_json::to_string(error).ok());
        let usage = self.terminal.as_ref().and_then(|end| end.usage.as_deref());
        let row = tx.query_opt(
            concat!(
                "UPDATE runs SET last_seq = COALESCE(CAST(?6 AS BIGINT), last_seq),
                     reserved_seq = CASE WHEN reserved_seq > ?7 THEN reserved_seq ELSE ?7 END,
                     effects = CASE WHEN ?8 = 1 THEN 1 ELSE effects END,
                     isolation = COALESCE(CAST(?9 AS TEXT), isolation),
                     status = ?10, finished_at = ?11, error = ?12, error_code = ?13, usage = ?14
                 WHERE ",
                fence!(),
                " AND (CAST(?15 AS BIGINT) IS NULL OR last_seq < ?15)
                 RETURNING asked, steers, COALESCE(steered_seq, conversation_seq, 0), created_at,
                     COALESCE((SELECT transcript_seq FROM conversations
                         WHERE workspace_id = ?1 AND conversation_id = ?16), 0)"
            ),
            fence_params![
                self.fence,
                last_seq,
                self.reserved_seq,
                i64::from(self.effects),
                &self.isolation,
                status,
                finished_at,
                &error,
                &error_code,
                usage,
                first_seq,
                &self.conversation_id,
            ],
        )?;
        let read = |mut row: Row| {
            let (asked, steers) = (row.int()? != 0, row.int()? != 0);
            let (event_seq, created_at) = (row.int()?, row.int()?);
            Ok(RunBefore { asked, steers, event_seq, created_at, items: row.int()? })
        };
        row.map(read).transpose()
    }

    /// Distinguishes a repeated command (the first one was committed) from a late one.
    fn apply_late(&self, tx: &mut dyn Tx) -> Result<Applied, StoreError> {
        let run = reads::runs::get(tx, &self.fence.workspace_id, &self.fence.run_id)?;
        let ours = |run: &RunRow| run.fence() == self.fence;
        let Some(run) = run.filter(ours) else { return Ok(Applied::Stale) };
        let status = self.terminal.as_ref().map_or(RunStatus::Running, |end| end.status);
        let finished_at = self.terminal.as_ref().map(|_| self.now_ms);
        let same = run.status == status && run.finished_at == finished_at;
        if !same || !self.is_chunk_stored(tx)? {
            return Ok(Applied::Stale);
        }
        let next = match (&self.terminal, &self.conversation_id) {
            (Some(_), Some(conversation)) => {
                reads::runs::started_at(tx, &self.fence.workspace_id, conversation, self.now_ms)?
                    .map(Box::new)
            }
            _ => None,
        };
        Ok(Applied::Done { next, requeued: 0 })
    }

    fn is_chunk_stored(&self, tx: &mut dyn Tx) -> Result<bool, StoreError> {
        let Some(chunk) = &self.chunk else { return Ok(false) };
        let found = tx.query_opt(
            "SELECT body FROM results WHERE run_id = ?1 AND first_seq = ?2",
            params![&self.fence.run_id, chunk.first_seq],
        )?;
        Ok(found.map(|mut row| row.text()).transpose()?.as_ref() == Some(&chunk.body))
    }

    /// A value over the quota is not written, and the run's diagnostics say so.
    fn write_state(&self, tx: &mut dyn Tx, write: &StateWrite) -> Result<(), StoreError> {
        let written = write_result(tx, &self.fence.workspace_id, write, self.now_ms)?;
        let StateWritten::OverQuota { used, max } = written else { return Ok(()) };
        let message =
            format!("`{}` was not written: its scope has {used} of {max} bytes in use", write.name);
        let kind = "state.over_quota".to_owned();
        insert_diagnostic(
            tx,
            &self.fence.run_id,
            &Diagnostic { kind, message, created_at: self.now_ms },
        )
    }

    fn append_items(&self, tx: &mut dyn Tx, run: &RunBefore) -> Result<(), StoreError> {
        let Some(conversation) = &self.conversation_id else { return Ok(()) };
        let Ok(count @ 1..) = i64::try_from(self.items.len()) else { return Ok(()) };
        let workspace = self.fence.workspace_id.as_str();
        set_items(tx, workspace, conversation, run.items + count)?;
        let event_seq = run.event_seq;
        let position = ItemPosition { workspace, conversation, event_seq, event_type: None };
        for (seq, item) in (run.items + 1..).zip(&self.items) {
            insert_item(tx, position, seq, item, self.now_ms)?;
        }
        Ok(())
    }
}

/// Puts a delivery into the outbox unless it exists.
pub(super) fn insert_delivery(
    tx: &mut dyn Tx,
    (workspace, run_id): (&str, &str),
    delivery: &NewDelivery,
    now_ms: i64,
) -> Result<(), StoreError> {
    tx.execute(
        "INSERT INTO outbox (workspace_id, delivery_id, surface, target, run_id, sequence,
             payload, status, attempts, created_at, updated_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?9, 0, ?8, ?8)
         ON CONFLICT (delivery_id) DO NOTHING",
        params![
            workspace,
            &delivery.delivery_id,
            &delivery.surface,
            &delivery.target,
            run_id,
            delivery.sequence,
            &delivery.payload,
            now_ms,
            DeliveryStatus::Pending,
        ],
    )?;
    Ok(())
}

pub(super) fn insert_chunk(tx: &mut dyn Tx, run_id: &str, chunk: &Chunk) -> Result<(), StoreError> {
    tx.execute(
        "INSERT INTO results (run_id, first_seq, last_seq, body) VALUES (?1, ?2, ?3, ?4)",
        params![run_id, chunk.first_seq, chunk.last_seq, &chunk.body],
    )?;
    Ok(())
}

/// The same diagnostic of the same time is stored once, so that a repeated command adds nothing.
pub(super) fn insert_diagnostic(
    tx: &mut dyn Tx,
    run_id: &str,
    Diagnostic { kind, message, created_at }: &Diagnostic,
) -> Result<(), StoreError> {
    tx.execute(
        "INSERT INTO diagnostics (run_id, kind, message, created_at)
         SELECT ?1, ?2, ?3, ?4 WHERE NOT EXISTS (SELECT 1 FROM diagnostics
             WHERE run_id = ?1 AND kind = ?2 AND message = ?3 AND created_at = ?4)",
        params![run_id, &prose(kind), &prose(message), *created_at],
    )?;
    Ok(())
}

/// The source of the host's own events.
pub(super) const HOST: &str = "host";

/// Appends an event of the host itself to the log, in the session of its run; a repeated one changes nothing.
pub(super) fn insert_host_event(
    tx: &mut dyn Tx,
    workspace: &str,
    event: &HostEvent,
    (conversation, run_id): (Option<&str>, Option<&str>),
    now_ms: i64,
) -> Result<(), StoreError> {
    tx.execute(
        "INSERT INTO events (workspace_id, source, event_id, body_hash, event_type,
             conversation_id, run_id, body, created_at, session)
         VALUES (?1, ?9, ?2, ?3, ?4, ?5, ?6, ?7, ?8, COALESCE(
             (SELECT session FROM runs WHERE workspace_id = ?1 AND run_id = ?6), ''))
         ON CONFLICT (workspace_id, source, event_id) DO NOTHING",
        params![
            workspace,
            &event.event_id,
            [0_u8; 32].as_slice(),
            &event.event_type,
            conversation,
            run_id,
            &event.body,
            now_ms,
            HOST,
        ],
    )?;
    Ok(())
}
