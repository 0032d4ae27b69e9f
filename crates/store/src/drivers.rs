//! Thin drivers for the two databases: connections, transactions, errors.

#[cfg(test)]
mod plans;
mod postgres;
mod sqlite;

pub(crate) use self::postgres::PostgresDriver;
pub(crate) use self::sqlite::{
    Guarded, Keeper, SqliteDriver, inspect, open_guarded, take_lock as lock_file,
};

use crate::StoreError;
use crate::copy::{CopyError, Feed, Table};
use crate::sql::{Cell, Tx};
use std::path::PathBuf;

pub(crate) trait Driver: Tx + Send {
    /// Whether the database has our tables.
    fn has_schema(&mut self) -> Result<bool, StoreError>;
    /// Runs a script of several statements, placeholders of the schema filled in.
    fn run_script(&mut self, script: &str) -> Result<(), StoreError>;
    /// Copies a database file to its name with a suffix and returns the path; does nothing on a server.
    fn copy_aside(&mut self, suffix: &str) -> Result<Option<PathBuf>, StoreError>;
    /// Makes this driver the writer of the given epoch.
    fn hold(&mut self, epoch: i64) -> Result<(), StoreError>;
    fn begin(&mut self) -> Result<(), StoreError>;
    fn commit(&mut self) -> Result<(), StoreError>;
    /// After a reconnect: whether the last commit, whose reply was lost, took effect.
    fn has_committed(&mut self) -> Result<bool, StoreError>;
    fn rollback(&mut self);
    /// Opens the connection again and takes the writer lock; the error is `Lost` when another host has taken over.
    fn reconnect(&mut self) -> Result<(), StoreError>;
}

/// Whole tables, for copies.
pub(crate) trait Bulk: Driver {
    /// Begins a transaction that sees one state of the database.
    fn begin_snapshot(&mut self) -> Result<(), StoreError>;
    /// Visits the rows of a statement, holding one at a time.
    fn each_row(
        &mut self,
        sql: &str,
        each: &mut dyn FnMut(&[Cell]) -> Result<(), CopyError>,
    ) -> Result<(), CopyError>;
    /// Fills a table of an open transaction.
    fn load_rows(&mut self, table: &Table, feed: Feed<'_>) -> Result<(), CopyError>;
    /// After all tables: everything the database has beside its rows.
    fn finish_load(&mut self) -> Result<(), CopyError>;
}
