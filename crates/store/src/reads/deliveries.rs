//! The outbox.

use crate::sql::{Row, Tx};
use crate::types::{DeliveryRow, DeliveryStatus};
use crate::{StoreError, params};

macro_rules! select {
    ($tail:literal) => {
        concat!(
            "SELECT id, workspace_id, delivery_id, surface, target, run_id, sequence, payload,
                 status, attempts, error, created_at, updated_at
             FROM outbox ",
            $tail
        )
    };
}

/// A target with deliveries that are not settled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lane {
    pub surface: String,
    pub target: String,
}

/// Every target that waits, the longest waiting first.
pub fn lanes(tx: &mut dyn Tx, limit: i64) -> Result<Vec<Lane>, StoreError> {
    let rows = tx.query(
        "SELECT min(surface), target FROM outbox WHERE status IN ('pending', 'claimed')
         GROUP BY target ORDER BY min(id) LIMIT ?1",
        params![limit],
    )?;
    let read = |mut row: Row| Ok(Lane { surface: row.text()?, target: row.text()? });
    rows.into_iter().map(read).collect()
}

/// The next delivery of a target, first in first out.
pub fn next(tx: &mut dyn Tx, target: &str) -> Result<Option<DeliveryRow>, StoreError> {
    let row = tx.query_opt(
        select!(
            "WHERE status IN ('pending', 'claimed') AND target = ?1 ORDER BY target, id LIMIT 1"
        ),
        params![target],
    )?;
    row.map(read).transpose()
}

/// One delivery by its id.
pub fn get(
    tx: &mut dyn Tx,
    workspace: &str,
    delivery_id: &str,
) -> Result<Option<DeliveryRow>, StoreError> {
    let row = tx.query_opt(
        select!("WHERE delivery_id = ?1 AND workspace_id = ?2"),
        params![delivery_id, workspace],
    )?;
    row.map(read).transpose()
}

/// The deliveries of one run, in order.
pub fn of_run(
    tx: &mut dyn Tx,
    workspace: &str,
    run_id: &str,
) -> Result<Vec<DeliveryRow>, StoreError> {
    let rows = tx.query(
        select!("WHERE run_id = ?1 AND workspace_id = ?2 ORDER BY id LIMIT 1000"),
        params![run_id, workspace],
    )?;
    rows.into_iter().map(read).collect()
}

fn read(mut row: Row) -> Result<DeliveryRow, StoreError> {
    Ok(DeliveryRow {
        id: row.int()?,
        workspace_id: row.text()?,
        delivery_id: row.text()?,
        surface: row.text()?,
        target: row.text()?,
        run_id: row.text()?,
        sequence: row.int()?,
        payload: row.text()?,
        status: DeliveryStatus::parse(&row.text()?)
            .ok_or_else(|| StoreError::Refused("a delivery has an unknown status".to_owned()))?,
        attempts: row.int()?,
        error: row.opt_text()?,
        created_at: row.int()?,
        updated_at: row.int()?,
    })
}
