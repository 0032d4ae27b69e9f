//! Starts the next queued run, in its predecessor's terminal transaction.
//!
//! Invariant: runs of one lane start in the order of their events.

use crate::sql::Tx;
use crate::types::{Queue, RunRow};
use crate::{StoreError, params, reads};
use greenroom_protocol::RunStatus;

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
           AND finished_at IS NULL AND status = ?3
         ORDER BY conversation_seq LIMIT 1",
        params![workspace, conversation, RunStatus::Queued],
    )?;
    let Some(mut next) = next else { return Ok(None) };
    let (run_id, queue, conversation_seq) = (next.text()?, next.text()?, next.int()?);
    let replaces = queue == Queue::Replace.as_str();
    // A replacing run waits for the earlier parallel runs that it cancels, a serial one for none of them.
    let running = tx.query(
        "SELECT run_id, queue FROM runs
         WHERE workspace_id = ?1 AND conversation_id = ?2
           AND finished_at IS NULL AND status = ?5
           AND (queue <> ?6 OR (?3 = 1 AND conversation_seq < ?4))",
        params![
            workspace,
            conversation,
            i64::from(replaces),
            conversation_seq,
            RunStatus::Running,
            Queue::Parallel
        ],
    )?;
    for mut row in running {
        let (earlier, queue) = (row.text()?, row.text()?);
        if queue != Queue::Parallel.as_str() || is_cancelled(tx, workspace, &earlier)? {
            return Ok(None);
        }
    }
    // The command that ends the predecessor may have taken its time before this run was created.
    tx.execute(
        "UPDATE runs SET status = ?5, epoch = ?4,
             started_at = CASE WHEN created_at > ?3 THEN created_at ELSE ?3 END
         WHERE workspace_id = ?1 AND run_id = ?2",
        params![workspace, &run_id, now_ms, epoch, RunStatus::Running],
    )?;
    Ok(reads::runs::get(tx, workspace, &run_id)?.map(Box::new))
}

fn is_cancelled(tx: &mut dyn Tx, workspace: &str, run_id: &str) -> Result<bool, StoreError> {
    Ok(reads::runs::get(tx, workspace, run_id)?.is_some_and(|run| run.cancel_requested))
}
