//! Storage written by a live run through the proxy.
//!
//! Invariant: a write is conditional on the run's fence, and on the quotas of its owner and of the workspace; the
//! blob, both sums and the audit record of the call are one commit.

use super::Command;
use super::audit::insert_outcome;
use super::fence::{RunFence, fence, fence_params};
use super::usage::{Growth, UsageKind, count, taken};
use crate::audit::{AuditRecord, OK};
use crate::sql::Tx;
use crate::{StoreError, params};
use greenroom_protocol::ErrorCode;

/// The owner whose usage is that of the whole workspace; it has no blobs.
pub(crate) const WHOLE_WORKSPACE: &str = "";

#[derive(Debug, Clone)]
pub struct WriteStorage {
    pub fence: RunFence,
    /// Not empty.
    pub owner: String,
    pub name: String,
    /// None removes the key.
    pub value: Option<Vec<u8>>,
    /// Limit for the owner's names and values together.
    pub owner_bytes_max: i64,
    /// Limit for those of all owners together.
    pub workspace_bytes_max: i64,
    /// The audit record of the call, stored with its outcome.
    pub audit: Option<AuditRecord>,
    pub now_ms: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StorageWritten {
    /// Written; the size of the value.
    Set { size: i64 },
    /// Removed; false when there was no value.
    Deleted(bool),
    /// The write would exceed the quota of the owner or the workspace: nothing was written.
    OverQuota { used: i64, max: i64 },
    /// The run has ended.
    Stale,
}

impl StorageWritten {
    /// The code of the call.
    fn code(self) -> &'static str {
        match self {
            StorageWritten::Set { .. } | StorageWritten::Deleted(_) => OK,
            StorageWritten::OverQuota { .. } => ErrorCode::PayloadTooLarge.as_str(),
            StorageWritten::Stale => ErrorCode::Unauthorized.as_str(),
        }
    }
}

/// Sizes of the entry, its owner and the workspace before the write.
struct Before {
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
        let Some(before) = self.read(tx)? else { return Ok(StorageWritten::Stale) };
        let taken = self.value.as_ref().map(|value| taken(&self.name, value.len()));
        let growth = Growth::between(before.entry, taken);
        let quotas =
            [(before.owner, self.owner_bytes_max), (before.workspace, self.workspace_bytes_max)];
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

    /// Everything the write depends on; none when the fence does not hold.
    fn read(&self, tx: &mut dyn Tx) -> Result<Option<Before>, StoreError> {
        let row = tx.query_opt(
            concat!(
                "SELECT entry.size, own.bytes, whole.bytes FROM runs
                 LEFT JOIN storage AS entry ON entry.workspace_id = ?1 AND entry.owner = ?6
                   AND entry.name = ?7
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
            Ok(Before {
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
