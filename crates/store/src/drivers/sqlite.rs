//! SQLite: WAL, one writer, readers beside it, checkpoints off the writer's path.

use super::Driver;
use crate::StoreError;
use crate::sql::{Cell, Row, Tx, Value};
use crate::store::Sync;
use rusqlite::types::ValueRef;
use rusqlite::{CachedStatement, Connection, ErrorCode, OpenFlags};
use std::path::Path;

pub(crate) struct SqliteDriver {
    connection: Connection,
}

impl SqliteDriver {
    pub(crate) fn writer(path: &Path, sync: Sync) -> Result<Self, StoreError> {
        let connection = Connection::open(path).map_err(refused)?;
        let level = match sync {
            Sync::Full => "FULL",
            Sync::Normal => "NORMAL",
        };
        connection
            .execute_batch(&format!(
                "PRAGMA journal_mode = WAL; PRAGMA synchronous = {level};
                 PRAGMA wal_autocheckpoint = 0; PRAGMA temp_store = MEMORY;
                 PRAGMA cache_size = -16000;"
            ))
            .map_err(refused)?;
        Ok(Self::with(connection))
    }

    pub(crate) fn reader(path: &Path) -> Result<Self, StoreError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags).map_err(refused)?;
        connection.execute_batch("PRAGMA cache_size = -8000;").map_err(refused)?;
        Ok(Self::with(connection))
    }

    fn with(connection: Connection) -> Self {
        connection.set_prepared_statement_cache_capacity(64);
        Self { connection }
    }

    fn prepare(
        &self,
        sql: &'static str,
        params: &[Value<'_>],
    ) -> Result<CachedStatement<'_>, StoreError> {
        let mut statement = self.connection.prepare_cached(sql).map_err(refused)?;
        for (index, value) in params.iter().enumerate() {
            let bound = match value {
                Value::Null => statement.raw_bind_parameter(index + 1, rusqlite::types::Null),
                Value::Int(value) => statement.raw_bind_parameter(index + 1, value),
                Value::Text(value) => statement.raw_bind_parameter(index + 1, value),
                Value::Blob(value) => statement.raw_bind_parameter(index + 1, value),
            };
            bound.map_err(refused)?;
        }
        Ok(statement)
    }
}

impl Tx for SqliteDriver {
    fn execute(&mut self, sql: &'static str, params: &[Value<'_>]) -> Result<u64, StoreError> {
        let changed = self.prepare(sql, params)?.raw_execute().map_err(refused)?;
        Ok(changed as u64)
    }

    fn query(&mut self, sql: &'static str, params: &[Value<'_>]) -> Result<Vec<Row>, StoreError> {
        let mut statement = self.prepare(sql, params)?;
        let columns = statement.column_count();
        let mut found = statement.raw_query();
        let mut rows = Vec::new();
        while let Some(row) = found.next().map_err(refused)? {
            let cells = (0..columns).map(|column| cell(row, column)).collect::<Result<_, _>>()?;
            rows.push(Row::new(cells));
        }
        Ok(rows)
    }
}

fn cell(row: &rusqlite::Row<'_>, column: usize) -> Result<Cell, StoreError> {
    Ok(match row.get_ref(column).map_err(refused)? {
        ValueRef::Null => Cell::Null,
        ValueRef::Integer(value) => Cell::Int(value),
        ValueRef::Real(value) => Cell::Text(value.to_string()),
        ValueRef::Text(bytes) => Cell::Text(String::from_utf8_lossy(bytes).into_owned()),
        ValueRef::Blob(bytes) => Cell::Blob(bytes.to_vec()),
    })
}

impl Driver for SqliteDriver {
    fn has_schema(&mut self) -> Result<bool, StoreError> {
        let found = self.query_opt("SELECT 1 FROM sqlite_master WHERE name = 'meta'", &[])?;
        Ok(found.is_some())
    }

    fn run_script(&mut self, script: &str) -> Result<(), StoreError> {
        let script = script
            .replace("{serial}", "INTEGER PRIMARY KEY")
            .replace("{blob}", "BLOB")
            .replace("{by_key}", "WITHOUT ROWID");
        self.connection.execute_batch(&script).map_err(refused)
    }

    fn begin(&mut self) -> Result<(), StoreError> {
        self.execute("BEGIN IMMEDIATE", &[]).map(drop)
    }

    fn commit(&mut self) -> Result<(), StoreError> {
        self.execute("COMMIT", &[]).map(drop)
    }

    fn rollback(&mut self) {
        if let Err(error) = self.execute("ROLLBACK", &[]) {
            tracing::debug!(%error, "nothing to roll back");
        }
    }

    fn reconnect(&mut self) -> Result<(), StoreError> {
        Err(StoreError::Lost("a file does not come back by connecting again".to_owned()))
    }
}

/// Moves committed pages from the log into the database without holding up the writer.
pub(crate) fn checkpoint(path: &Path) -> Result<(), StoreError> {
    let connection = Connection::open(path).map_err(refused)?;
    connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(())).map_err(refused)
}

fn refused(error: rusqlite::Error) -> StoreError {
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => StoreError::Full,
        Some(
            ErrorCode::SystemIoFailure
            | ErrorCode::DatabaseCorrupt
            | ErrorCode::NotADatabase
            | ErrorCode::CannotOpen,
        ) => StoreError::Lost(error.to_string()),
        _ => StoreError::Refused(error.to_string()),
    }
}
