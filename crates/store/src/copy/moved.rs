//! The mark of a database whose facts live elsewhere: no host opens it, so that there are never two living copies.

use super::{CopyError, Snapshot, refuse_absent};
use crate::Location;
use crate::drivers::{Driver, PostgresDriver, SqliteDriver};
use crate::store::Sync;
use crate::{StoreError, params};

const MOVED_TO: &str = "moved_to";

/// Refuses a database that bears the mark; one without tables does not.
pub(crate) fn refuse_moved(driver: &mut dyn Driver) -> Result<(), StoreError> {
    if !driver.has_schema()? {
        return Ok(());
    }
    let row = driver.query_opt("SELECT value FROM meta WHERE name = ?1", params![MOVED_TO])?;
    match row {
        Some(mut row) => Err(StoreError::Moved { to: row.text()? }),
        None => Ok(()),
    }
}

/// Marks the database that a snapshot was read from, with the right to write that it holds.
pub fn mark_moved(source: Snapshot, to: &Location) -> Result<(), CopyError> {
    let mut driver = source.into_driver();
    driver.begin()?;
    driver.execute(
        "INSERT INTO meta (name, value) VALUES (?1, ?2)
         ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        params![MOVED_TO, to.to_string().as_str()],
    )?;
    Ok(driver.commit()?)
}

/// Takes the mark away; where to the facts had been moved, if they had.
pub fn clear_moved(location: &Location) -> Result<Option<String>, CopyError> {
    refuse_absent(location)?;
    let mut driver: Box<dyn Driver> = match location {
        Location::Sqlite(path) => Box::new(SqliteDriver::writer(path, Sync::Full)?),
        Location::Postgres(url) => Box::new(PostgresDriver::writer(url)?),
    };
    if !driver.has_schema()? {
        return Err(CopyError::NoDatabase(location.to_string()));
    }
    let row =
        driver.query_opt("DELETE FROM meta WHERE name = ?1 RETURNING value", params![MOVED_TO])?;
    Ok(row.map(|mut row| row.text()).transpose()?)
}
