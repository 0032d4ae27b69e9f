//! The outbox: the lanes that have work, one delivery, and pages of them.
//!
//! Invariant: finding lanes costs one look-up per target, however many deliveries wait for it; a page reads
//! a bounded number of rows.

use crate::conditions::{delivery_is_open, delivery_is_unsuccessful};
use crate::sql::{Row, Tx};
use crate::types::{DeliveryRow, DeliveryStatus, NewDelivery};
use crate::{StoreError, params};

macro_rules! select {
    ($payload:literal, $($tail:tt)+) => {
        concat!(
            "SELECT id, workspace_id, delivery_id, surface, target, run_id, sequence, ",
            $payload,
            ", status, attempts, error, created_at, updated_at, waited_ms, next_attempt_at
             FROM outbox ",
            $($tail)+
        )
    };
}

/// A target with deliveries that are not settled.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Lane {
    pub surface: String,
    pub target: String,
}

impl From<&NewDelivery> for Lane {
    fn from(delivery: &NewDelivery) -> Self {
        Self { surface: delivery.surface.clone(), target: delivery.target.clone() }
    }
}

/// Targets with work, in the order of their names, after `after`. Each takes one index look-up.
pub fn lanes(tx: &mut dyn Tx, after: &str, limit: i64) -> Result<Vec<Lane>, StoreError> {
    let rows = tx.query(
        concat!(
            "WITH RECURSIVE open (target, surface) AS (
                 SELECT * FROM (SELECT target, surface FROM outbox
                     WHERE ",
            delivery_is_open!(),
            " AND target > ?1 ORDER BY target, id LIMIT 1) AS first
                 UNION ALL
                 SELECT (SELECT target FROM outbox WHERE ",
            delivery_is_open!(),
            " AND target > open.target ORDER BY target, id LIMIT 1),
                     (SELECT surface FROM outbox WHERE ",
            delivery_is_open!(),
            " AND target > open.target ORDER BY target, id LIMIT 1)
                 FROM open WHERE open.target IS NOT NULL)
             SELECT target, surface FROM open WHERE target IS NOT NULL LIMIT ?2"
        ),
        params![after, limit],
    )?;
    let read = |mut row: Row| Ok(Lane { target: row.text()?, surface: row.text()? });
    rows.into_iter().map(read).collect()
}

/// The next delivery of a target, first in first out.
pub fn next(tx: &mut dyn Tx, target: &str) -> Result<Option<DeliveryRow>, StoreError> {
    let row = tx.query_opt(
        select!(
            "payload",
            "WHERE ",
            delivery_is_open!(),
            " AND target = ?1 ORDER BY target, id LIMIT 1"
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
        select!("payload", "WHERE delivery_id = ?1 AND workspace_id = ?2"),
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
        select!("payload", "WHERE run_id = ?1 AND workspace_id = ?2 ORDER BY id LIMIT 1000"),
        params![run_id, workspace],
    )?;
    rows.into_iter().map(read).collect()
}

/// What a listing is narrowed to.
#[derive(Debug, Clone, Default)]
pub struct DeliveryFilter {
    pub status: Option<DeliveryStatus>,
    pub surface: Option<String>,
    pub run_id: Option<String>,
}

/// Rows of a page, and the id to go on before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryPage {
    /// Without their payloads.
    pub rows: Vec<DeliveryRow>,
    pub next: Option<i64>,
}

/// A page, newest first, before an id. It reads at most `read_max` deliveries, so it may be short although there
/// is more.
pub fn page(
    tx: &mut dyn Tx,
    workspace: &str,
    filter: &DeliveryFilter,
    before: i64,
    (limit, read_max): (usize, i64),
) -> Result<DeliveryPage, StoreError> {
    let floor = match filter.run_id {
        Some(_) => None,
        None => floor(tx, workspace, filter.status, before, read_max)?,
    };
    let status = filter.status;
    let wanted = i64::try_from(limit).map_or(i64::MAX, |limit| limit.saturating_add(1));
    let (least, surface) = (floor.unwrap_or(0), &filter.surface);
    let rows = match (&filter.run_id, filter.status) {
        (Some(run_id), _) => tx.query(
            select!(
                "''",
                "WHERE run_id = ?3 AND workspace_id || '' = ?1 AND id < ?2
                   AND (CAST(?4 AS TEXT) IS NULL OR status || '' = ?4)
                   AND (CAST(?5 AS TEXT) IS NULL OR surface = ?5)
                 ORDER BY id DESC LIMIT ?6"
            ),
            params![workspace, before, run_id, status, surface, wanted],
        )?,
        (None, Some(one)) if is_indexed(one) => tx.query(
            select!(
                "''",
                "WHERE workspace_id = ?1 AND status = ?3 AND id < ?2 AND id >= ?4 AND ",
                delivery_is_unsuccessful!(),
                " AND (CAST(?5 AS TEXT) IS NULL OR surface = ?5)
                 ORDER BY id DESC LIMIT ?6"
            ),
            params![workspace, before, status, least, surface, wanted],
        )?,
        (None, _) => tx.query(
            select!(
                "''",
                "WHERE id < ?2 AND id >= ?4 AND workspace_id || '' = ?1
                   AND (CAST(?3 AS TEXT) IS NULL OR status || '' = ?3)
                   AND (CAST(?5 AS TEXT) IS NULL OR surface = ?5)
                 ORDER BY id DESC LIMIT ?6"
            ),
            params![workspace, before, status, least, surface, wanted],
        )?,
    };
    let mut rows = rows.into_iter().map(read).collect::<Result<Vec<_>, _>>()?;
    let is_cut = rows.len() > limit;
    rows.truncate(limit);
    let last = rows.last().map(|row| row.id);
    Ok(DeliveryPage { rows, next: if is_cut { last } else { floor } })
}

/// The id at which a page has read `rows` deliveries; none when there are fewer.
fn floor(
    tx: &mut dyn Tx,
    workspace: &str,
    status: Option<DeliveryStatus>,
    before: i64,
    rows: i64,
) -> Result<Option<i64>, StoreError> {
    let row = match status {
        Some(status) if is_indexed(status) => tx.query_opt(
            concat!(
                "SELECT id FROM outbox WHERE workspace_id = ?1 AND status = ?4 AND id < ?2 AND ",
                delivery_is_unsuccessful!(),
                " ORDER BY id DESC LIMIT 1 OFFSET ?3"
            ),
            params![workspace, before, rows - 1, status],
        )?,
        _ => tx.query_opt(
            "SELECT id FROM outbox WHERE id < ?1 ORDER BY id DESC LIMIT 1 OFFSET ?2",
            params![before, rows - 1],
        )?,
    };
    row.map(|mut row| row.int()).transpose()
}

/// Whether `outbox_unsuccessful` holds it.
fn is_indexed(status: DeliveryStatus) -> bool {
    use DeliveryStatus::{Discarded, Failed, Unknown};
    matches!(status, Failed | Unknown | Discarded)
}

/// Deliveries that need an operator, each status counted up to a bound.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Unsuccessful {
    pub failed: i64,
    pub unknown: i64,
}

pub fn unsuccessful(tx: &mut dyn Tx, workspace: &str) -> Result<Unsuccessful, StoreError> {
    let mut count = |status: DeliveryStatus| {
        let row = tx.query_opt(
            concat!(
                "SELECT COUNT(*) FROM (SELECT 1 FROM outbox WHERE workspace_id = ?1 AND status = ?2
                     AND ",
                delivery_is_unsuccessful!(),
                " LIMIT 10000) AS few"
            ),
            params![workspace, status],
        )?;
        row.map_or(Ok(0), |mut row| row.int())
    };
    Ok(Unsuccessful {
        failed: count(DeliveryStatus::Failed)?,
        unknown: count(DeliveryStatus::Unknown)?,
    })
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
        waited_ms: row.int()?,
        next_attempt_at: row.opt_int()?,
    })
}
