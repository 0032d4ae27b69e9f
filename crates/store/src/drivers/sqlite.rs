//! SQLite: WAL, one writer, readers beside it, checkpoints off the writer's path.
//!
//! Invariant: an I/O error or a damaged file is `Lost`, since it is not known what was kept.

mod bulk;
mod copy;

use super::Driver;
use crate::StoreError;
use crate::sql::{Cell, Dialect, Row, Tx, Value, refuse_nul};
use crate::store::Sync;
use rusqlite::config::DbConfig;
use rusqlite::types::ValueRef;
use rusqlite::{CachedStatement, Connection, ErrorCode, OpenFlags, Statement};
use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Size of the log from which on it is moved into the database.
const LOG_BYTES: i64 = 4 * 1024 * 1024;
/// The log is truncated to this size, since writing into an existing file is faster. Above it the writer is paused
/// for a moment so that the log can restart: under constant load it would grow without bound.
const LOG_BYTES_MAX: i64 = 64 * 1024 * 1024;
/// How long the writer is paused for that at most.
const RESTART_PATIENCE: Duration = Duration::from_millis(20);
const PAGE_BYTES: i64 = 4096;

/// How long to wait for a lock that another program holds.
const PATIENCE: Duration = Duration::from_secs(5);

pub(crate) struct SqliteDriver {
    connection: Connection,
    /// Held by the writer; released when the process ends.
    _lock: Option<File>,
}

impl SqliteDriver {
    pub(crate) fn writer(path: &Path, sync: Sync) -> Result<Self, StoreError> {
        let lock = take_lock(path)?;
        let connection = Connection::open(path).map_err(refused)?;
        let level = match sync {
            Sync::Full => "FULL",
            Sync::Normal => "NORMAL",
        };
        connection
            .execute_batch(&format!(
                "PRAGMA journal_mode = WAL; PRAGMA synchronous = {level};
                 PRAGMA wal_autocheckpoint = 0; PRAGMA journal_size_limit = {LOG_BYTES_MAX};
                 PRAGMA temp_store = MEMORY; PRAGMA cache_size = -16000;"
            ))
            .map_err(refused)?;
        Self::with(connection, Some(lock))
    }

    pub(crate) fn reader(path: &Path) -> Result<Self, StoreError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags).map_err(refused)?;
        connection.execute_batch("PRAGMA cache_size = -8000;").map_err(refused)?;
        Self::with(connection, None)
    }

    fn with(connection: Connection, lock: Option<File>) -> Result<Self, StoreError> {
        connection.set_prepared_statement_cache_capacity(64);
        connection.busy_timeout(PATIENCE).map_err(refused)?;
        // Without it SQLite recompiles a statement that may use a partial index for every bound value.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).map_err(refused)?;
        Ok(Self { connection, _lock: lock })
    }

    fn prepare(
        &self,
        sql: &'static str,
        params: &[Value<'_>],
    ) -> Result<CachedStatement<'_>, StoreError> {
        let mut statement = self.connection.prepare_cached(sql).map_err(refused)?;
        for (index, value) in params.iter().enumerate() {
            bind(&mut statement, index, *value)?;
        }
        Ok(statement)
    }
}

impl Tx for SqliteDriver {
    fn dialect(&self) -> Dialect {
        Dialect::Sqlite
    }

