//! Which run writes: everything a live run changes is conditional on it.

use crate::sql::Tx;
use crate::{StoreError, params};

/// A run as its writer knows it: only while it runs in this attempt and epoch the write is its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunFence {
    pub workspace_id: String,
    pub run_id: String,
    pub attempt: i64,
    pub epoch: i64,
}

impl RunFence {
    /// Whether the run is under way, and nobody has asked for its end.
    pub(super) fn holds(&self, tx: &mut dyn Tx) -> Result<bool, StoreError> {
        let found = tx.query_opt(
            "SELECT 1 FROM runs WHERE workspace_id = ?1 AND run_id = ?2 AND status = 'running'
               AND attempt = ?3 AND epoch = ?4 AND cancel_requested = 0",
            params![&self.workspace_id, &self.run_id, self.attempt, self.epoch],
        )?;
        Ok(found.is_some())
    }
}
