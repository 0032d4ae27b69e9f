//! Calls of tools that the host carries out.
//!
//! Invariant: a call that may change something, or that somebody is asked about, is begun here before it acts,
//! and ended here before its answer is told; its transcript item is written with its end, once. The same call
//! of a run is never begun twice.

use super::Command;
use super::artifacts::insert_artifact;
use super::audit::open as open_audit;
use super::fence::{RunFence, fence, fence_params};
use super::results::insert_host_event;
use super::transcript::{Place, insert_item, set_items};
use crate::audit::OpenCall;
use crate::sql::Tx;
use crate::types::{HostEvent, NewArtifact, NewItem};
use crate::{StoreError, params};

/// A call that is about to act.
#[derive(Debug, Clone)]
pub struct BeginToolCall {
    pub fence: RunFence,
    pub conversation_id: Option<String>,
    /// The model's id of the call, or one that was made for it.
    pub tool_call_id: String,
    pub tool: String,
    pub risk: &'static str,
    /// The parameters, as JSON text.
    pub args: String,
    pub log: HostEvent,
    /// The call as the audit keeps it open.
    pub open: Option<OpenCall>,
    pub now_ms: i64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Begun {
    Now,
    /// It was carried out before: its output, as JSON text.
    Before(String),
    /// It is under way.
    UnderWay,
    /// Another call of the run has this id.
    OtherCall,
    /// The run is over.
    Stale,
}

impl Command for BeginToolCall {
    type Outcome = Begun;

    fn execute(&self, tx: &mut dyn Tx) -> Result<Begun, StoreError> {
        let RunFence { workspace_id, run_id, attempt, epoch } = &self.fence;
        // A run that was started again would do it twice.
        let changed = tx.execute(
            concat!("UPDATE runs SET effects = 1 WHERE ", fence!(), " AND cancel_requested = 0"),
            fence_params![self.fence],
        )?;
        if changed == 0 {
            return Ok(Begun::Stale);
        }
        if let Some(earlier) = self.earlier(tx)? {
            return Ok(earlier);
        }
        tx.execute(
            "INSERT INTO tool_calls (workspace_id, run_id, tool_call_id, attempt, epoch, tool, risk,
                 args, created_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
            params![
                workspace_id,
                run_id,
                &self.tool_call_id,
                *attempt,
                *epoch,
                &self.tool,
                self.risk,
                &self.args,
                self.now_ms
            ],
        )?;
        let about = (self.conversation_id.as_deref(), Some(run_id.as_str()));
        insert_host_event(tx, workspace_id, &self.log, about, self.now_ms)?;
        if let Some(call) = &self.open {
            open_audit(tx, self.fence.run(), call)?;
        }
        Ok(Begun::Now)
    }
}

impl BeginToolCall {
    /// What became of the call that has this id, if there is one.
    pub(super) fn earlier(&self, tx: &mut dyn Tx) -> Result<Option<Begun>, StoreError> {
        let row = tx.query_opt(
            "SELECT tool, args, output FROM tool_calls
             WHERE workspace_id = ?1 AND run_id = ?2 AND tool_call_id = ?3",
            params![&self.fence.workspace_id, &self.fence.run_id, &self.tool_call_id],
        )?;
        let Some(mut row) = row else { return Ok(None) };
        let (tool, args, output) = (row.text()?, row.text()?, row.opt_text()?);
        Ok(Some(match output {
            _ if tool != self.tool || args != self.args => Begun::OtherCall,
            Some(output) => Begun::Before(output),
            None => Begun::UnderWay,
        }))
    }
}

/// Whether a call that ends stands in the store already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    Begun,
    New,
}

/// What came of a call.
#[derive(Debug, Clone)]
pub struct EndToolCall {
    pub fence: RunFence,
    pub standing: Standing,
    pub tool_call_id: String,
    pub tool: String,
    pub risk: &'static str,
    pub args: String,
    /// The canonical output, as JSON text.
    pub output: String,
    /// The call as the conversation shows it.
    pub item: NewItem,
    pub log: HostEvent,
    /// Artifacts that the output refers to.
    pub artifacts: Vec<NewArtifact>,
    pub now_ms: i64,
}

