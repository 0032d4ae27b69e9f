//! Opens the database and the bytes of artifacts at start.
//!
//! Invariant: an error names the database without user and password.

use super::Migrate;
use crate::failure::{Exit, Failure};
use greenroom_host::artifacts::owner_of_bytes;
use greenroom_objects::{Backend, Objects, ObjectsError};
use greenroom_store::{Location, OnLoss, Options, SchemaVersion, Store, StoreError};

/// What an operator can do about damage.
const DAMAGED: &str = "keep a copy of the data folder, then restore a backup into a new one with `greenroom backup \
                       restore`; `greenroom serve --accept-loss` starts with what is left and records that as an \
                       event (to copy a data folder, use `greenroom backup create` or stop the host before)";

/// Blocks.
pub(super) fn open(options: &Options, migrate: Migrate, on_loss: OnLoss) -> Result<Store, Failure> {
    let failed = |error: StoreError| {
        let hint = match (&error, &options.location) {
            (StoreError::Unavailable(_), Location::Postgres(_)) => {
                Some("is it running? its address is `store.url` in the configuration")
            }
            (StoreError::Unsound(_), _) => Some(DAMAGED),
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
        // As for a configuration that does not fit: a supervisor must not try again.
        return Err(Failure::new(message).exit(Exit::Usage).hint(
            "create a backup with `greenroom backup create`, then start without `--migrate=no` to upgrade it",
        ));
    }
    let open = match on_loss {
        OnLoss::Refuse => Store::open,
        OnLoss::Accept => Store::open_accepting_loss,
    };
    open(options).map_err(failed)
}

/// Opens the bytes of artifacts. After the loss of a whole database its folder belongs to none: it is kept aside.
pub(super) async fn open_objects(
    place: &Backend,
    store: &Store,
    on_loss: OnLoss,
) -> Result<Objects, Failure> {
    let owner = owner_of_bytes(store.cursor_key());
    let mut opened = Objects::open(place, &owner).await;
    if let (Err(ObjectsError::Foreign { .. }), Backend::Folder(path), OnLoss::Accept) =
        (&opened, place, on_loss)
    {
        let aside = path.with_extension(format!("lost-{}", store.epoch()));
        std::fs::rename(path, &aside)?;
        tracing::warn!(folder = %aside.display(), "the artifacts of the lost database were moved");
        opened = Objects::open(place, &owner).await;
    }
    opened.map_err(|error| {
        let context = format!("cannot use `{place}` for artifacts");
        Failure::from(anyhow::Error::new(error).context(context))
    })
}
