//! Host-kept state.

use super::names::first_name;
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

/// Which values of an owner are wanted, and how much of them at most.
#[derive(Debug, Clone)]
pub struct StateSpan {
    pub prefix: String,
    /// Names behind this one only.
    pub after: String,
    pub values_max: i64,
    pub bytes_max: i64,
}

/// Values of one owner by name, and whether there are more. Looks at their sizes first, so that no more is
/// read than is handed out; the first value is handed out whatever its size.
pub fn list(
    tx: &mut dyn Tx,
    workspace: &str,
    owner: &str,
    span: &StateSpan,
    now_ms: i64,
) -> Result<(Vec<StateRow>, bool), StoreError> {
    let first = first_name(&span.prefix, &span.after);
    let sizes = tx.query(
        "SELECT name, size FROM state
         WHERE workspace_id = ?1 AND owner = ?2 AND name >= ?3
           AND (expires_at IS NULL OR expires_at > ?4)
         ORDER BY name LIMIT ?5",
        params![workspace, owner, &first, now_ms, span.values_max + 1],
    )?;
    let (mut last, mut count, mut bytes, mut has_more) = (None, 0, 0, false);
    for mut row in sizes {
        let (name, size) = (row.text()?, row.int()?);
        if !name.starts_with(&span.prefix) {
            break;
        }
        bytes += size - i64::try_from(name.len()).unwrap_or(size);
        has_more = count == span.values_max || (count > 0 && bytes > span.bytes_max);
        if has_more {
            break;
        }
        count += 1;
        last = Some(name);
    }
    let Some(last) = last else { return Ok((Vec::new(), has_more)) };
    let rows = tx.query(
        "SELECT owner, name, value, version FROM state
         WHERE workspace_id = ?1 AND owner = ?2 AND name >= ?3 AND name <= ?4
           AND (expires_at IS NULL OR expires_at > ?5)
         ORDER BY name",
        params![workspace, owner, &first, &last, now_ms],
    )?;
    let rows = rows.into_iter().map(read).collect::<Result<Vec<_>, _>>()?;
    Ok((rows, has_more))
}

/// Names of one owner's values behind a name.
pub fn names_after(
    tx: &mut dyn Tx,
    workspace: &str,
    owner: &str,
    after: &str,
    limit: i64,
    now_ms: i64,
) -> Result<Vec<String>, StoreError> {
    let rows = tx.query(
        "SELECT name FROM state
         WHERE workspace_id = ?1 AND owner = ?2 AND name > ?3
           AND (expires_at IS NULL OR expires_at > ?4)
         ORDER BY name LIMIT ?5",
        params![workspace, owner, after, now_ms, limit],
    )?;
    rows.into_iter().map(|mut row| row.text()).collect()
}

/// A key of any owner, without its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateKey {
    pub owner: String,
    pub name: String,
    /// Of name and value together.
    pub size: i64,
    pub version: i64,
    pub updated_at: i64,
    pub expires_at: Option<i64>,
}

/// Which keys are looked at, by owner and name.
#[derive(Debug, Clone)]
pub struct StateKeys {
    pub after: (String, String),
    /// Owners before this one only.
    pub owner_end: String,
    pub limit: i64,
}

/// The keys of all owners in order.
pub fn keys(
    tx: &mut dyn Tx,
    workspace: &str,
    span: &StateKeys,
    now_ms: i64,
) -> Result<Vec<StateKey>, StoreError> {
    let (owner, name) = &span.after;
    let rows = tx.query(
        "SELECT owner, name, size, version, updated_at, expires_at FROM state
         WHERE workspace_id = ?1 AND (owner, name) > (?2, ?3) AND owner < ?4
           AND (expires_at IS NULL OR expires_at > ?5)
         ORDER BY owner, name LIMIT ?6",
        params![workspace, owner, name, &span.owner_end, now_ms, span.limit],
    )?;
    let read = |mut row: Row| {
        Ok(StateKey {
            owner: row.text()?,
            name: row.text()?,
            size: row.int()?,
            version: row.int()?,
            updated_at: row.int()?,
            expires_at: row.opt_int()?,
        })
    };
    rows.into_iter().map(read).collect()
}

/// The beginning of a value.
pub fn beginning(
    tx: &mut dyn Tx,
    workspace: &str,
    key: &StateKey,
    chars_max: i64,
) -> Result<Option<String>, StoreError> {
    let row = tx.query_opt(
        "SELECT substr(value, 1, CAST(?4 AS INTEGER)) FROM state
         WHERE workspace_id = ?1 AND owner = ?2 AND name = ?3",
        params![workspace, &key.owner, &key.name, chars_max],
    )?;
    row.map(|mut row| row.text()).transpose()
}

fn read(mut row: Row) -> Result<StateRow, StoreError> {
    Ok(StateRow { owner: row.text()?, name: row.text()?, value: row.text()?, version: row.int()? })
}
