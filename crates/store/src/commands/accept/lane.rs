//! Whether a new run starts, waits or is refused, and which runs of its lane it replaces.
//!
//! Invariant: a run replaces those of its own agent only, unless its binding says otherwise.

use super::{AcceptEvent, NewRun};
use crate::commands::runs::{end_queued, mark_cancelled};
use crate::commands::steering::requeue;
use crate::sql::Tx;
use crate::types::{Queue, RunRow};
use crate::{StoreError, params, reads};
use greenroom_protocol::{Replaces, RunStatus};

/// The runs that a replacing run displaces.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Displaced {
    /// Were queued and are cancelled.
    pub cancelled: Vec<RunRow>,
    /// How many of those were messages that had waited for a run to pull them.
    pub requeued: usize,
    /// Are running and have to be cancelled.
    pub replaced: Vec<String>,
}

/// The open runs of a conversation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Lane {
    /// Running, those in parallel left out.
    pub running: i64,
    pub queued: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    Start,
    Wait,
    Refuse,
}

/// Whether a new run starts, waits or is refused.
pub fn admit(queue: Queue, lane: Lane, lane_length_max: i64) -> Admission {
    match queue {
        Queue::Parallel => Admission::Start,
        Queue::Replace if lane.running == 0 => Admission::Start,
        Queue::Replace => Admission::Wait,
        Queue::Serial | Queue::Steer if lane == Lane::default() => Admission::Start,
        Queue::Serial | Queue::Steer if lane.queued < lane_length_max => Admission::Wait,
        Queue::Serial | Queue::Steer => Admission::Refuse,
    }
}

impl AcceptEvent {
    /// Whether a replacing run cancels this open run of its conversation.
    fn replaces(&self, tx: &mut dyn Tx, run: &NewRun, open: &str) -> Result<bool, StoreError> {
        if run.replaces == Replaces::Conversation {
            return Ok(true);
        }
        let open = reads::runs::get(tx, &self.workspace_id, open)?;
        Ok(open.is_some_and(|open| open.agent == run.agent))
    }

    pub(super) fn admission(
        &self,
        tx: &mut dyn Tx,
        run: &NewRun,
        conversation: &str,
    ) -> Result<(Admission, Vec<String>), StoreError> {
        if run.queue == Queue::Parallel {
            return Ok((Admission::Start, Vec::new()));
        }
        let open = tx.query(
            "SELECT run_id, status, queue FROM runs
             WHERE workspace_id = ?1 AND conversation_id = ?2 AND finished_at IS NULL",
            params![&self.workspace_id, conversation],
        )?;
        let mut lane = Lane::default();
        let mut running = Vec::new();
        for mut row in open {
            let (run_id, status, queue) = (row.text()?, row.text()?, row.text()?);
            if status == RunStatus::Running.as_str() {
                // A replacing run also waits for the parallel runs that it cancels.
                let replaced = run.queue == Queue::Replace && self.replaces(tx, run, &run_id)?;
                let counts = replaced || queue != Queue::Parallel.as_str();
                lane.running += i64::from(counts);
                if replaced {
                    running.push(run_id);
                }
            } else {
                lane.queued += 1;
            }
        }
        Ok((admit(run.queue, lane, run.lane_length_max), running))
    }

    /// Ends the queued runs that a new one replaces and marks the running ones, so that a crash does not bring
    /// them back. Messages that wait for a running one end with them.
    pub(super) fn displace(
        &self,
        tx: &mut dyn Tx,
        run: &NewRun,
        running: Vec<String>,
    ) -> Result<Displaced, StoreError> {
        let mut requeued = 0;
        for run_id in &running {
            requeued += requeue(tx, &self.workspace_id, run_id, self.now_ms)?;
        }
        let queued = tx.query(
            "SELECT run_id FROM runs
             WHERE workspace_id = ?1 AND conversation_id = ?2
               AND finished_at IS NULL AND status = ?3
             ORDER BY conversation_seq",
            params![&self.workspace_id, &self.conversation_id, RunStatus::Queued],
        )?;
        let mut cancelled = Vec::new();
        for mut row in queued {
            let run_id = row.text()?;
            if !self.replaces(tx, run, &run_id)? {
                continue;
            }
            let ended = end_queued(tx, &self.workspace_id, &run_id, self.now_ms)?;
            cancelled.extend(ended);
        }
        for run_id in &running {
            mark_cancelled(tx, &self.workspace_id, run_id, self.now_ms)?;
        }
        Ok(Displaced { cancelled, requeued, replaced: running })
    }
}
