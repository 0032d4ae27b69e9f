//! Artifacts, and which bytes somebody still refers to.

use crate::sql::{Row, Tx};
use crate::types::ArtifactRow;
use crate::{StoreError, params};

/// An artifact that has not expired.
pub fn get(
    tx: &mut dyn Tx,
    workspace: &str,
    artifact_id: &str,
    now_ms: i64,
) -> Result<Option<ArtifactRow>, StoreError> {
    let row = tx.query_opt(
        "SELECT workspace_id, artifact_id, sha256, size, name, mime_type, conversation_id, run_id,
             agent, metadata, created_at, expires_at
         FROM artifacts WHERE workspace_id = ?1 AND artifact_id = ?2
           AND (expires_at IS NULL OR expires_at > ?3)",
        params![workspace, artifact_id, now_ms],
    )?;
    row.map(read).transpose()
}

fn read(mut row: Row) -> Result<ArtifactRow, StoreError> {
    Ok(ArtifactRow {
        workspace_id: row.text()?,
        artifact_id: row.text()?,
        sha256: row.text()?,
        size: row.int()?,
        name: row.opt_text()?,
        mime_type: row.text()?,
        conversation_id: row.opt_text()?,
        run_id: row.opt_text()?,
        agent: row.opt_text()?,
        metadata: row.text()?,
        created_at: row.int()?,
        expires_at: row.opt_int()?,
    })
}

/// Whether anything, in any workspace, refers to these bytes.
pub fn is_referred_to(tx: &mut dyn Tx, sha256: &str) -> Result<bool, StoreError> {
    let found =
        tx.query_opt("SELECT 1 FROM artifacts WHERE sha256 = ?1 LIMIT 1", params![sha256])?;
    Ok(found.is_some())
}

/// All hashes that something refers to and that begin with these digits, in order.
pub fn hashes(tx: &mut dyn Tx, digits: &str) -> Result<Vec<String>, StoreError> {
    // Behind every digit that a hash may go on with.
    let end = format!("{digits}g");
    let rows = tx.query(
        "SELECT DISTINCT sha256 FROM artifacts WHERE sha256 >= ?1 AND sha256 < ?2 ORDER BY sha256",
        params![digits, &end],
    )?;
    rows.into_iter().map(|mut row| row.text()).collect()
}

/// Artifacts whose time is over, by workspace and id.
pub fn expired(
    tx: &mut dyn Tx,
    now_ms: i64,
    limit: i64,
) -> Result<Vec<(String, String)>, StoreError> {
    let rows = tx.query(
        "SELECT workspace_id, artifact_id FROM artifacts
         WHERE expires_at IS NOT NULL AND expires_at <= ?1 ORDER BY expires_at LIMIT ?2",
        params![now_ms, limit],
    )?;
    rows.into_iter().map(|mut row| Ok((row.text()?, row.text()?))).collect()
}

/// Artifacts that were made before a time, by workspace and id.
pub fn made_before(
    tx: &mut dyn Tx,
    before_ms: i64,
    limit: i64,
) -> Result<Vec<(String, String)>, StoreError> {
    let rows = tx.query(
        "SELECT workspace_id, artifact_id FROM artifacts WHERE created_at < ?1
         ORDER BY created_at LIMIT ?2",
        params![before_ms, limit],
    )?;
    rows.into_iter().map(|mut row| Ok((row.text()?, row.text()?))).collect()
}
