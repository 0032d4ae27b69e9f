//! The schema: one squashed script for a new database, migrations for an older one.
//!
//! Invariant: a database written by a newer version, or by another build of this one, is refused before anything
//! is touched.

use crate::StoreError;
use crate::drivers::Driver;
use crate::params;
use crate::search::index::UPTO;

const SCHEMA: &str = include_str!("schema.sql");

/// Scripts that bring version n to n + 1; the first belongs to version 1.
const MIGRATIONS: &[&str] = &[];

/// Which tables a version has: until it is released they may change in place.
const FINGERPRINT: &str = "schema_fingerprint";

/// FNV-1a of the script; it tells builds apart and keeps nobody out.
fn fingerprint() -> String {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    format!("{:016x}", SCHEMA.bytes().fold(0xcbf2_9ce4_8422_2325, step))
}

fn newest() -> i64 {
    1 + i64::try_from(MIGRATIONS.len()).unwrap_or(0)
}

/// Creates or upgrades the schema, all in one transaction.
pub(crate) fn prepare(driver: &mut dyn Driver) -> Result<(), StoreError> {
    if !driver.has_schema()? {
        return create(driver);
    }
    let found = read_version(driver)?;
    let known = newest();
    if found > known {
        return Err(StoreError::NewerSchema { found, known });
    }
    if found == known {
        let print = read_meta(driver, FINGERPRINT).ok();
        return if print == Some(fingerprint()) { Ok(()) } else { Err(StoreError::OtherSchema) };
    }
    driver.begin()?;
    for script in MIGRATIONS.iter().skip(usize::try_from(found - 1).unwrap_or(0)) {
        driver.run_script(script)?;
    }
    for (name, value) in [("schema", known.to_string()), (FINGERPRINT, fingerprint())] {
        driver
            .execute("UPDATE meta SET value = ?2 WHERE name = ?1", params![name, value.as_str()])?;
    }
    driver.commit()
}

fn create(driver: &mut dyn Driver) -> Result<(), StoreError> {
    let mut key = [0_u8; 32];
    getrandom::fill(&mut key)
        .map_err(|error| StoreError::Unavailable(format!("no randomness: {error}")))?;
    let key: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
    driver.begin()?;
    driver.run_script(SCHEMA)?;
    let (version, print) = (newest().to_string(), fingerprint());
    let meta = [
        ("schema", &*version),
        (FINGERPRINT, &print),
        ("epoch", "0"),
        ("cursor_key", &key),
        (UPTO, "0"),
    ];
    for (name, value) in meta {
        driver.execute("INSERT INTO meta (name, value) VALUES (?1, ?2)", params![name, value])?;
    }
    driver.commit()
}

fn read_version(driver: &mut dyn Driver) -> Result<i64, StoreError> {
    let row = driver.query_opt("SELECT value FROM meta WHERE name = 'schema'", &[])?;
    let text = row.map(|mut row| row.text()).transpose()?.unwrap_or_default();
    text.parse().map_err(|_| StoreError::Refused(format!("`{text}` is not a schema version")))
}

/// Every start of a host counts: what an earlier one still tries to write is told apart by it.
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
    let row = driver.query_opt("SELECT value FROM meta WHERE name = ?1", params![name])?;
    row.map(|mut row| row.text()).transpose()?.ok_or_else(|| {
        StoreError::Refused(format!("the database has no `{name}` in its meta table"))
    })
}
