//! The schema: one script for a new database, numbered migrations for an older one.
//!
//! Invariants: `schema.sql` is the sum of `migrations/`; a migration and the version it leads to are one transaction,
//! so a crash leaves the database at the version before or after it; a migration that was released never changes; a
//! database of a newer version is refused before anything is touched.

mod script;
#[cfg(test)]
mod tests;

pub(crate) use script::for_dialect;

use crate::drivers::Driver;
use crate::search::index::UPTO;
use crate::{StoreError, copy, fault, params};
use std::time::Instant;

const SCHEMA: &str = include_str!("schema.sql");

/// The script for version n has index n - 1. The first one creates the tables.
const MIGRATIONS: &[&str] = &[
    include_str!("migrations/001-first.sql"),
    include_str!("migrations/002-delivery-retries.sql"),
    include_str!("migrations/003-conversation-senders.sql"),
    include_str!("migrations/004-run-error-codes.sql"),
    include_str!("migrations/005-record-owners.sql"),
    include_str!("migrations/006-sessions.sql"),
];

/// Builds before the first release identified their schema by a hash of the script, not by a version.
const FINGERPRINT: &str = "schema_fingerprint";
/// The hash that the last of them wrote.
const FIRST_FINGERPRINT: &str = "fc3e248609b48a3f";

/// The version of a database's tables, and the one this program needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SchemaVersion {
    pub found: i64,
    pub known: i64,
}

impl SchemaVersion {
    pub fn needs_migration(self) -> bool {
        self.found < self.known
    }
}

pub(crate) fn newest() -> i64 {
    i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX)
}

/// The version of a database; none without our tables. Refuses what this program cannot read.
pub(crate) fn version(driver: &mut dyn Driver) -> Result<Option<SchemaVersion>, StoreError> {
    if !driver.has_schema()? {
        return Ok(None);
    }
    copy::refuse_moved(driver)?;
    let text = read_meta(driver, "schema")?;
    let version = text.parse().ok().filter(|version| *version > 0);
    let found =
        version.ok_or_else(|| StoreError::Refused(format!("`{text}` is not a schema version")))?;
    let known = newest();
    refuse_newer(found)?;
    if find_meta(driver, FINGERPRINT)?.is_some_and(|print| print != FIRST_FINGERPRINT) {
        return Err(StoreError::UnreleasedSchema);
    }
    Ok(Some(SchemaVersion { found, known }))
}

/// Creates the tables, or upgrades them to the newest version.
pub(crate) fn prepare(driver: &mut dyn Driver) -> Result<(), StoreError> {
    match version(driver)? {
        None => create_alone(driver, newest(), &[SCHEMA]),
        Some(version) if version.needs_migration() => upgrade(driver, version),
        Some(_) => Ok(()),
    }
}

/// Creates an empty database of an older version.
#[cfg(test)]
pub(crate) fn create_at(driver: &mut dyn Driver, version: i64) -> Result<(), StoreError> {
    driver.begin()?;
    create_tables(driver, version)?;
    driver.commit()
}

/// Creates the tables of a version in an open transaction.
pub(crate) fn create_tables(driver: &mut dyn Driver, version: i64) -> Result<(), StoreError> {
    refuse_newer(version)?;
    if version == newest() {
        return create(driver, version, &[SCHEMA]);
    }
    let steps = usize::try_from(version).unwrap_or_default();
    create(driver, version, &MIGRATIONS[..steps])
}

pub(crate) fn refuse_newer(found: i64) -> Result<(), StoreError> {
    let known = newest();
    match found > known {
        true => Err(StoreError::NewerSchema { found, known }),
        false => Ok(()),
    }
}

