//! Messages for an active run: stored, pulled by it, or turned into runs after its end.
//!
//! Invariant: a message belongs to one run at a time. Messages up to a run's `steered_seq` were pulled; later ones
//! become queued runs in the transaction of its terminal.

use super::Command;
use super::accept::{AcceptEvent, Accepted, Admission, insert_grant, insert_run};
use super::audit::insert_outcome;
use super::fence::RunFence;
use super::results::insert_host_event;
use crate::audit::{AuditRecord, OK};
use crate::sql::Tx;
use crate::types::{EventRow, HostEvent, Queue, RunRow};
use crate::{StoreError, params, reads};
use greenroom_protocol::{ErrorCode, RunStatus};
use serde_json::json;

impl AcceptEvent {
    /// The active run that takes this message: of the same agent, runner, session and surface, with no queued run
    /// that the message would overtake.
    pub(super) fn steerable(&self, tx: &mut dyn Tx) -> Result<Option<RunRow>, StoreError> {
        let (Some(run), Some(conversation)) = (&self.run, &self.conversation_id) else {
            return Ok(None);
        };
        if run.queue != Queue::Steer || run.steering_length_max.is_none() {
            return Ok(None);
        }
        let open = tx.query(
            "SELECT run_id, status, queue FROM runs
             WHERE workspace_id = ?1 AND conversation_id = ?2 AND finished_at IS NULL",
            params![&self.workspace_id, conversation],
        )?;
        let mut active = None;
        for mut row in open {
            let (run_id, status, queue) = (row.text()?, row.text()?, row.text()?);
            if status != RunStatus::Running.as_str() {
                return Ok(None);
            }
            if queue == Queue::Steer.as_str() {
                active = Some(run_id);
            }
        }
        let Some(active) = active else { return Ok(None) };
        let active = reads::runs::get(tx, &self.workspace_id, &active)?.filter(|active| {
            active.steers
                && !active.cancel_requested
                && active.agent == run.agent
                && active.runner_id == run.runner_id
                && active.surface == run.surface
                && active.session == self.session()
        });
        Ok(active)
    }

    /// Stores the message for that run.
    pub(super) fn steer(&self, tx: &mut dyn Tx, active: RunRow) -> Result<Accepted, StoreError> {
        let Some(run) = &self.run else { return Ok(Accepted::LaneFull) };
        let waiting = pending(tx, &self.workspace_id, &active.run_id, i64::MAX)?.len();
        if i64::try_from(waiting).unwrap_or(i64::MAX) >= run.steering_length_max.unwrap_or(0) {
            return Ok(Accepted::LaneFull);
        }
        let theirs = AcceptEvent {
            item: self.item.clone().map(|mut item| {
                item.run_id = Some(active.run_id.clone());
                item
            }),
            ..self.clone()
        };
        let (conversation_seq, transcript_seq) = theirs.append_to_conversation(tx)?;
        let event_seq = self.insert_event(tx, Some(&active.run_id), conversation_seq)?;
        let row = self.row(run, Admission::Wait, event_seq, conversation_seq, transcript_seq);
        let new_run = serde_json::to_string(&row).map_err(|error| damaged(&error))?;
        tx.execute(
            "INSERT INTO steering (workspace_id, run_id, conversation_seq, event_seq, new_run)
             VALUES (?1, ?2, ?3, ?4, ?5)",
            params![&self.workspace_id, &active.run_id, conversation_seq, event_seq, &new_run],
        )?;
        if let Some(grant) = &run.grant {
            insert_grant(tx, grant)?;
        }
        Ok(Accepted::Steered { run: Box::new(active) })
    }
}

/// Returns the messages that wait for a live run, the oldest first.
#[derive(Debug, Clone)]
pub struct PullSteering {
    pub fence: RunFence,
    pub limit: i64,
    /// Limit for the size of the events; the first is always returned.
    pub bytes_max: usize,
    pub audit: Option<AuditRecord>,
    pub now_ms: i64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pulled {
    /// The messages' events in order.
    Events(Vec<EventRow>),
    /// The run has ended, or was to be cancelled.
    Stale,
}

impl Command for PullSteering {
    type Outcome = Pulled;

