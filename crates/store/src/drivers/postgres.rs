//! PostgreSQL: the same statements over one session that also holds the writer lock.
//!
//! Invariant: the advisory lock lives in the writer's own session, so a session that writes is a session
//! that holds it; after a reconnect the epoch shows whether another host wrote in between, and the mark that every
//! commit leaves in `meta` shows whether a commit whose reply was lost took effect.

mod bulk;

use super::Driver;
use crate::StoreError;
use crate::sql::{Cell, Dialect, Row, Tx, Value, refuse_nul};
use postgres::error::{Severity, SqlState};
use postgres::types::{IsNull, ToSql, Type, to_sql_checked};
use postgres::{Client, Config, NoTls, Statement};
use std::collections::HashMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The advisory lock of the one writer of a database.
const LOCK: i64 = 0x0067_7265_656e_726d;
/// How long a new writer waits for the lock: the server may not have noticed yet that the last one ended.
const LOCK_PATIENCE: Duration = Duration::from_secs(3);
const LOCK_PAUSE: Duration = Duration::from_millis(50);

pub(crate) struct PostgresDriver {
    config: Config,
    client: Client,
    statements: HashMap<&'static str, Statement>,
    /// None for a reader and while a writer is being opened.
    held: Option<Held>,
}

/// The writer's epoch and its commits.
struct Held {
    epoch: i64,
    commits: u64,
}

impl Held {
    /// The mark that the last commit leaves in `meta`.
    fn mark(&self) -> String {
        format!("{}.{}", self.epoch, self.commits)
    }
}

impl PostgresDriver {
    pub(crate) fn writer(url: &str) -> Result<Self, StoreError> {
        let mut driver = Self::reader(url)?;
        let patience_ends = Instant::now() + LOCK_PATIENCE;
        while !driver.try_lock()? {
            if Instant::now() >= patience_ends {
                return Err(StoreError::Lost("another host writes to this database".to_owned()));
            }
            std::thread::sleep(LOCK_PAUSE);
        }
        Ok(driver)
    }

    pub(crate) fn reader(url: &str) -> Result<Self, StoreError> {
        let mut config: Config = url
            .parse()
            .map_err(|error| StoreError::Refused(format!("`store.url` is not valid: {error}")))?;
        config.connect_timeout(Duration::from_secs(5));
        config.keepalives_idle(Duration::from_secs(10));
        config.tcp_user_timeout(Duration::from_secs(30));
        config.application_name("greenroom");
        // One plan fits all parameters of a statement, and planning costs more than most of them take.
        let options = config.get_options().unwrap_or_default();
        let options = format!("{options} -c plan_cache_mode=force_generic_plan");
        config.options(options.trim_start());
        let client = config.connect(NoTls).map_err(failed)?;
        Ok(Self { config, client, statements: HashMap::new(), held: None })
    }

    fn try_lock(&mut self) -> Result<bool, StoreError> {
        let row = self.client.query_one("SELECT pg_try_advisory_lock($1)", &[&LOCK]);
        row.and_then(|row| row.try_get(0)).map_err(failed)
    }

    fn statement(&mut self, sql: &'static str) -> Result<Statement, StoreError> {
        if let Some(statement) = self.statements.get(sql) {
            return Ok(statement.clone());
        }
        let statement = self.client.prepare(&sql.replace('?', "$")).map_err(failed)?;
        self.statements.insert(sql, statement.clone());
        Ok(statement)
    }
}

impl Tx for PostgresDriver {
    fn dialect(&self) -> Dialect {
        Dialect::Postgres
    }

    fn execute(&mut self, sql: &'static str, params: &[Value<'_>]) -> Result<u64, StoreError> {
        check(params)?;
        let statement = self.statement(sql)?;
        self.client.execute(&statement, &dynamic(params)).map_err(failed)
    }

    fn query(&mut self, sql: &'static str, params: &[Value<'_>]) -> Result<Vec<Row>, StoreError> {
        check(params)?;
        let statement = self.statement(sql)?;
        let rows = self.client.query(&statement, &dynamic(params)).map_err(failed)?;
        rows.iter().map(row).collect()
    }
}

