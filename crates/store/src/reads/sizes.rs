//! How much is kept: rows per table, and the database as a whole.
//!
//! Invariant: cheap however much there is: a table is counted up to a bound; beyond it the numbers of its
//! rows show about how many there are, and rows without a number a lower bound.

use super::rates::database_bytes;
use crate::StoreError;
use crate::sql::{Row, Tx};

/// Rows of a table that are counted one by one; the statements below name it too.
const COUNTED_MAX: i64 = 100_000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sizes {
    pub database_bytes: i64,
    /// What the artifacts say they are together, as far as they are counted.
    pub artifact_bytes: i64,
    pub tables: Vec<TableSize>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableSize {
    pub name: &'static str,
    pub rows: i64,
    pub precision: Precision,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Precision {
    Exact,
    About,
    AtLeast,
}

macro_rules! counted {
    ($table:literal) => {
        (
            $table,
            concat!("SELECT count(*) FROM (SELECT 1 FROM ", $table, " LIMIT 100001) AS few"),
            None,
        )
    };
    ($table:literal by $id:literal) => {
        (
            $table,
            concat!("SELECT count(*) FROM (SELECT 1 FROM ", $table, " LIMIT 100001) AS few"),
            Some(concat!(
                "SELECT (SELECT max(",
                $id,
                ") FROM ",
                $table,
                ") - (SELECT min(",
                $id,
                ") FROM ",
                $table,
                ") + 1"
            )),
        )
    };
}

/// A table, how it is counted, and how its rows are estimated.
type Counted = (&'static str, &'static str, Option<&'static str>);

const TABLES: &[Counted] = &[
    counted!("events" by "seq"),
    counted!("conversations"),
    counted!("runs"),
    counted!("results"),
    counted!("diagnostics" by "id"),
    counted!("transcript" by "id"),
    counted!("state"),
    counted!("storage"),
    counted!("artifacts"),
    counted!("outbox" by "id"),
    counted!("approvals"),
    counted!("audit" by "id"),
];

pub fn sizes(tx: &mut dyn Tx) -> Result<Sizes, StoreError> {
    let database_bytes = database_bytes(tx)?;
    let tables = TABLES.iter().map(|table| count(tx, table)).collect::<Result<_, _>>()?;
    let artifact_bytes = number(
        tx,
        "SELECT CAST(COALESCE(SUM(size), 0) AS BIGINT)
         FROM (SELECT size FROM artifacts LIMIT 100001) AS few",
    )?;
    Ok(Sizes { database_bytes, artifact_bytes, tables })
}

fn count(tx: &mut dyn Tx, (name, counted, estimate): &Counted) -> Result<TableSize, StoreError> {
    let rows = number(tx, counted)?;
    let (rows, precision) = match estimate {
        _ if rows <= COUNTED_MAX => (rows, Precision::Exact),
        Some(estimate) => (number(tx, estimate)?, Precision::About),
        None => (COUNTED_MAX, Precision::AtLeast),
    };
    Ok(TableSize { name, rows, precision })
}

fn number(tx: &mut dyn Tx, sql: &'static str) -> Result<i64, StoreError> {
    let read = |mut row: Row| row.opt_int();
    Ok(tx.query_opt(sql, &[])?.map(read).transpose()?.flatten().unwrap_or(0))
}
