//! A queued run gets its turn: in its predecessor's terminal transaction.
//!
//! Invariant: runs of one lane start in the order of their events.

use crate::sql::Tx;
use crate::types::RunRow;
use crate::{StoreError, params, reads};

/// Starts the next queued run of a conversation if nothing in its lane runs.
pub(super) fn start_next(
    tx: &mut dyn Tx,
    workspace: &str,
    conversation: Option<&str>,
    epoch: i64,
    now_ms: i64,
) -> Result<Option<Box<RunRow>>, StoreError> {
    let Some(conversation) = conversation else { return Ok(None) };
    let next = tx.query_opt(
        "SELECT run_id, queue, conversation_seq FROM runs
         WHERE workspace_id = ?1 AND conversation_id = ?2
           AND finished_at IS NULL AND status = 'queued'
         ORDER BY conversation_seq LIMIT 1",
        params![workspace, conversation],
    )?;
    let Some(mut next) = next else { return Ok(None) };
    let (run_id, queue, place) = (next.text()?, next.text()?, next.int()?);
    // A replacing run waits for everything before it; those in parallel that came later are not its concern.
    let busy = tx.query_opt(
        "SELECT run_id FROM runs
         WHERE workspace_id = ?1 AND conversation_id = ?2
           AND finished_at IS NULL AND status = 'running'
           AND (queue <> 'parallel' OR (?3 = 'replace' AND conversation_seq < ?4)) LIMIT 1",
        params![workspace, conversation, &queue, place],
    )?;
    if busy.is_some() {
        return Ok(None);
    }
    // What ends the run before it may have looked at its clock before this one came.
    tx.execute(
        "UPDATE runs SET status = 'running', epoch = ?4,
             started_at = CASE WHEN created_at > ?3 THEN created_at ELSE ?3 END
         WHERE workspace_id = ?1 AND run_id = ?2",
        params![workspace, &run_id, now_ms, epoch],
    )?;
    Ok(reads::runs::get(tx, workspace, &run_id)?.map(Box::new))
}
