//! Blobs of runners, and how much space they take.

use super::names::first_name;
use crate::commands::{UsageKind, WHOLE_WORKSPACE};
use crate::sql::Tx;
use crate::{StoreError, params};

pub fn get(
    tx: &mut dyn Tx,
    workspace: &str,
    owner: &str,
    name: &str,
) -> Result<Option<Vec<u8>>, StoreError> {
    let row = tx.query_opt(
        "SELECT value FROM storage WHERE workspace_id = ?1 AND owner = ?2 AND name = ?3",
        params![workspace, owner, name],
    )?;
    row.map(|mut row| row.blob()).transpose()
}

/// One blob without its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StorageEntry {
    pub name: String,
    pub size: i64,
    pub updated_at: i64,
}

/// Which names of an owner are wanted.
#[derive(Debug, Clone, Default)]
pub struct StorageSpan {
    pub prefix: String,
    /// Names behind this one only.
    pub after: String,
    pub limit: usize,
}

/// Blobs of one owner by name, and whether there are more.
pub fn list(
    tx: &mut dyn Tx,
    workspace: &str,
    owner: &str,
    span: &StorageSpan,
) -> Result<(Vec<StorageEntry>, bool), StoreError> {
    let limit = i64::try_from(span.limit).unwrap_or(i64::MAX - 1);
    let rows = tx.query(
        "SELECT name, size, updated_at FROM storage
         WHERE workspace_id = ?1 AND owner = ?2 AND name >= ?3 ORDER BY name LIMIT ?4",
        params![workspace, owner, &first_name(&span.prefix, &span.after), limit + 1],
    )?;
    let mut entries = Vec::new();
    for mut row in rows {
        let name = row.text()?;
        if !name.starts_with(&span.prefix) {
            return Ok((entries, false));
        }
        if entries.len() == span.limit {
            return Ok((entries, true));
        }
        entries.push(StorageEntry { name, size: row.int()?, updated_at: row.int()? });
    }
    Ok((entries, false))
}

/// How much is kept: names and values in bytes, and their number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    pub bytes: i64,
    pub entries: i64,
}

/// What one owner's blobs take.
pub fn usage(tx: &mut dyn Tx, workspace: &str, owner: &str) -> Result<Usage, StoreError> {
    let row = tx.query_opt(
        "SELECT bytes, entries FROM usage
         WHERE workspace_id = ?1 AND kind = ?3 AND owner = ?2",
        params![workspace, owner, UsageKind::Storage.as_str()],
    )?;
    row.map_or(Ok(Usage::default()), |mut row| Ok(Usage { bytes: row.int()?, entries: row.int()? }))
}

/// What the blobs of a workspace take.
pub fn usage_of_workspace(tx: &mut dyn Tx, workspace: &str) -> Result<Usage, StoreError> {
    usage(tx, workspace, WHOLE_WORKSPACE)
}
