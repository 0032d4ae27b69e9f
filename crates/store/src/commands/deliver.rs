//! Deliveries: claimed before the socket is written to, settled after.
//!
//! Invariant: a settled delivery stays settled unless an operator retries or discards it; that is decided once and
//! recorded with the change.

use super::Command;
use super::results::{HOST, insert_host_event};
use crate::sql::{Tx, prose};
use crate::types::{DeliveryStatus, HostEvent};
use crate::{StoreError, params};

/// Claims a delivery; false when it is settled.
#[derive(Debug, Clone)]
pub struct ClaimDelivery {
    pub id: i64,
    pub now_ms: i64,
}

impl Command for ClaimDelivery {
    type Outcome = bool;

    fn execute(&self, tx: &mut dyn Tx) -> Result<bool, StoreError> {
        let changed = tx.execute(
            "UPDATE outbox SET status = ?3, updated_at = ?2, next_attempt_at = NULL,
                 attempts = attempts
                     + CASE WHEN status = ?3 AND updated_at = ?2 THEN 0 ELSE 1 END
             WHERE id = ?1 AND status IN (?3, ?4)",
            params![self.id, self.now_ms, DeliveryStatus::Claimed, DeliveryStatus::Pending],
        )?;
        Ok(changed == 1)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeliveryOutcome {
    Done,
    /// Refused by the surface, and not tried again.
    Failed {
        error: String,
    },
    /// It may have arrived or not; not sent again automatically.
    Unknown {
        error: String,
    },
    /// Will be tried again.
    Again {
        error: String,
        /// Time spent on it so far.
        waited_ms: i64,
        next_attempt_at: i64,
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

impl Command for FinishDelivery {
    type Outcome = bool;

    fn execute(&self, tx: &mut dyn Tx) -> Result<bool, StoreError> {
        let (status, error) = match &self.outcome {
            DeliveryOutcome::Done => (DeliveryStatus::Done, None),
            DeliveryOutcome::Failed { error } => (DeliveryStatus::Failed, Some(error)),
            DeliveryOutcome::Unknown { error } => (DeliveryStatus::Unknown, Some(error)),
            DeliveryOutcome::Again { error, .. } => (DeliveryStatus::Pending, Some(error)),
        };
        let (waited_ms, next_attempt_at) = match self.outcome {
            DeliveryOutcome::Again { waited_ms, next_attempt_at, .. } => {
                (Some(waited_ms), Some(next_attempt_at))
            }
            _ => (None, None),
        };
        let error = error.map(|error| prose(error));
        let changed = tx.execute(
            "UPDATE outbox SET status = ?2, error = ?3, updated_at = ?4,
                 waited_ms = COALESCE(CAST(?5 AS BIGINT), waited_ms), next_attempt_at = ?6
             WHERE id = ?1 AND status = ?7",
            params![
                self.id,
                status,
                &error,
                self.now_ms,
                waited_ms,
                next_attempt_at,
                DeliveryStatus::Claimed
            ],
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
}

impl FinishDelivery {
    /// Distinguishes a repeated command from a late one.
    fn already_finished(
        &self,
        tx: &mut dyn Tx,
        status: DeliveryStatus,
    ) -> Result<bool, StoreError> {
        let found = tx.query_opt(
            "SELECT id FROM outbox WHERE id = ?1 AND status = ?2 AND updated_at = ?3
               AND attempts > 0",
            params![self.id, status, self.now_ms],
        )?;
        Ok(found.is_some())
    }
}

/// What an operator decides about a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resolution {
    /// Send it again, at its position in the lane of its target.
    Retry,
    /// Never send it.
    Discard,
}

/// Retries a delivery that failed or whose outcome is unknown, or discards one.
#[derive(Debug, Clone)]
pub struct ResolveDelivery {
    pub id: i64,
    pub workspace_id: String,
    pub run_id: String,
    pub conversation_id: Option<String>,
    pub resolution: Resolution,
    /// Names the operator; a repeated command is recognised by its id.
    pub log: HostEvent,
    pub now_ms: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resolved {
    Done,
    /// Its status does not allow it.
    Conflict(DeliveryStatus),
    NotFound,
}

impl Command for ResolveDelivery {
    type Outcome = Resolved;

    fn execute(&self, tx: &mut dyn Tx) -> Result<Resolved, StoreError> {
        use DeliveryStatus::{Discarded, Failed, Pending, Unknown};
        let changed = match self.resolution {
            Resolution::Retry => tx.execute(
                "UPDATE outbox SET status = ?3, waited_ms = 0, next_attempt_at = NULL,
                     updated_at = ?2
                 WHERE id = ?1 AND status IN (?4, ?5)",
                params![self.id, self.now_ms, Pending, Failed, Unknown],
            )?,
            Resolution::Discard => tx.execute(
                "UPDATE outbox SET status = ?3, next_attempt_at = NULL, updated_at = ?2
                 WHERE id = ?1 AND status IN (?4, ?5, ?6)",
                params![self.id, self.now_ms, Discarded, Pending, Failed, Unknown],
            )?,
        };
        if changed == 0 {
            return self.already_resolved(tx);
        }
        let about = (self.conversation_id.as_deref(), Some(self.run_id.as_str()));
        insert_host_event(tx, &self.workspace_id, &self.log, about, self.now_ms)?;
        Ok(Resolved::Done)
    }
}

impl ResolveDelivery {
    fn already_resolved(&self, tx: &mut dyn Tx) -> Result<Resolved, StoreError> {
        let logged = tx.query_opt(
            "SELECT seq FROM events WHERE workspace_id = ?1 AND event_id = ?2 AND source = ?3",
            params![&self.workspace_id, &self.log.event_id, HOST],
        )?;
        if logged.is_some() {
            return Ok(Resolved::Done);
        }
        let row = tx.query_opt("SELECT status FROM outbox WHERE id = ?1", params![self.id])?;
        let status = row.map(|mut row| row.text()).transpose()?;
        let status = status.as_deref().and_then(DeliveryStatus::parse);
        Ok(status.map_or(Resolved::NotFound, Resolved::Conflict))
    }
}
