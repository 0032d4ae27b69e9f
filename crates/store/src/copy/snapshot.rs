//! One state of a database, read while a host may write to it.
//!
//! Invariant: everything that is read belongs to the same commit, and nothing is written, not even a checkpoint.

use super::{CopyError, Sum, Table, Visit, refuse_absent};
use crate::Location;
use crate::drivers::{Bulk, PostgresDriver, SqliteDriver};
use crate::schema;
use crate::sql::Dialect;
use crate::store::Sync;
use crate::{StoreError, params};

pub struct Snapshot {
    driver: Box<dyn Bulk>,
    schema: i64,
    epoch: i64,
    tables: Vec<Table>,
}

impl Snapshot {
    /// The state of this moment; a host may go on writing. Blocks, also later, so not for async code.
    pub fn open(location: &Location) -> Result<Snapshot, CopyError> {
        refuse_absent(location)?;
        let driver: Box<dyn Bulk> = match location {
            Location::Sqlite(path) => Box::new(SqliteDriver::snapshot(path)?),
            Location::Postgres(url) => Box::new(PostgresDriver::reader(url)?),
        };
        Self::begin(driver, location)
    }

    /// The same, with the right to write, so that no host has it.
    pub fn open_alone(location: &Location) -> Result<Snapshot, CopyError> {
        refuse_absent(location)?;
        let driver: Box<dyn Bulk> = match location {
            Location::Sqlite(path) => Box::new(SqliteDriver::writer(path, Sync::Full)?),
            Location::Postgres(url) => Box::new(PostgresDriver::writer(url)?),
        };
        Self::begin(driver, location)
    }

    fn begin(mut driver: Box<dyn Bulk>, location: &Location) -> Result<Snapshot, CopyError> {
        let no_database = || CopyError::NoDatabase(location.to_string());
        if !driver.has_schema()? {
            return Err(no_database());
        }
        driver.begin_snapshot()?;
        let schema = schema::version(&mut *driver)?.ok_or_else(no_database)?.found;
        let epoch = schema::read_meta(&mut *driver, "epoch")?;
        let epoch =
            epoch.parse().map_err(|_| StoreError::Refused(format!("`{epoch}` is not an epoch")))?;
        let mut tables = Vec::new();
        for name in schema::tables() {
            tables.extend(Table::read(&mut *driver, name)?);
        }
        Ok(Snapshot { driver, schema, epoch, tables })
    }

    pub fn schema(&self) -> i64 {
        self.schema
    }

    pub fn epoch(&self) -> i64 {
        self.epoch
    }

    pub fn dialect(&self) -> Dialect {
        self.driver.dialect()
    }

    /// Every table of the schema that this database has.
    pub fn tables(&self) -> Vec<Table> {
        self.tables.clone()
    }

    /// The database's key for cursors, which the owner of artifacts' bytes is named after.
    pub fn cursor_key(&mut self) -> Result<String, CopyError> {
        Ok(schema::read_meta(&mut *self.driver, "cursor_key")?)
    }

    /// Goes through a table in the order of its key, row by row with its line.
    pub fn read(&mut self, table: &Table, each: Visit<'_>) -> Result<Sum, CopyError> {
        table.read_rows(&mut *self.driver, each)
    }

    /// Ends the snapshot and leaves the connection, with its right to write if it has that.
    pub(super) fn into_driver(mut self) -> Box<dyn Bulk> {
        self.driver.rollback();
        self.driver
    }
}

/// Whether the database refers to bytes with this hash, now.
pub fn refers_to(location: &Location, sha256: &str) -> Result<bool, StoreError> {
    let mut driver: Box<dyn Bulk> = match location {
        Location::Sqlite(path) => Box::new(SqliteDriver::snapshot(path)?),
        Location::Postgres(url) => Box::new(PostgresDriver::reader(url)?),
    };
    let found =
        driver.query_opt("SELECT 1 FROM artifacts WHERE sha256 = ?1 LIMIT 1", params![sha256])?;
    Ok(found.is_some())
}
