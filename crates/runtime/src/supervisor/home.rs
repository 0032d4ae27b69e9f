//! The home of a program that stays: kept from one start to the next, so that what it has fetched need not be
//! fetched again.
//!
//! Invariant: it belongs to the user who runs the program and is open to nobody else; what is found in its place
//! and is not such a folder is never used.

use super::user::as_nobody;
use rustix::fs::{Access, AtFlags, CWD, Gid, Uid, accessat};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

/// Outlives a restart of the machine, unlike the usual place for such folders.
const ELSEWHERE: &str = "/var/tmp";

/// The folder `home` for this user, made when it is not there yet. A user who cannot get to it gets one elsewhere,
/// to which a link at `home` leads.
pub(super) fn keep(home: &Path, user: Option<u32>) -> io::Result<PathBuf> {
    let around = home.parent().unwrap_or(Path::new("/"));
    std::fs::DirBuilder::new().recursive(true).mode(0o711).create(around)?;
    let Some(user) = user else {
        own(home, rustix::process::getuid().as_raw())?;
        return Ok(home.to_owned());
    };
    let is_reachable = as_nobody(|| accessat(CWD, around, Access::EXEC_OK, AtFlags::EACCESS));
    if matches!(is_reachable, Ok(Ok(()))) {
        own(home, user)?;
        return Ok(home.to_owned());
    }
    if let Ok(folder) = std::fs::read_link(home)
        && is_own(&folder, user)
    {
        return Ok(folder);
    }
    let folder = elsewhere(home)?;
    own(&folder, user)?;
    clear(home)?;
    symlink(&folder, home)?;
    Ok(folder)
}

/// Makes the folder this user's alone; one that is not is made anew.
fn own(folder: &Path, user: u32) -> io::Result<()> {
    if is_own(folder, user) {
        return Ok(());
    }
    clear(folder)?;
    std::fs::DirBuilder::new().mode(0o700).create(folder)?;
    rustix::fs::chown(folder, Some(Uid::from_raw(user)), Some(Gid::from_raw(user)))
        .or_else(|error| if is_own(folder, user) { Ok(()) } else { Err(error) })?;
    Ok(())
}

fn is_own(folder: &Path, user: u32) -> bool {
    let found = std::fs::symlink_metadata(folder);
    found.is_ok_and(|found| {
        found.is_dir() && found.uid() == user && found.permissions().mode() & 0o077 == 0
    })
}

/// Of a link this removes the link alone.
fn clear(path: &Path) -> io::Result<()> {
    match std::fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => std::fs::remove_dir_all(path),
        Ok(_) => std::fs::remove_file(path),
        Err(_) => Ok(()),
    }
}

/// A name that nobody can have taken.
fn elsewhere(home: &Path) -> io::Result<PathBuf> {
    let name = home.file_name().unwrap_or_default().to_string_lossy();
    let parent = Path::new(ELSEWHERE);
    let parent = if parent.is_dir() { parent.to_owned() } else { std::env::temp_dir() };
    Ok(parent.join(format!("greenroom-{name}-{:016x}", getrandom::u64()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_home_is_kept_for_its_user_and_nothing_else_in_its_place_is_used() {
        let root = tempfile::tempdir().unwrap();
        let home = root.path().join("tools/npx");
        assert_eq!(keep(&home, None).unwrap(), home);
        std::fs::write(home.join("cache"), "fetched").unwrap();
        keep(&home, None).unwrap();
        assert_eq!(std::fs::read_to_string(home.join("cache")).unwrap(), "fetched");
        // A folder that others can get into, and a link to somewhere else.
        std::fs::set_permissions(&home, PermissionsExt::from_mode(0o755)).unwrap();
        keep(&home, None).unwrap();
        assert_eq!(std::fs::read_dir(&home).unwrap().count(), 0);
        std::fs::remove_dir(&home).unwrap();
        std::fs::create_dir(root.path().join("other")).unwrap();
        symlink(root.path().join("other"), &home).unwrap();
        keep(&home, None).unwrap();
        let found = std::fs::symlink_metadata(&home).unwrap();
        assert_eq!((found.is_dir(), found.mode() & 0o777), (true, 0o700));
        assert!(root.path().join("other").is_dir());
    }
}
