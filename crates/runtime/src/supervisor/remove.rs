//! Removes a folder with everything in it, however deep it is.
//!
//! Invariant: never follows a link and never goes up by `..`, so a folder that is moved meanwhile leads nowhere
//! else. Holds at most `OPEN_MAX` descriptors: what is deeper is first moved up to the top.

use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Mode, OFlags, RenameFlags, openat, renameat_with, unlinkat,
};
use rustix::io::{self, Errno};
use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;

const OPEN_MAX: usize = 64;

/// Removes a folder, a file or a link. Missing is fine.
pub fn remove_all(path: &Path) -> io::Result<()> {
    match std::fs::symlink_metadata(path) {
        Err(_) => return Ok(()),
        Ok(found) if !found.is_dir() => return unlinkat(CWD, path, AtFlags::empty()),
        Ok(_) => {}
    }
    let top = open_folder(CWD, path)?;
    let mut moved = 0_u64;
    // Every round removes the upper levels and leaves what it moved up.
    loop {
        let before = moved;
        clear(&top, &mut moved)?;
        if moved == before {
            break;
        }
    }
    unlinkat(CWD, path, AtFlags::REMOVEDIR)
}

/// Empties a folder as far as it can, except for what it moves there from `OPEN_MAX` levels below.
fn clear(top: &OwnedFd, moved: &mut u64) -> io::Result<()> {
    let mut open: Vec<(Dir, CString)> = vec![(Dir::read_from(top)?, c"".into())];
    loop {
        let depth = open.len();
        let Some((dir, _)) = open.last_mut() else { return Ok(()) };
        let Some(Ok(entry)) = dir.next() else {
            let name = open.pop().map(|(_, name)| name).unwrap_or_default();
            if let Some((parent, _)) = open.last() {
                // Not empty if something could not be removed; the error of the top folder says so.
                let _ = unlinkat(parent.fd()?, &name, AtFlags::REMOVEDIR);
            }
            continue;
        };
        let name = entry.file_name().to_owned();
        if name.as_c_str() == c"." || name.as_c_str() == c".." {
            continue;
        }
        let folder = dir.fd()?;
        // The type may be unknown.
        if entry.file_type() != FileType::Directory
            && unlinkat(folder, &name, AtFlags::empty()).is_ok()
        {
            continue;
        }
        let Ok(inner) = open_folder(folder, name.as_c_str()) else { continue };
        if depth >= OPEN_MAX {
            move_up(folder, &name, top, moved)?;
        } else {
            open.push((Dir::new(inner)?, name));
        }
    }
}

/// Gives a deep folder a new name in the top one.
fn move_up(folder: BorrowedFd<'_>, name: &CStr, top: &OwnedFd, moved: &mut u64) -> io::Result<()> {
    loop {
        *moved += 1;
        let at_top = format!(".deep-{moved}");
        match renameat_with(folder, name, top, at_top.as_str(), RenameFlags::NOREPLACE) {
            Err(Errno::EXIST) => {}
            done => return done,
        }
    }
}

/// Opens a folder, also one that its owner has closed.
fn open_folder(at: impl AsFd, name: impl rustix::path::Arg + Copy) -> io::Result<OwnedFd> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let path = openat(&at, name, flags | OFlags::PATH, Mode::empty())?;
    let _ = open_up(path.as_fd());
    openat(path, c".", flags | OFlags::RDONLY, Mode::empty())
}

/// Lets the owner of a folder change it.
fn open_up(folder: BorrowedFd<'_>) -> io::Result<()> {
    let own = format!("/proc/self/fd/{}", folder.as_raw_fd());
    rustix::fs::chmod(own, Mode::RWXU)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    /// Nested folders, made without a path.
    fn nest(at: &Path, depth: usize) {
        std::fs::create_dir_all(at).unwrap();
        let mut folder = open_folder(CWD, at).unwrap();
        for _ in 0..depth {
            rustix::fs::mkdirat(&folder, c"deeper", Mode::RWXU).unwrap();
            rustix::fs::symlinkat(c"/etc", &folder, c"link").unwrap();
            folder = open_folder(&folder, c"deeper").unwrap();
        }
    }

    #[test]
    fn a_tree_far_beyond_the_longest_path_is_removed() {
        let root = tempfile::tempdir().unwrap();
        let top = root.path().join("top");
        nest(&top, 20_000);
        nest(&top.join("second"), 300);
        std::fs::write(top.join(".deep-1"), "a file with a name of ours").unwrap();
        remove_all(&top).unwrap();
        assert!(!top.exists());
    }

    #[test]
    fn closed_folders_are_removed_and_links_lead_nowhere() {
        let root = tempfile::tempdir().unwrap();
        let (top, other) = (root.path().join("top"), root.path().join("other"));
        std::fs::create_dir_all(top.join("a/b")).unwrap();
        std::fs::create_dir_all(&other).unwrap();
        std::fs::write(other.join("file"), "text").unwrap();
        std::os::unix::fs::symlink(&other, top.join("a/link")).unwrap();
        for name in ["a/b", "a"] {
            let closed = PermissionsExt::from_mode(0o000);
            std::fs::set_permissions(top.join(name), closed).unwrap();
        }
        remove_all(&top).unwrap();
        assert!(!top.exists());
        std::os::unix::fs::symlink(&other, &top).unwrap();
        remove_all(&top).unwrap();
        assert!(top.symlink_metadata().is_err() && other.join("file").exists());
        remove_all(&top).unwrap();
    }
}