    fn execute(&mut self, sql: &'static str, params: &[Value<'_>]) -> Result<u64, StoreError> {
        let changed = self.prepare(sql, params)?.raw_execute().map_err(refused)?;
        Ok(changed as u64)
    }

    /// SQLite knows the row id; for RETURNING it would build a temporary table.
    fn insert(&mut self, sql: &'static str, params: &[Value<'_>]) -> Result<i64, StoreError> {
        let (insert, _) = sql.rsplit_once(" RETURNING ").unwrap_or((sql, ""));
        match self.execute(insert, params)? {
            1 => Ok(self.connection.last_insert_rowid()),
            _ => Err(StoreError::Refused("a row got no number".to_owned())),
        }
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

fn bind(statement: &mut Statement<'_>, index: usize, value: Value<'_>) -> Result<(), StoreError> {
    let bound = match value {
        Value::Null => statement.raw_bind_parameter(index + 1, rusqlite::types::Null),
        Value::Int(value) => statement.raw_bind_parameter(index + 1, value),
        Value::Text(value) => {
            refuse_nul(value)?;
            statement.raw_bind_parameter(index + 1, value)
        }
        Value::Blob(value) => statement.raw_bind_parameter(index + 1, value),
    };
    bound.map_err(refused)
}

/// One writer per database file.
pub(crate) fn take_lock(path: &Path) -> Result<File, StoreError> {
    let name = format!("{}.lock", path.display());
    let file = OpenOptions::new().create(true).truncate(false).write(true).open(&name);
    let file = file.map_err(|error| StoreError::Lost(format!("cannot open `{name}`: {error}")))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(_) => Err(StoreError::Lost("another host writes to this database".to_owned())),
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
        let script = crate::schema::for_dialect(script, Dialect::Sqlite);
        self.connection.execute_batch(&script).map_err(refused)
    }

    fn copy_aside(&mut self, suffix: &str) -> Result<Option<PathBuf>, StoreError> {
        copy::copy_aside(&self.connection, suffix).map(Some)
    }

    fn hold(&mut self, _epoch: i64) -> Result<(), StoreError> {
        Ok(())
    }

    fn begin(&mut self) -> Result<(), StoreError> {
        self.execute("BEGIN IMMEDIATE", &[]).map(drop)
    }

    fn commit(&mut self) -> Result<(), StoreError> {
        self.execute("COMMIT", &[]).map(drop)
    }

    fn has_committed(&mut self) -> Result<bool, StoreError> {
        Ok(false)
    }

    fn rollback(&mut self) {
        if let Err(error) = self.execute("ROLLBACK", &[]) {
            tracing::debug!(%error, "nothing to roll back");
        }
    }

    fn reconnect(&mut self) -> Result<(), StoreError> {
        Err(StoreError::Lost("an SQLite connection cannot be opened again".to_owned()))
    }
}

/// Moves committed pages from a log that has grown into the database while the writer goes on; the writer waits
/// for the last pages only if the log is far too large.
pub(crate) fn checkpoint(path: &Path) -> Result<(), StoreError> {
    let connection = Connection::open(path).map_err(refused)?;
    let sizes = |row: &rusqlite::Row<'_>| Ok((row.get::<_, i64>(1)?, row.get::<_, i64>(2)?));
    let (pages, moved) =
        connection.query_row("PRAGMA wal_checkpoint(NOOP)", [], sizes).map_err(refused)?;
    if (pages - moved) * PAGE_BYTES <= LOG_BYTES {
        return Ok(());
    }
    let run = |pragma| connection.query_row(pragma, [], |_| Ok(())).map_err(refused);
    run("PRAGMA wal_checkpoint(PASSIVE)")?;
    if pages * PAGE_BYTES > LOG_BYTES_MAX {
        // Writers wait meanwhile, so a long reader is not waited for: the log grows then.
        connection.busy_timeout(RESTART_PATIENCE).map_err(refused)?;
        run("PRAGMA wal_checkpoint(RESTART)")?;
    }
    Ok(())
}

/// Moves the whole log into the database and empties it. What a longer read or write holds back is left for the next
/// time.
pub(crate) fn checkpoint_all(path: &Path) -> Result<(), StoreError> {
    let connection = Connection::open(path).map_err(refused)?;
    let run = |pragma| connection.query_row(pragma, [], |_| Ok(())).map_err(refused);
    // Most of the work is done without blocking others.
    run("PRAGMA wal_checkpoint(PASSIVE)")?;
    connection.busy_timeout(RESTART_PATIENCE).map_err(refused)?;
    run("PRAGMA wal_checkpoint(TRUNCATE)")
}

fn refused(error: rusqlite::Error) -> StoreError {
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => StoreError::Full,
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => StoreError::Busy,
        Some(
            ErrorCode::SystemIoFailure
            | ErrorCode::DatabaseCorrupt
            | ErrorCode::NotADatabase
            | ErrorCode::CannotOpen,
        ) => StoreError::Lost(error.to_string()),
        _ => StoreError::Refused(error.to_string()),
    }
}
