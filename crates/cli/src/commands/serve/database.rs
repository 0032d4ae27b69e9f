//! Opens the database at start.
//!
//! Invariant: an error names the database without user and password.

use super::Migrate;
use crate::failure::Failure;
use greenroom_store::{Location, Options, SchemaVersion, Store, StoreError};

/// Blocks.
pub(super) fn open(options: &Options, migrate: Migrate) -> Result<Store, Failure> {
    let failed = |error: StoreError| {
        let hint = match (&error, &options.location) {
            (StoreError::Unavailable(_), Location::Postgres(_)) => {
                Some("is it running? its address is `store.url` in the configuration")
            }
            _ => None,
        };
        let context = format!("cannot open the {}", options.location.name());
        let failure = Failure::from(anyhow::Error::new(error).context(context));
        hint.into_iter().fold(failure, Failure::hint)
    };
    if migrate == Migrate::No
        && let Some(SchemaVersion { found, known }) = Store::version(options).map_err(failed)?
        && found < known
    {
        let message = format!("the database has schema {found}, this version needs schema {known}");
        return Err(Failure::new(message).hint(
            "create a backup with `greenroom backup create`, then start without `--migrate=no` to upgrade it",
        ));
    }
    Store::open(options).map_err(failed)
}