    fn execute(&self, tx: &mut dyn Tx) -> Result<Pulled, StoreError> {
        let pulled = self.pull(tx)?;
        let code = match &pulled {
            Pulled::Events(_) => OK,
            Pulled::Stale => ErrorCode::Unauthorized.as_str(),
        };
        let handed_out = |events: &[EventRow]| -> usize {
            events.iter().map(|event| event.body.as_ref().map_or(0, String::len)).sum()
        };
        let record = self.audit.as_ref().map(|record| AuditRecord {
            bytes_out: match &pulled {
                Pulled::Events(events) => i64::try_from(handed_out(events)).unwrap_or(i64::MAX),
                Pulled::Stale => 0,
            },
            ..record.clone()
        });
        insert_outcome(tx, self.fence.run(), record.as_ref(), code)?;
        Ok(pulled)
    }
}

impl PullSteering {
    fn pull(&self, tx: &mut dyn Tx) -> Result<Pulled, StoreError> {
        let RunFence { workspace_id, run_id, attempt, .. } = &self.fence;
        if !self.fence.holds(tx)? {
            return Ok(Pulled::Stale);
        }
        let waiting = pending(tx, workspace_id, run_id, self.limit)?;
        let mut events = Vec::with_capacity(waiting.len());
        let (mut last, mut bytes) = (None, 0);
        for message in &waiting {
            let event = reads::events::load(tx, workspace_id, message.event_seq)?;
            let Some(event) = event else { continue };
            bytes += event.body.as_ref().map_or(0, String::len);
            if bytes > self.bytes_max && last.is_some() {
                break;
            }
            last = Some(message.conversation_seq);
            let log = HostEvent {
                event_id: format!("{run_id}.{attempt}.injected.{}", message.conversation_seq),
                event_type: "steering.injected".to_owned(),
                body: json!({"run_id": run_id, "event_id": event.event_id,
                    "source": event.source, "attempt": attempt})
                .to_string(),
            };
            let about = (event.conversation_id.as_deref(), Some(run_id.as_str()));
            insert_host_event(tx, workspace_id, &log, about, self.now_ms)?;
            events.push(event);
        }
        if let Some(last) = last {
            tx.execute(
                "UPDATE runs SET steered_seq = ?3 WHERE workspace_id = ?1 AND run_id = ?2",
                params![workspace_id, run_id, last],
            )?;
        }
        Ok(Pulled::Events(events))
    }
}

struct Waiting {
    conversation_seq: i64,
    event_seq: i64,
    new_run: String,
}

/// Messages that a run has not pulled, the oldest first.
fn pending(
    tx: &mut dyn Tx,
    workspace: &str,
    run_id: &str,
    limit: i64,
) -> Result<Vec<Waiting>, StoreError> {
    let rows = tx.query(
        "SELECT conversation_seq, event_seq, new_run FROM steering
         WHERE workspace_id = ?1 AND run_id = ?2 AND conversation_seq > COALESCE(
             (SELECT steered_seq FROM runs WHERE workspace_id = ?1 AND run_id = ?2), 0)
         ORDER BY conversation_seq LIMIT ?3",
        params![workspace, run_id, limit],
    )?;
    rows.into_iter()
        .map(|mut row| {
            Ok(Waiting {
                conversation_seq: row.int()?,
                event_seq: row.int()?,
                new_run: row.text()?,
            })
        })
        .collect()
}

/// At the end of a run: turns messages that it never pulled into queued runs and returns how many.
pub(super) fn requeue(
    tx: &mut dyn Tx,
    workspace: &str,
    run_id: &str,
    now_ms: i64,
) -> Result<usize, StoreError> {
    let waiting = pending(tx, workspace, run_id, i64::MAX)?;
    for message in &waiting {
        let run: RunRow =
            serde_json::from_str(&message.new_run).map_err(|error| damaged(&error))?;
        insert_run(tx, &run)?;
        tx.execute(
            "UPDATE events SET run_id = ?2 WHERE seq = ?1",
            params![message.event_seq, &run.run_id],
        )?;
        tx.execute(
            "UPDATE transcript SET run_id = ?4
             WHERE workspace_id = ?1 AND conversation_id = ?2 AND event_seq = ?3",
            params![workspace, &run.conversation_id, run.conversation_seq, &run.run_id],
        )?;
        let log = HostEvent {
            event_id: format!("{run_id}.requeued.{}", message.conversation_seq),
            event_type: "steering.requeued".to_owned(),
            body: json!({"run_id": run.run_id, "event_id": run.event_id, "steered": run_id})
                .to_string(),
        };
        let about = (run.conversation_id.as_deref(), Some(run.run_id.as_str()));
        insert_host_event(tx, workspace, &log, about, now_ms)?;
    }
    tx.execute(
        "DELETE FROM steering WHERE workspace_id = ?1 AND run_id = ?2",
        params![workspace, run_id],
    )?;
    Ok(waiting.len())
}

fn damaged(error: &serde_json::Error) -> StoreError {
    StoreError::Refused(format!("a message that waits for a run cannot be stored or read: {error}"))
}
