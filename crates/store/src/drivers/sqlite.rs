//! SQLite: WAL, one writer, readers beside it, checkpoints off the writer's path.
//!
//! Invariant: an I/O error of a write is `Lost`, since it is not known what was kept; a commit into files that are
//! gone is not reported as one.

mod bulk;
mod copy;
mod guard;
mod identity;
mod judge;
mod keeper;
mod log;
mod mark;
mod scan;
mod sums;

pub(crate) use guard::{Guarded, inspect, open as open_guarded};
pub(crate) use keeper::Keeper;

use super::Driver;
use crate::StoreError;
use crate::sql::{Cell, Dialect, Row, Tx, Value, refuse_nul};
use crate::store::Sync;
use keeper::LOG_BYTES_MAX;
use mark::Marker;
use rusqlite::config::DbConfig;
use rusqlite::types::ValueRef;
use rusqlite::{CachedStatement, Connection, ErrorCode, OpenFlags, Statement};
use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// How long to wait for a lock that another program holds.
const PATIENCE: Duration = Duration::from_secs(5);

pub(crate) struct SqliteDriver {
    connection: Connection,
    /// Kept open as long as the connection: closing it would release SQLite's locks of this process.
    file: Option<Arc<File>>,
    /// Held by the writer; released when the process ends.
    _lock: Option<Arc<File>>,
    /// Of a host's writer.
    marker: Option<Arc<Marker>>,
}

impl SqliteDriver {
    pub(crate) fn writer(path: &Path, sync: Sync) -> Result<Self, StoreError> {
        Self::connect(path, sync, Arc::new(take_lock(path)?))
    }

    fn connect(path: &Path, sync: Sync, lock: Arc<File>) -> Result<Self, StoreError> {
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

    /// A reader of a host, which reads the file in other ways too.
    pub(crate) fn reader_beside(path: &Path, file: Arc<File>) -> Result<Self, StoreError> {
        Ok(Self { file: Some(file), ..Self::reader(path)? })
    }

    /// Counts every commit of this connection in the mark.
    fn mark_commits(&mut self, marker: Arc<Marker>) -> Result<(), StoreError> {
        let counting = Arc::clone(&marker);
        let count = move |_: &mut rusqlite::hooks::Wal, frames: std::ffi::c_int| {
            if let Err(error) = counting.count_commit(u64::try_from(frames).unwrap_or_default()) {
                tracing::warn!(%error, "cannot write the commit mark");
            }
            Ok(())
        };
        self.connection.wal_hook(Some(count)).map_err(refused)?;
        self.marker = Some(marker);
        Ok(())
    }

    fn with(connection: Connection, lock: Option<Arc<File>>) -> Result<Self, StoreError> {
        connection.set_prepared_statement_cache_capacity(64);
        connection.busy_timeout(PATIENCE).map_err(refused)?;
        // Without it SQLite recompiles a statement that may use a partial index for every bound value.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).map_err(refused)?;
        // Pages are moved by checkpoints of the host only, which keep their checksums.
        connection
            .set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)
            .map_err(refused)?;
        Ok(Self { connection, file: None, _lock: lock, marker: None })
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
        if self.marker.as_ref().is_some_and(|marker| !marker.log_is_whole()) {
            return Err(gone());
        }
        self.execute("BEGIN IMMEDIATE", &[]).map(drop)
    }

    fn commit(&mut self) -> Result<(), StoreError> {
        self.execute("COMMIT", &[])?;
        match &self.marker {
            Some(marker)
                if !marker.files_are_whole(self.connection.path().unwrap_or_default().as_ref()) =>
            {
                Err(gone())
            }
            _ => Ok(()),
        }
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

/// A connection for checkpoints and checks; never creates a file.
fn open_existing(path: &Path) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(refused)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).map_err(refused)?;
    Ok(connection)
}

fn gone() -> StoreError {
    StoreError::Gone("its files were removed, replaced, cut or moved".to_owned())
}

fn refused(error: rusqlite::Error) -> StoreError {
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => StoreError::Full,
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => StoreError::Busy,
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            StoreError::Damaged(error.to_string())
        }
        Some(ErrorCode::SystemIoFailure) if is_read(&error) => {
            StoreError::Damaged(error.to_string())
        }
        Some(ErrorCode::SystemIoFailure | ErrorCode::CannotOpen) => {
            StoreError::Lost(error.to_string())
        }
        _ => StoreError::Refused(error.to_string()),
    }
}

/// Whether nothing but a read failed.
fn is_read(error: &rusqlite::Error) -> bool {
    let code = error.sqlite_error().map(|error| error.extended_code);
    use rusqlite::ffi::{SQLITE_IOERR_READ, SQLITE_IOERR_SHORT_READ};
    matches!(code, Some(SQLITE_IOERR_READ | SQLITE_IOERR_SHORT_READ))
}
