//! Host-kept state.

use crate::sql::{Row, Tx};
use crate::types::StateRow;
use crate::{StoreError, params};

pub fn get(
    tx: &mut dyn Tx,
    workspace: &str,
    owner: &str,
    name: &str,
    now_ms: i64,
) -> Result<Option<StateRow>, StoreError> {
    let row = tx.query_opt(
        "SELECT owner, name, value, version FROM state
         WHERE workspace_id = ?1 AND owner = ?2 AND name = ?3
           AND (expires_at IS NULL OR expires_at > ?4)",
        params![workspace, owner, name, now_ms],
    )?;
    row.map(read).transpose()
}

/// All state of one owner, by name, for the snapshot at the start of a run.
pub fn list(
    tx: &mut dyn Tx,
    workspace: &str,
    owner: &str,
    now_ms: i64,
    limit: i64,
) -> Result<Vec<StateRow>, StoreError> {
    let rows = tx.query(
        "SELECT owner, name, value, version FROM state
         WHERE workspace_id = ?1 AND owner = ?2 AND (expires_at IS NULL OR expires_at > ?3)
         ORDER BY name LIMIT ?4",
        params![workspace, owner, now_ms, limit],
    )?;
    rows.into_iter().map(read).collect()
}

fn read(mut row: Row) -> Result<StateRow, StoreError> {
    Ok(StateRow { owner: row.text()?, name: row.text()?, value: row.text()?, version: row.int()? })
}
