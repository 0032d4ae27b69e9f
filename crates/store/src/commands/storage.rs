//! Storage written by a live run through the proxy.
//!
//! Invariant: a write is conditional on the run still being the caller's, and on the quotas of its owner and
//! of the workspace; the blob, both sums and the record of the call are one commit.

use super::Command;
use super::audit::insert_outcome;
use super::fence::{RunFence, fence, fence_params};
use super::usage::{Growth, UsageKind, count, taken};
use crate::audit::{AuditRecord, OK};
use crate::sql::Tx;
use crate::{StoreError, params};
use greenroom_protocol::ErrorCode;

/// The owner whose sum is that of the whole workspace; no blob is its own.
pub(crate) const WHOLE_WORKSPACE: &str = "";

#[derive(Debug, Clone)]
pub struct WriteStorage {
    pub fence: RunFence,
    /// Not empty.
    pub owner: String,
    pub name: String,
    /// Nothing removes the key.
    pub value: Option<Vec<u8>>,
    /// What the owner's names and values may take together.
    pub owner_bytes_max: i64,
    /// What those of all owners may take together.
    pub workspace_bytes_max: i64,
    /// The record of the call, kept with its outcome.
    pub audit: Option<AuditRecord>,
    pub now_ms: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StorageWritten {
    /// Written; the size of the value.
    Set { size: i64 },
    /// Removed; false when there was nothing.
    Deleted(bool),
    /// The owner or the workspace would take more than it may: nothing was written.
    OverQuota { used: i64, max: i64 },
    /// The run is over.
    Stale,
}

impl StorageWritten {
    /// How the call ends that asked for it.
    fn code(self) -> &'static str {
        match self {
            StorageWritten::Set { .. } | StorageWritten::Deleted(_) => OK,
            StorageWritten::OverQuota { .. } => ErrorCode::PayloadTooLarge.as_str(),
            StorageWritten::Stale => ErrorCode::Unauthorized.as_str(),
        }
    }
}

/// What the entry, its owner and the workspace take before the write.
struct Found {
    entry: Option<i64>,
    owner: i64,
    workspace: i64,
}

impl Command for WriteStorage {
    type Outcome = StorageWritten;

    fn execute(&self, tx: &mut dyn Tx) -> Result<StorageWritten, StoreError> {
        if self.owner == WHOLE_WORKSPACE {
            return Err(StoreError::Refused("storage needs an owner".to_owned()));
        }
        let written = self.write(tx)?;
        insert_outcome(tx, self.fence.run(), self.audit.as_ref(), written.code())?;
        Ok(written)
    }
}

impl WriteStorage {
    fn write(&self, tx: &mut dyn Tx) -> Result<StorageWritten, StoreError> {
        let Some(found) = self.find(tx)? else { return Ok(StorageWritten::Stale) };
        let taken = self.value.as_ref().map(|value| taken(&self.name, value.len()));
        let growth = Growth::between(found.entry, taken);
        let quotas =
            [(found.owner, self.owner_bytes_max), (found.workspace, self.workspace_bytes_max)];
        let over = quotas.into_iter().find(|(used, max)| !growth.fits(*used, Some(*max)));
        if let Some((used, max)) = over {
            return Ok(StorageWritten::OverQuota { used, max });
        }
        let written = match &self.value {
            Some(value) => self.set(tx, value)?,
            None => self.delete(tx)?,
        };
        for owner in [self.owner.as_str(), WHOLE_WORKSPACE] {
            count(tx, UsageKind::Storage, (&self.fence.workspace_id, owner), growth)?;
        }
        Ok(written)
    }

    /// The one condition, together with all that the write depends on.
    fn find(&self, tx: &mut dyn Tx) -> Result<Option<Found>, StoreError> {
        let row = tx.query_opt(
            concat!(
                "SELECT found.size, own.bytes, whole.bytes FROM runs
                 LEFT JOIN storage AS found ON found.workspace_id = ?1 AND found.owner = ?6
                   AND found.name = ?7
                 LEFT JOIN usage AS own ON own.workspace_id = ?1 AND own.kind = ?8
                   AND own.owner = ?6
                 LEFT JOIN usage AS whole ON whole.workspace_id = ?1 AND whole.kind = ?8
                   AND whole.owner = ?9
                 WHERE ",
                fence!()
            ),
            fence_params![
                self.fence,
                &self.owner,
                &self.name,
                UsageKind::Storage.as_str(),
                WHOLE_WORKSPACE
            ],
        )?;
        let name_bytes = taken(&self.name, 0);
        row.map(|mut row| {
            Ok(Found {
                entry: row.opt_int()?.map(|size| size + name_bytes),
                owner: row.opt_int()?.unwrap_or(0),
                workspace: row.opt_int()?.unwrap_or(0),
            })
        })
        .transpose()
    }

    fn set(&self, tx: &mut dyn Tx, value: &[u8]) -> Result<StorageWritten, StoreError> {
        let size = i64::try_from(value.len()).unwrap_or(i64::MAX);
        tx.execute(
            "INSERT INTO storage (workspace_id, owner, name, size, updated_at, value)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)
             ON CONFLICT (workspace_id, owner, name) DO UPDATE SET
                 size = excluded.size, updated_at = excluded.updated_at, value = excluded.value",
            params![&self.fence.workspace_id, &self.owner, &self.name, size, self.now_ms, value],
        )?;
        Ok(StorageWritten::Set { size })
    }

    fn delete(&self, tx: &mut dyn Tx) -> Result<StorageWritten, StoreError> {
        let removed = tx.execute(
            "DELETE FROM storage WHERE workspace_id = ?1 AND owner = ?2 AND name = ?3",
            params![&self.fence.workspace_id, &self.owner, &self.name],
        )?;
        Ok(StorageWritten::Deleted(removed == 1))
    }
}
