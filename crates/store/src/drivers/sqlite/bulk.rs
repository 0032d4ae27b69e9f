//! Whole tables of SQLite, for copies.

use super::{SqliteDriver, bind, cell, refused};
use crate::StoreError;
use crate::copy::{CopyError, Feed, Table};
use crate::drivers::Bulk;
use crate::sql::{Cell, Tx};
use rusqlite::{Connection, OpenFlags};
use std::path::Path;

impl SqliteDriver {
    /// Reads while a host may write, and leaves the log as it is.
    pub(crate) fn snapshot(path: &Path) -> Result<Self, StoreError> {
        Self::reader(path)
    }

    /// Fills a new file without a journal: if that is interrupted, the file is useless.
    pub(crate) fn loader(path: &Path) -> Result<Self, StoreError> {
        let gone = |error: std::io::Error| {
            StoreError::Unavailable(format!("cannot write `{}`: {error}", path.display()))
        };
        match std::fs::remove_file(path) {
            Ok(()) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(gone(error)),
        }
        let connection =
            Connection::open_with_flags(path, OpenFlags::default()).map_err(refused)?;
        connection
            .execute_batch("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;")
            .map_err(refused)?;
        Self::with(connection, None)
    }
}

impl Bulk for SqliteDriver {
    fn begin_snapshot(&mut self) -> Result<(), StoreError> {
        self.execute("BEGIN", &[])?;
        // The snapshot begins with the first read.
        self.query("SELECT 1 FROM meta LIMIT 1", &[]).map(drop)
    }

    fn each_row(
        &mut self,
        sql: &str,
        each: &mut dyn FnMut(&[Cell]) -> Result<(), CopyError>,
    ) -> Result<(), CopyError> {
        let mut statement = self.connection.prepare(sql).map_err(refused)?;
        let columns = statement.column_count();
        let mut found = statement.raw_query();
        let mut cells = Vec::with_capacity(columns);
        while let Some(row) = found.next().map_err(refused)? {
            cells.clear();
            for column in 0..columns {
                cells.push(cell(row, column)?);
            }
            each(&cells)?;
        }
        Ok(())
    }

    fn load_rows(&mut self, table: &Table, feed: Feed<'_>) -> Result<(), CopyError> {
        let places: Vec<String> = (1..=table.columns.len()).map(|n| format!("?{n}")).collect();
        let sql = format!(
            "INSERT INTO \"{}\" ({}) VALUES ({})",
            table.name,
            table.column_list(),
            places.join(", ")
        );
        let mut statement = self.connection.prepare(&sql).map_err(refused)?;
        feed(&mut |cells| {
            for (index, cell) in cells.iter().enumerate() {
                bind(&mut statement, index, cell.as_value())?;
            }
            statement.raw_execute().map_err(refused)?;
            Ok(())
        })
    }

    fn finish_load(&mut self) -> Result<(), CopyError> {
        let said: String = self
            .connection
            .query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))
            .map_err(refused)?;
        match said.as_str() {
            "ok" => Ok(()),
            _ => Err(CopyError::Damaged(said)),
        }
    }
}