/// Every table of facts that some version has or had; the search index is none of them.
pub(crate) fn tables() -> impl Iterator<Item = &'static str> {
    let lines = MIGRATIONS.iter().flat_map(|script| script.lines());
    let names = lines.filter_map(|line| line.strip_prefix("CREATE TABLE "));
    let names = names.filter_map(|rest| rest.split([' ', '(']).next());
    let mut tables: Vec<&str> = Vec::new();
    for name in names.filter(|name| *name != "search") {
        // A migration may create a table again under its name.
        if !tables.contains(&name) {
            tables.push(name);
        }
    }
    tables.into_iter()
}

fn create_alone(driver: &mut dyn Driver, version: i64, scripts: &[&str]) -> Result<(), StoreError> {
    driver.begin()?;
    create(driver, version, scripts)?;
    driver.commit()
}

fn create(driver: &mut dyn Driver, version: i64, scripts: &[&str]) -> Result<(), StoreError> {
    let mut key = [0_u8; 32];
    getrandom::fill(&mut key)
        .map_err(|error| StoreError::Unavailable(format!("no randomness: {error}")))?;
    let key: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
    for script in scripts {
        driver.run_script(script)?;
    }
    let version = version.to_string();
    for (name, value) in [("schema", &*version), ("epoch", "0"), ("cursor_key", &key), (UPTO, "0")]
    {
        driver.execute("INSERT INTO meta (name, value) VALUES (?1, ?2)", params![name, value])?;
    }
    Ok(())
}

/// One transaction per step, so that a large database does not keep all changes in one.
fn upgrade(driver: &mut dyn Driver, version: SchemaVersion) -> Result<(), StoreError> {
    let SchemaVersion { found, known } = version;
    let began = Instant::now();
    let copy = driver.copy_aside(&format!("schema-{found}"))?;
    let kept = copy.as_deref().map(|path| path.display().to_string());
    tracing::info!(
        from = found,
        to = known,
        copy = kept,
        "upgrading the database; do not stop the host now"
    );
    for next in found + 1..=known {
        let script = usize::try_from(next - 1).ok().and_then(|index| MIGRATIONS.get(index));
        let script = script.ok_or(StoreError::NewerSchema { found, known })?;
        step(driver, next, script).inspect_err(|_| driver.rollback())?;
    }
    tracing::info!(version = known, took_ms = began.elapsed().as_millis(), "database upgraded");
    Ok(())
}

fn step(driver: &mut dyn Driver, version: i64, script: &str) -> Result<(), StoreError> {
    fault::point("before_migration");
    driver.begin()?;
    driver.run_script(script)?;
    fault::point("in_migration");
    let version = version.to_string();
    driver
        .execute("UPDATE meta SET value = ?1 WHERE name = 'schema'", params![version.as_str()])?;
    driver.execute("DELETE FROM meta WHERE name = ?1", params![FINGERPRINT])?;
    fault::point("before_migration_commit");
    driver.commit()?;
    fault::point("after_migration");
    Ok(())
}

/// Every start of a host has its own epoch, so that writes of an earlier one are recognised.
pub(crate) fn bump_epoch(driver: &mut dyn Driver) -> Result<i64, StoreError> {
    let row = driver.query_opt(
        "UPDATE meta SET value = CAST(CAST(value AS BIGINT) + 1 AS TEXT) WHERE name = 'epoch'
         RETURNING value",
        &[],
    )?;
    let text = row.map(|mut row| row.text()).transpose()?.unwrap_or_default();
    text.parse().map_err(|_| StoreError::Refused(format!("`{text}` is not an epoch")))
}

pub(crate) fn read_meta(driver: &mut dyn Driver, name: &str) -> Result<String, StoreError> {
    find_meta(driver, name)?.ok_or_else(|| {
        StoreError::Refused(format!("the database has no `{name}` in its meta table"))
    })
}

fn find_meta(driver: &mut dyn Driver, name: &str) -> Result<Option<String>, StoreError> {
    let row = driver.query_opt("SELECT value FROM meta WHERE name = ?1", params![name])?;
    row.map(|mut row| row.text()).transpose()
}
