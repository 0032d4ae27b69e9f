//! Deliveries: claimed before the socket is written to, settled after.
//!
//! Invariant: what is settled stays settled.

use super::results::insert_host_event;
use crate::sql::{Tx, prose};
use crate::types::HostEvent;
use crate::{StoreError, params};

/// Takes a delivery in hand; false when it is settled already.
#[derive(Debug, Clone)]
pub struct ClaimDelivery {
    pub id: i64,
    pub now_ms: i64,
}

impl ClaimDelivery {
    pub(super) fn execute(&self, tx: &mut dyn Tx) -> Result<bool, StoreError> {
        let changed = tx.execute(
            "UPDATE outbox SET status = 'claimed', updated_at = ?2,
                 attempts = attempts
                     + CASE WHEN status = 'claimed' AND updated_at = ?2 THEN 0 ELSE 1 END
             WHERE id = ?1 AND status IN ('pending', 'claimed')",
            params![self.id, self.now_ms],
        )?;
        Ok(changed == 1)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeliveryOutcome {
    Done,
    /// Not taken by the surface, and not tried again.
    Failed {
        error: String,
    },
    /// It may have arrived or not; never sent again silently.
    Unknown {
        error: String,
    },
    /// Certainly not taken; will be tried again.
    Again {
        error: String,
    },
}

/// Settles a claimed delivery and adds its outcome to the event log.
#[derive(Debug, Clone)]
pub struct FinishDelivery {
    pub id: i64,
    pub workspace_id: String,
    pub run_id: String,
    pub conversation_id: Option<String>,
    pub outcome: DeliveryOutcome,
    pub log: Option<HostEvent>,
    pub now_ms: i64,
}

impl FinishDelivery {
    pub(super) fn execute(&self, tx: &mut dyn Tx) -> Result<bool, StoreError> {
        let (status, error) = match &self.outcome {
            DeliveryOutcome::Done => ("done", None),
            DeliveryOutcome::Failed { error } => ("failed", Some(error.as_str())),
            DeliveryOutcome::Unknown { error } => ("unknown", Some(error.as_str())),
            DeliveryOutcome::Again { error } => ("pending", Some(error.as_str())),
        };
        let error = error.map(prose);
        let changed = tx.execute(
            "UPDATE outbox SET status = ?2, error = ?3, updated_at = ?4
             WHERE id = ?1 AND status = 'claimed'",
            params![self.id, status, &error, self.now_ms],
        )?;
        if changed == 0 {
            return self.already_finished(tx, status);
        }
        if let Some(event) = &self.log {
            let about = (self.conversation_id.as_deref(), Some(self.run_id.as_str()));
            insert_host_event(tx, &self.workspace_id, event, about, self.now_ms)?;
        }
        Ok(true)
    }

    /// Tells a repeated command from a late one.
    fn already_finished(&self, tx: &mut dyn Tx, status: &str) -> Result<bool, StoreError> {
        let found = tx.query_opt(
            "SELECT id FROM outbox WHERE id = ?1 AND status = ?2 AND updated_at = ?3
               AND attempts > 0",
            params![self.id, status, self.now_ms],
        )?;
        Ok(found.is_some())
    }
}
