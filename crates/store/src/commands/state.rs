//! State written by a live run, through the proxy or with its results.
//!
//! Invariant: a write through the proxy is conditional on the run's fence and, on request, on the version that the
//! caller last saw. No write exceeds the owner's quota.

use super::Command;
use super::audit::insert_outcome;
use super::fence::{RunFence, fence, fence_params};
use super::usage::{Growth, UsageKind, count, taken};
use crate::audit::{AuditRecord, OK};
use crate::sql::Tx;
use crate::types::StateWrite;
use crate::{StoreError, params};
use greenroom_protocol::ErrorCode;

#[derive(Debug, Clone)]
pub struct WriteState {
    pub fence: RunFence,
    pub owner: String,
    pub name: String,
    /// JSON text; none removes the key.
    pub value: Option<String>,
    /// The version the key must have now, 0 for none at all.
    pub if_version: Option<i64>,
    pub expires_at: Option<i64>,
    /// Limit for the owner's names and values together.
    pub owner_bytes_max: Option<i64>,
    /// The audit record of the call, stored with its outcome.
    pub audit: Option<AuditRecord>,
    pub now_ms: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StateWritten {
    /// Written, with its new version.
    Set(i64),
    /// Removed; false when there was no value.
    Deleted(bool),
    /// The key has another version.
    Conflict(i64),
    /// The write would exceed the owner's quota: nothing was written.
    OverQuota { used: i64, max: i64 },
    /// The run has ended.
    Stale,
}

impl StateWritten {
    /// The code of the call.
    fn code(self) -> &'static str {
        match self {
            StateWritten::Set(_) | StateWritten::Deleted(_) => OK,
            StateWritten::Conflict(_) => ErrorCode::InvalidArgument.as_str(),
            StateWritten::OverQuota { .. } => ErrorCode::PayloadTooLarge.as_str(),
            StateWritten::Stale => ErrorCode::Unauthorized.as_str(),
        }
    }
}

/// The entry and its owner's usage before the write.
struct Before {
    version: Option<i64>,
    size: Option<i64>,
    expires_at: Option<i64>,
    used: i64,
}

impl Before {
    /// The version that callers see: an expired value has none.
    fn version_at(&self, now_ms: i64) -> i64 {
        let expired = self.expires_at.is_some_and(|expires_at| expires_at <= now_ms);
        self.version.filter(|_| !expired).unwrap_or(0)
    }
}

impl Command for WriteState {
    type Outcome = StateWritten;

    fn execute(&self, tx: &mut dyn Tx) -> Result<StateWritten, StoreError> {
        let written = self.write(tx)?;
        insert_outcome(tx, self.fence.run(), self.audit.as_ref(), written.code())?;
        Ok(written)
    }
}

impl WriteState {
    fn write(&self, tx: &mut dyn Tx) -> Result<StateWritten, StoreError> {
        let Some(before) = self.read(tx)? else { return Ok(StateWritten::Stale) };
        let version = before.version_at(self.now_ms);
        if self.if_version.is_some_and(|wanted| wanted != version) {
            return Ok(StateWritten::Conflict(version));
        }
        let entry = Entry {
            workspace: &self.fence.workspace_id,
            owner: &self.owner,
            name: &self.name,
            expires_at: self.expires_at,
            now_ms: self.now_ms,
        };
        match &self.value {
            Some(value) => entry.set(tx, value, &before, self.owner_bytes_max),
            None => {
                entry.remove(tx, &before)?;
                Ok(StateWritten::Deleted(version > 0))
            }
        }
    }

    /// Everything the write depends on; none when the fence does not hold.
    fn read(&self, tx: &mut dyn Tx) -> Result<Option<Before>, StoreError> {
        let row = tx.query_opt(
            concat!(
                "SELECT entry.version, entry.size, entry.expires_at, used.bytes FROM runs
                 LEFT JOIN state AS entry ON entry.workspace_id = ?1 AND entry.owner = ?6
                   AND entry.name = ?7
                 LEFT JOIN usage AS used ON used.workspace_id = ?1 AND used.kind = ?8
                   AND used.owner = ?6
                 WHERE ",
                fence!()
            ),
            fence_params![self.fence, &self.owner, &self.name, UsageKind::State.as_str()],
        )?;
        row.map(|mut row| {
            Ok(Before {
                version: row.opt_int()?,
                size: row.opt_int()?,
                expires_at: row.opt_int()?,
                used: row.opt_int()?.unwrap_or(0),
            })
        })
        .transpose()
    }
}

/// Writes a value of a result, whatever its current version.
pub(super) fn write_result(
    tx: &mut dyn Tx,
    workspace: &str,
    write: &StateWrite,
    now_ms: i64,
) -> Result<StateWritten, StoreError> {
    let (owner, name) = (write.owner.as_str(), write.name.as_str());
    let row = tx.query_opt(
        "SELECT (SELECT size FROM state WHERE workspace_id = ?1 AND owner = ?2 AND name = ?3),
             (SELECT bytes FROM usage WHERE workspace_id = ?1 AND kind = ?4 AND owner = ?2)",
        params![workspace, owner, name, UsageKind::State.as_str()],
    )?;
    let (size, used) = match row {
        Some(mut row) => (row.opt_int()?, row.opt_int()?.unwrap_or(0)),
        None => (None, 0),
    };
    let before = Before { version: None, size, expires_at: None, used };
    let entry = Entry { workspace, owner, name, expires_at: None, now_ms };
    match &write.value {
        Some(value) => entry.set(tx, value, &before, write.owner_bytes_max),
        None => {
            entry.remove(tx, &before)?;
            Ok(StateWritten::Deleted(size.is_some()))
        }
    }
}

struct Entry<'a> {
    workspace: &'a str,
    owner: &'a str,
    name: &'a str,
    expires_at: Option<i64>,
    now_ms: i64,
}

impl Entry<'_> {
    fn set(
        &self,
        tx: &mut dyn Tx,
        value: &str,
        before: &Before,
        bytes_max: Option<i64>,
    ) -> Result<StateWritten, StoreError> {
        let size = taken(self.name, value.len());
        let growth = Growth::between(before.size, Some(size));
        if let Some(max) = bytes_max.filter(|_| !growth.fits(before.used, bytes_max)) {
            return Ok(StateWritten::OverQuota { used: before.used, max });
        }
        let row = tx.query_opt(
            "INSERT INTO state (workspace_id, owner, name, size, version, expires_at, updated_at,
                 value)
             VALUES (?1, ?2, ?3, ?4, 1, ?5, ?6, ?7)
             ON CONFLICT (workspace_id, owner, name) DO UPDATE SET
                 size = excluded.size, version = state.version + 1,
                 expires_at = excluded.expires_at, updated_at = excluded.updated_at,
                 value = excluded.value
             RETURNING version",
            params![
                self.workspace,
                self.owner,
                self.name,
                size,
                self.expires_at,
                self.now_ms,
                value
            ],
        )?;
        count(tx, UsageKind::State, (self.workspace, self.owner), growth)?;
        let mut row = row.ok_or_else(|| StoreError::Refused("the state got no version".into()))?;
        Ok(StateWritten::Set(row.int()?))
    }

    fn remove(&self, tx: &mut dyn Tx, before: &Before) -> Result<(), StoreError> {
        if before.size.is_none() {
            return Ok(());
        }
        tx.execute(
            "DELETE FROM state WHERE workspace_id = ?1 AND owner = ?2 AND name = ?3",
            params![self.workspace, self.owner, self.name],
        )?;
        count(
            tx,
            UsageKind::State,
            (self.workspace, self.owner),
            Growth::between(before.size, None),
        )
    }
}
