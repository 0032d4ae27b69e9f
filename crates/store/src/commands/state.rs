//! State written by a live run through the proxy.
//!
//! Invariant: a write is conditional on the run still being the caller's (running, same attempt and epoch)
//! and, where asked for, on the version the caller last saw.

use super::audit::insert_outcome;
use crate::audit::{AuditRecord, OK};
use crate::sql::Tx;
use crate::{StoreError, params, reads};
use greenroom_protocol::ErrorCode;

#[derive(Debug, Clone)]
pub struct WriteState {
    pub workspace_id: String,
    pub run_id: String,
    pub attempt: i64,
    pub epoch: i64,
    pub owner: String,
    pub name: String,
    /// JSON text; nothing removes the key.
    pub value: Option<String>,
    /// The version the key must have now, 0 for none at all.
    pub if_version: Option<i64>,
    pub expires_at: Option<i64>,
    /// What the owner's names and values may take together.
    pub owner_bytes_max: Option<i64>,
    /// The record of the call, kept with its outcome.
    pub audit: Option<AuditRecord>,
    pub now_ms: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StateWritten {
    /// Written, with its new version.
    Set(i64),
    /// Removed; false when there was nothing.
    Deleted(bool),
    /// The key has another version.
    Conflict(i64),
    /// The owner's values would take more than they may: nothing was written.
    OverQuota { used: i64, max: i64 },
    /// The run is over.
    Stale,
}

impl StateWritten {
    /// How the call ends that asked for it.
    fn code(self) -> &'static str {
        match self {
            StateWritten::Set(_) | StateWritten::Deleted(_) => OK,
            StateWritten::Conflict(_) => ErrorCode::InvalidArgument.as_str(),
            StateWritten::OverQuota { .. } => ErrorCode::PayloadTooLarge.as_str(),
            StateWritten::Stale => ErrorCode::Unauthorized.as_str(),
        }
    }
}

impl WriteState {
    pub(super) fn execute(&self, tx: &mut dyn Tx) -> Result<StateWritten, StoreError> {
        let written = self.write(tx)?;
        let run = (self.workspace_id.as_str(), self.run_id.as_str());
        insert_outcome(tx, run, self.audit.as_ref(), written.code())?;
        Ok(written)
    }

    fn write(&self, tx: &mut dyn Tx) -> Result<StateWritten, StoreError> {
        let live = tx.query_opt(
            "SELECT 1 FROM runs WHERE workspace_id = ?1 AND run_id = ?2 AND status = 'running'
               AND attempt = ?3 AND epoch = ?4",
            params![&self.workspace_id, &self.run_id, self.attempt, self.epoch],
        )?;
        if live.is_none() {
            return Ok(StateWritten::Stale);
        }
        if let Some(wanted) = self.if_version {
            let row =
                reads::state::get(tx, &self.workspace_id, &self.owner, &self.name, self.now_ms)?;
            let found = row.map_or(0, |row| row.version);
            if found != wanted {
                return Ok(StateWritten::Conflict(found));
            }
        }
        match &self.value {
            Some(value) => self.set(tx, value),
            None => self.delete(tx),
        }
    }

    fn set(&self, tx: &mut dyn Tx, value: &str) -> Result<StateWritten, StoreError> {
        let row = tx.query_opt(
            "INSERT INTO state (workspace_id, owner, name, value, version, expires_at, updated_at)
             VALUES (?1, ?2, ?3, ?4, 1, ?5, ?6)
             ON CONFLICT (workspace_id, owner, name) DO UPDATE SET
                 value = excluded.value, version = state.version + 1,
                 expires_at = excluded.expires_at, updated_at = excluded.updated_at
             RETURNING version",
            params![
                &self.workspace_id,
                &self.owner,
                &self.name,
                value,
                self.expires_at,
                self.now_ms
            ],
        )?;
        let mut row = row.ok_or_else(|| StoreError::Refused("the state got no version".into()))?;
        Ok(StateWritten::Set(row.int()?))
    }

    fn delete(&self, tx: &mut dyn Tx) -> Result<StateWritten, StoreError> {
        let removed = tx.execute(
            "DELETE FROM state WHERE workspace_id = ?1 AND owner = ?2 AND name = ?3",
            params![&self.workspace_id, &self.owner, &self.name],
        )?;
        Ok(StateWritten::Deleted(removed == 1))
    }
}
