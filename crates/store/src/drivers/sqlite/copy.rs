//! A copy of the database file through SQLite's backup API, so that it includes the log.
//!
//! Invariant: a copy with its final name is complete and synced.

use super::refused;
use crate::{StoreError, fault};
use rusqlite::Connection;
use rusqlite::backup::Backup;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Pages per step: all at once, since there is no other writer.
const ALL_PAGES: std::ffi::c_int = std::ffi::c_int::MAX;

/// Copies the database to its path with `.SUFFIX` appended, replacing an older copy.
pub(super) fn copy_aside(source: &Connection, suffix: &str) -> Result<PathBuf, StoreError> {
    let path = source.path().unwrap_or_default();
    let (copy, part) = (format!("{path}.{suffix}"), format!("{path}.{suffix}.part"));
    tracing::info!(copy, bytes = size(source), "copying the database before the upgrade");
    let copied = write(source, Path::new(&part)).and_then(|()| {
        fault::point("in_copy");
        std::fs::rename(&part, &copy).and_then(|()| sync_folder(&copy)).map_err(failed)
    });
    copied.map_err(|error| {
        let _ = std::fs::remove_file(&part);
        StoreError::Refused(format!("cannot copy the database to `{copy}`: {error}"))
    })?;
    Ok(copy.into())
}

fn write(source: &Connection, part: &Path) -> Result<(), StoreError> {
    match std::fs::remove_file(part) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(failed(error)),
        _ => {}
    }
    let mut target = Connection::open(part).map_err(refused)?;
    let backup = Backup::new(source, &mut target).map_err(refused)?;
    backup.run_to_completion(ALL_PAGES, Duration::ZERO, None).map_err(refused)?;
    drop(backup);
    // The copy is one file: no log of its own beside it.
    target.pragma_update(None, "journal_mode", "DELETE").map_err(refused)?;
    target.close().map_err(|(_, error)| refused(error))?;
    File::open(part).and_then(|file| file.sync_all()).map_err(failed)
}

fn sync_folder(path: &str) -> std::io::Result<()> {
    let folder = Path::new(path).parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

/// Size of the database including its log.
fn size(source: &Connection) -> i64 {
    let pragma = |name| source.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    pragma("page_count").and_then(|pages| Ok(pages * pragma("page_size")?)).unwrap_or_default()
}

fn failed(error: std::io::Error) -> StoreError {
    StoreError::Unavailable(error.to_string())
}
