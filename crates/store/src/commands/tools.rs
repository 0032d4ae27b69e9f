//! Tool calls that the host executes.
//!
//! Invariant: a call that may change something, or that needs approval, is recorded here before it acts, and its
//! output before the runner gets it; its transcript item is written with the output, once. The same call of a run
//! never starts twice.

use super::Command;
use super::artifacts::insert_artifact;
use super::audit::open as open_audit;
use super::fence::{RunFence, fence, fence_params};
use super::results::insert_host_event;
use super::transcript::{ItemPosition, insert_item, set_items};
use crate::audit::OpenCall;
use crate::session::thread_of;
use crate::sql::Tx;
use crate::types::{HostEvent, NewArtifact, NewItem};
use crate::{StoreError, params};

/// A call that is about to act.
#[derive(Debug, Clone)]
pub struct BeginToolCall {
    pub fence: RunFence,
    pub conversation_id: Option<String>,
    /// The model's id of the call, or a generated one.
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
    Started,
    /// It was executed before: its output, as JSON text.
    Finished(String),
    InProgress,
    /// Another call of the run has this id.
    OtherCall,
    /// The run has ended.
    Stale,
}

impl Command for BeginToolCall {
    type Outcome = Begun;

    fn execute(&self, tx: &mut dyn Tx) -> Result<Begun, StoreError> {
        let RunFence { workspace_id, run_id, attempt, epoch } = &self.fence;
        // A new attempt of the run would do it twice.
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
        Ok(Begun::Started)
    }
}

impl BeginToolCall {
    /// The state of an earlier call with this id.
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
            Some(output) => Begun::Finished(output),
            None => Begun::InProgress,
        }))
    }
}

/// Whether the start of a call is in the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallStart {
    Recorded,
    Unrecorded,
}

/// The output of a call.
#[derive(Debug, Clone)]
pub struct EndToolCall {
    pub fence: RunFence,
    pub start: CallStart,
    pub tool_call_id: String,
    pub tool: String,
    pub risk: &'static str,
    pub args: String,
    /// The canonical output, as JSON text.
    pub output: String,
    /// The call as the conversation shows it, in the session of its run.
    pub item: NewItem,
    pub log: HostEvent,
    /// Artifacts that the output refers to.
    pub artifacts: Vec<NewArtifact>,
    pub now_ms: i64,
}

/// Whether the output was recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    Recorded,
    /// The same call has an output already, as JSON text.
    RecordedBefore(String),
    /// Another call of the run has this id.
    OtherCall,
    /// Not recorded: the run has ended.
    Stale,
}

impl Command for EndToolCall {
    type Outcome = Ended;

    fn execute(&self, tx: &mut dyn Tx) -> Result<Ended, StoreError> {
        let RunFence { workspace_id, run_id, .. } = &self.fence;
        let kept = match self.start {
            CallStart::Unrecorded => self.keep_new(tx)?,
            CallStart::Recorded => self.keep_begun(tx)?,
        };
        if kept != Ended::Recorded {
            return Ok(kept);
        }
        let run = tx.query_opt(
            // After the messages that the run has pulled.
            "SELECT conversation_id, session, COALESCE(steered_seq, conversation_seq),
                 COALESCE((SELECT transcript_seq FROM conversations
                     WHERE workspace_id = ?1 AND conversation_id = runs.conversation_id), 0)
             FROM runs WHERE workspace_id = ?1 AND run_id = ?2",
            params![workspace_id, run_id],
        )?;
        let Some(mut run) = run else { return Ok(Ended::Stale) };
        let (conversation, session) = (run.opt_text()?, run.text()?);
        let (event_seq, items) = (run.opt_int()?, run.int()?);
        for artifact in &self.artifacts {
            insert_artifact(tx, workspace_id, artifact, self.now_ms)?;
        }
        if let (Some(conversation), Some(event_seq)) = (&conversation, event_seq) {
            let workspace = workspace_id.as_str();
            let position = ItemPosition { workspace, conversation, event_seq, event_type: None };
            set_items(tx, workspace_id, conversation, items + 1)?;
            let thread_id = thread_of(&session).map(str::to_owned);
            let item = NewItem { thread_id, session, ..self.item.clone() };
            insert_item(tx, position, items + 1, &item, self.now_ms)?;
        }
        let about = (conversation.as_deref(), Some(run_id.as_str()));
        insert_host_event(tx, workspace_id, &self.log, about, self.now_ms)?;
        Ok(Ended::Recorded)
    }
}

impl EndToolCall {
    /// A recorded call keeps its output even after its run has ended.
    fn keep_begun(&self, tx: &mut dyn Tx) -> Result<Ended, StoreError> {
        let RunFence { workspace_id, run_id, .. } = &self.fence;
        let ended = tx.execute(
            "UPDATE tool_calls SET output = ?4, finished_at = ?5
             WHERE workspace_id = ?1 AND run_id = ?2 AND tool_call_id = ?3 AND output IS NULL",
            params![workspace_id, run_id, &self.tool_call_id, &self.output, self.now_ms],
        )?;
        Ok(if ended > 0 { Ended::Recorded } else { Ended::Stale })
    }

    /// A call without an earlier record changes no other call.
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
                Some(output) if tool == self.tool && args == self.args => {
                    Ended::RecordedBefore(output)
                }
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
        Ok(Ended::Recorded)
    }
}
