//! Which run writes: everything a live run changes is conditional on it.
//!
//! Invariant: the condition is written here once; a statement takes it with `fence!` and its parameters with
//! `fence_params!`.

use crate::StoreError;
use crate::sql::Tx;
use crate::types::RunRow;

/// A run as its writer knows it: a write is its own only while it runs in this attempt and epoch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunFence {
    pub workspace_id: String,
    pub run_id: String,
    pub attempt: i64,
    pub epoch: i64,
}

/// The condition on a row of `runs`, with the first five parameters of the statement.
macro_rules! fence {
    () => {
        "runs.workspace_id = ?1 AND runs.run_id = ?2 AND runs.attempt = ?3 AND runs.epoch = ?4
           AND runs.status = ?5"
    };
}

/// The parameters of a statement with `fence!`; its own begin with `?6`.
macro_rules! fence_params {
    ($fence:expr $(, $value:expr)* $(,)?) => {
        $crate::params![
            &$fence.workspace_id,
            &$fence.run_id,
            $fence.attempt,
            $fence.epoch,
            ::greenroom_protocol::RunStatus::Running,
            $($value),*
        ]
    };
}

pub(super) use {fence, fence_params};

impl RunFence {
    /// Workspace and id of the run.
    pub(super) fn run(&self) -> (&str, &str) {
        (&self.workspace_id, &self.run_id)
    }

    /// Whether the run is active and its cancellation was not requested.
    pub(super) fn holds(&self, tx: &mut dyn Tx) -> Result<bool, StoreError> {
        let found = tx.query_opt(
            concat!("SELECT 1 FROM runs WHERE ", fence!(), " AND cancel_requested = 0"),
            fence_params![self],
        )?;
        Ok(found.is_some())
    }
}

impl RunRow {
    pub fn fence(&self) -> RunFence {
        RunFence {
            workspace_id: self.workspace_id.clone(),
            run_id: self.run_id.clone(),
            attempt: self.attempt,
            epoch: self.epoch,
        }
    }
}