fn check(params: &[Value<'_>]) -> Result<(), StoreError> {
    params.iter().try_for_each(|value| match value {
        Value::Text(text) => refuse_nul(text),
        _ => Ok(()),
    })
}

fn dynamic<'a>(params: &'a [Value<'a>]) -> Vec<&'a (dyn ToSql + std::marker::Sync)> {
    params.iter().map(|value| value as _).collect()
}

fn row(row: &postgres::Row) -> Result<Row, StoreError> {
    let cells = (0..row.len()).map(|column| cell(row, column)).collect::<Result<_, _>>()?;
    Ok(Row::new(cells))
}

fn cell(row: &postgres::Row, column: usize) -> Result<Cell, StoreError> {
    let kind = row.columns()[column].type_();
    let cell = if *kind == Type::INT8 {
        row.try_get::<_, Option<i64>>(column).map_err(failed)?.map(Cell::Int)
    } else if *kind == Type::INT4 {
        row.try_get::<_, Option<i32>>(column).map_err(failed)?.map(|value| Cell::Int(value.into()))
    } else if *kind == Type::BYTEA {
        row.try_get::<_, Option<Vec<u8>>>(column).map_err(failed)?.map(Cell::Blob)
    } else {
        row.try_get::<_, Option<String>>(column).map_err(failed)?.map(Cell::Text)
    };
    Ok(cell.unwrap_or(Cell::Null))
}

impl ToSql for Value<'_> {
    fn to_sql(
        &self,
        kind: &Type,
        out: &mut bytes::BytesMut,
    ) -> Result<IsNull, Box<dyn std::error::Error + std::marker::Sync + Send>> {
        match self {
            Value::Null => Ok(IsNull::Yes),
            Value::Int(value) if *kind == Type::INT4 => i32::try_from(*value)?.to_sql(kind, out),
            Value::Int(value) => value.to_sql(kind, out),
            Value::Text(value) => value.to_sql(kind, out),
            Value::Blob(value) => value.to_sql(kind, out),
        }
    }

    fn accepts(_kind: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

impl Driver for PostgresDriver {
    fn has_schema(&mut self) -> Result<bool, StoreError> {
        let row = self.client.query_one("SELECT to_regclass('meta') IS NOT NULL", &[]);
        row.and_then(|row| row.try_get(0)).map_err(failed)
    }

    fn run_script(&mut self, script: &str) -> Result<(), StoreError> {
        let script = crate::schema::for_dialect(script, Dialect::Postgres);
        self.client.batch_execute(&script).map_err(failed)
    }

    /// The operator makes backups of a server.
    fn copy_aside(&mut self, _suffix: &str) -> Result<Option<PathBuf>, StoreError> {
        Ok(None)
    }

    fn hold(&mut self, epoch: i64) -> Result<(), StoreError> {
        self.execute(
            "INSERT INTO meta (name, value) VALUES ('commit', '') ON CONFLICT (name) DO NOTHING",
            &[],
        )?;
        self.held = Some(Held { epoch, commits: 0 });
        Ok(())
    }

    fn begin(&mut self) -> Result<(), StoreError> {
        self.client.batch_execute("BEGIN").map_err(failed)
    }

    fn commit(&mut self) -> Result<(), StoreError> {
        let Some(held) = &mut self.held else {
            return self.client.batch_execute("COMMIT").map_err(failed);
        };
        held.commits += 1;
        let mark = held.mark();
        // One round trip for both.
        let script = format!("UPDATE meta SET value = '{mark}' WHERE name = 'commit'; COMMIT");
        self.client.batch_execute(&script).map_err(failed)
    }

    fn has_committed(&mut self) -> Result<bool, StoreError> {
        let mark = self.held.as_ref().map(Held::mark);
        Ok(mark == Some(crate::schema::read_meta(self, "commit")?))
    }

    fn rollback(&mut self) {
        if let Err(error) = self.client.batch_execute("ROLLBACK") {
            tracing::debug!(%error, "nothing to roll back");
        }
    }

    fn reconnect(&mut self) -> Result<(), StoreError> {
        self.client = self.config.connect(NoTls).map_err(failed)?;
        // Prepared statements belong to the old session.
        self.statements.clear();
        let Some(ours) = self.held.as_ref().map(|held| held.epoch) else { return Ok(()) };
        // First the lock, then the epoch, which cannot change while the lock is held. Failing to get the lock
        // is final only when the epoch shows another host; else the server has not noticed yet that our old
        // session has ended.
        let locked = self.try_lock()?;
        if crate::schema::read_meta(self, "epoch")? != ours.to_string() {
            return Err(StoreError::Lost("another host has taken over this database".to_owned()));
        }
        if !locked {
            return Err(StoreError::Unavailable("the old session still holds the lock".to_owned()));
        }
        Ok(())
    }
}

/// An error that ended the session, or kept one from starting, is `Unavailable`: the command may be tried again on
/// another. Everything else is an error of the command.
fn failed(error: postgres::Error) -> StoreError {
    let cause = std::error::Error::source(&error);
    let Some(detail) = error.as_db_error() else {
        let message = cause.map_or_else(|| error.to_string(), |cause| format!("{error}: {cause}"));
        let broken = error.is_closed() || cause.is_some_and(|cause| cause.is::<std::io::Error>());
        return if broken {
            StoreError::Unavailable(message)
        } else {
            StoreError::Refused(message)
        };
    };
    let message = detail.to_string();
    let ended = matches!(detail.parsed_severity(), Some(Severity::Fatal | Severity::Panic))
        || detail.code().code().starts_with("08");
    match *detail.code() {
        SqlState::DISK_FULL => StoreError::Full,
        // The server is stopping, starting, out of connections, or has become a standby.
        SqlState::ADMIN_SHUTDOWN
        | SqlState::CRASH_SHUTDOWN
        | SqlState::CANNOT_CONNECT_NOW
        | SqlState::TOO_MANY_CONNECTIONS
        | SqlState::READ_ONLY_SQL_TRANSACTION => StoreError::Unavailable(message),
        _ if ended => StoreError::Unavailable(message),
        SqlState::UNDEFINED_TABLE => StoreError::Gone(message),
        _ => StoreError::Refused(message),
    }
}
