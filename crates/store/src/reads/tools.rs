//! Calls of tools that the host began.

use crate::sql::Tx;
use crate::{StoreError, params};

/// A call that an earlier host began and did not see the end of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenToolCall {
    pub workspace_id: String,
    pub run_id: String,
    pub attempt: i64,
    pub epoch: i64,
    pub tool_call_id: String,
    pub tool: String,
    pub risk: String,
    pub args: String,
    pub event_id: String,
}

/// Calls that began before this epoch and have no output.
pub fn interrupted(
    tx: &mut dyn Tx,
    epoch: i64,
    limit: i64,
) -> Result<Vec<OpenToolCall>, StoreError> {
    let rows = tx.query(
        "SELECT t.workspace_id, t.run_id, t.attempt, t.epoch, t.tool_call_id, t.tool, t.risk, t.args,
             r.event_id
         FROM tool_calls t JOIN runs r ON r.workspace_id = t.workspace_id AND r.run_id = t.run_id
         WHERE t.output IS NULL AND t.epoch < ?1 ORDER BY t.epoch LIMIT ?2",
        params![epoch, limit],
    )?;
    rows.into_iter()
        .map(|mut row| {
            Ok(OpenToolCall {
                workspace_id: row.text()?,
                run_id: row.text()?,
                attempt: row.int()?,
                epoch: row.int()?,
                tool_call_id: row.text()?,
                tool: row.text()?,
                risk: row.text()?,
                args: row.text()?,
                event_id: row.text()?,
            })
        })
        .collect()
}

/// The output of a call, once it has one.
pub fn output(
    tx: &mut dyn Tx,
    workspace: &str,
    run_id: &str,
    tool_call_id: &str,
) -> Result<Option<String>, StoreError> {
    let rows = tx.query(
        "SELECT output FROM tool_calls WHERE workspace_id = ?1 AND run_id = ?2 AND tool_call_id = ?3",
        params![workspace, run_id, tool_call_id],
    )?;
    rows.into_iter().next().map_or(Ok(None), |mut row| row.opt_text())
}
