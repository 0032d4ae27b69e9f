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

/// Deliveries that are not settled, oldest first, from `after` on.
pub fn open(tx: &mut dyn Tx, after: i64, limit: i64) -> Result<Vec<DeliveryRow>, StoreError> {
    let rows = tx.query(
        select!("WHERE status IN ('pending', 'claimed') AND id > ?1 ORDER BY id LIMIT ?2"),
        params![after, limit],
    )?;
    rows.into_iter().map(read).collect()
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