/// What became of the end of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    Now,
    /// The same call had ended before: its output, as JSON text.
    Before(String),
    /// Another call of the run has this id.
    OtherCall,
    /// Nobody keeps it: the run that asked is over.
    Stale,
}

impl Command for EndToolCall {
    type Outcome = Ended;

    fn execute(&self, tx: &mut dyn Tx) -> Result<Ended, StoreError> {
        let RunFence { workspace_id, run_id, .. } = &self.fence;
        let kept = match self.standing {
            Standing::New => self.keep_new(tx)?,
            Standing::Begun => self.keep_begun(tx)?,
        };
        if kept != Ended::Now {
            return Ok(kept);
        }
        let run = tx.query_opt(
            // Behind the messages that the run has taken in.
            "SELECT conversation_id, COALESCE(steered_seq, conversation_seq),
                 COALESCE((SELECT transcript_seq FROM conversations
                     WHERE workspace_id = ?1 AND conversation_id = runs.conversation_id), 0)
             FROM runs WHERE workspace_id = ?1 AND run_id = ?2",
            params![workspace_id, run_id],
        )?;
        let Some(mut run) = run else { return Ok(Ended::Stale) };
        let (conversation, event_seq, items) = (run.opt_text()?, run.opt_int()?, run.int()?);
        for artifact in &self.artifacts {
            insert_artifact(tx, workspace_id, artifact, self.now_ms)?;
        }
        if let (Some(conversation), Some(event_seq)) = (&conversation, event_seq) {
            let place =
                Place { workspace: workspace_id, conversation, event_seq, event_type: None };
            set_items(tx, workspace_id, conversation, items + 1)?;
            insert_item(tx, place, items + 1, &self.item, self.now_ms)?;
        }
        let about = (conversation.as_deref(), Some(run_id.as_str()));
        insert_host_event(tx, workspace_id, &self.log, about, self.now_ms)?;
        Ok(Ended::Now)
    }
}

impl EndToolCall {
    /// A call that began keeps its output, also behind its run's end.
    fn keep_begun(&self, tx: &mut dyn Tx) -> Result<Ended, StoreError> {
        let RunFence { workspace_id, run_id, .. } = &self.fence;
        let ended = tx.execute(
            "UPDATE tool_calls SET output = ?4, finished_at = ?5
             WHERE workspace_id = ?1 AND run_id = ?2 AND tool_call_id = ?3 AND output IS NULL",
            params![workspace_id, run_id, &self.tool_call_id, &self.output, self.now_ms],
        )?;
        Ok(if ended > 0 { Ended::Now } else { Ended::Stale })
    }

    /// A call that did nothing before its end is the run's alone, and ends nobody else's.
    fn keep_new(&self, tx: &mut dyn Tx) -> Result<Ended, StoreError> {
        let RunFence { workspace_id, run_id, attempt, epoch } = &self.fence;
        if !self.fence.holds(tx)? {
            return Ok(Ended::Stale);
        }
        let row = tx.query_opt(
            "SELECT tool, args, output FROM tool_calls
             WHERE workspace_id = ?1 AND run_id = ?2 AND tool_call_id = ?3",
            params![workspace_id, run_id, &self.tool_call_id],
        )?;
        if let Some(mut row) = row {
            let (tool, args, output) = (row.text()?, row.text()?, row.opt_text()?);
            return Ok(match output {
                Some(output) if tool == self.tool && args == self.args => Ended::Before(output),
                _ => Ended::OtherCall,
            });
        }
        tx.execute(
            "INSERT INTO tool_calls (workspace_id, run_id, tool_call_id, attempt, epoch, tool, risk,
                 args, output, created_at, finished_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?10)",
            params![
                workspace_id,
                run_id,
                &self.tool_call_id,
                *attempt,
                *epoch,
                &self.tool,
                self.risk,
                &self.args,
                &self.output,
                self.now_ms
            ],
        )?;
        Ok(Ended::Now)
    }
}
