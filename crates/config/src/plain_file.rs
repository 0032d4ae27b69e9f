//! Files in folders that a program can write while the host looks at them.
//!
//! Invariant: no symbolic link is followed, only regular files are opened, and nothing here waits or reads without a limit.

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Component, Path};

/// Opens what is at this absolute path as a place only, without following a link anywhere in the path.
pub fn open_plain(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut at = rustix::fs::open("/", flags, Mode::empty())?;
    for component in path.components() {
        match component {
            Component::RootDir | Component::CurDir => {}
            Component::Normal(name) => at = rustix::fs::openat(&at, name, flags, Mode::empty())?,
            Component::ParentDir | Component::Prefix(_) => return Err(Errno::INVAL.into()),
        }
        if kind(&at)? == FileType::Symlink {
            return Err(Errno::LOOP.into());
        }
    }
    Ok(at)
}

/// Reads a regular file of at most `bytes_max` bytes, found without following a link.
pub fn read_plain(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    let bytes = read_head(path, bytes_max.saturating_add(1))?;
    match bytes.len() as u64 <= bytes_max {
        true => Ok(bytes),
        false => Err(io::Error::other(format!("it has more than {bytes_max} bytes"))),
    }
}

/// The same for its first bytes, however long it is.
pub fn read_head(path: &Path, bytes: u64) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    open_file(path)?.take(bytes).read_to_end(&mut head)?;
    Ok(head)
}

/// Opens a regular file for reading, found without following a link.
pub fn open_file(path: &Path) -> io::Result<File> {
    let place = open_plain(path)?;
    if kind(&place)? != FileType::RegularFile {
        return Err(io::Error::other("it is not a file"));
    }
    // Opens the very file that was looked at: a pipe would be waited for, and opening a device may do something.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let name = format!("/proc/self/fd/{}", place.as_raw_fd());
    Ok(rustix::fs::open(name, flags, Mode::empty())?.into())
}

fn kind(place: &OwnedFd) -> io::Result<FileType> {
    Ok(FileType::from_raw_mode(rustix::fs::fstat(place)?.st_mode))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn only_regular_files_within_the_limit_are_read_and_links_are_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let path = |name: &str| root.join(name);
        std::fs::create_dir(path("real")).unwrap();
        std::fs::write(path("real/file"), "12345").unwrap();
        symlink("file", path("real/link")).unwrap();
        symlink("real", path("folder")).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, path("pipe"), FileType::Fifo, Mode::RUSR, 0).unwrap();
        File::create(path("huge")).unwrap().set_len(1 << 40).unwrap();
        assert_eq!(read_plain(&path("real/file"), 5).unwrap(), b"12345");
        assert_eq!(read_head(&path("real/file"), 2).unwrap(), b"12");
        for refused in ["real/link", "folder/file", "real/../real/file", "pipe", "real", "huge"] {
            assert!(read_plain(&path(refused), 4096).is_err(), "{refused}");
        }
        assert!(read_plain(&path("real/file"), 4).is_err());
    }
}
