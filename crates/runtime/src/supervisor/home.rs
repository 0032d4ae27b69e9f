//! The home of a program that stays: kept from one start to the next, so that downloads are not repeated.
//!
//! Invariant: it belongs to the user who runs the program and is closed to all others; anything else at its
//! path is never used.

use super::remove;
use rustix::fs::{Gid, Uid};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::Path;

/// Makes `home` a folder of this user, unless it is one already.
pub(super) fn keep(home: &Path, user: u32) -> io::Result<()> {
    if is_own(home, user) {
        return Ok(());
    }
    if let Some(around) = home.parent() {
        std::fs::create_dir_all(around)?;
    }
    clear(home)?;
    std::fs::DirBuilder::new().mode(0o700).create(home)?;
    if !is_own(home, user) {
        rustix::fs::chown(home, Some(Uid::from_raw(user)), Some(Gid::from_raw(user)))?;
    }
    Ok(())
}

fn is_own(folder: &Path, user: u32) -> bool {
    let found = std::fs::symlink_metadata(folder);
    found.is_ok_and(|found| {
        found.is_dir() && found.uid() == user && found.permissions().mode() & 0o077 == 0
    })
}

/// Of a link this removes only the link.
fn clear(path: &Path) -> io::Result<()> {
    remove::remove_all(path).map_err(io::Error::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_home_is_kept_for_its_user_and_nothing_else_in_its_place_is_used() {
        let root = tempfile::tempdir().unwrap();
        let home = root.path().join("tools/npx");
        let user = rustix::process::getuid().as_raw();
        keep(&home, user).unwrap();
        std::fs::write(home.join("cache"), "fetched").unwrap();
        keep(&home, user).unwrap();
        assert_eq!(std::fs::read_to_string(home.join("cache")).unwrap(), "fetched");
        // A folder that others can enter, and a link to another folder.
        std::fs::set_permissions(&home, PermissionsExt::from_mode(0o755)).unwrap();
        keep(&home, user).unwrap();
        assert_eq!(std::fs::read_dir(&home).unwrap().count(), 0);
        std::fs::remove_dir(&home).unwrap();
        std::fs::create_dir(root.path().join("other")).unwrap();
        std::os::unix::fs::symlink(root.path().join("other"), &home).unwrap();
        keep(&home, user).unwrap();
        let found = std::fs::symlink_metadata(&home).unwrap();
        assert_eq!((found.is_dir(), found.mode() & 0o777), (true, 0o700));
        assert!(root.path().join("other").is_dir());
    }
}
