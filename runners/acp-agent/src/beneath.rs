//! Folders and files that a harness may change, too: every step from a given folder is opened without following links.
//!
//! Invariant: nothing outside the given folder is read, changed or removed, whatever the harness puts in the way.

use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Mode, OFlags, RenameFlags, fstat, mkdirat, openat, renameat,
    renameat_with, statat, unlinkat,
};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::path::{Component, Path};
use std::sync::atomic::{AtomicU64, Ordering};

const FOLDER: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// Deepest tree that is removed.
const DEPTH_MAX: usize = 64;
static PARTS: AtomicU64 = AtomicU64::new(0);

/// An open folder.
#[derive(Debug)]
pub(crate) struct Folder(OwnedFd);

/// What identifies a file, and changes with its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub(crate) inode: u64,
    pub(crate) bytes: u64,
    changed: (i64, u64),
}

/// What an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    File(Stamp),
    Folder,
    Other,
}

impl Folder {
    /// Opens a folder whose path nobody else controls.
    pub(crate) fn trusted(path: &Path) -> io::Result<Self> {
        Ok(Self(openat(CWD, path, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?))
    }

    /// A folder below this one; it is created if it does not exist, and a link in the way is replaced.
    pub(crate) fn make(&self, path: impl AsRef<Path>) -> io::Result<Self> {
        let mut folder = Self(self.0.try_clone()?);
        for name in names(path.as_ref())? {
            folder = folder.make_one(name)?;
        }
        Ok(folder)
    }

    /// A folder below this one, if it exists.
    pub(crate) fn open(&self, path: impl AsRef<Path>) -> io::Result<Self> {
        let mut folder = Self(self.0.try_clone()?);
        for name in names(path.as_ref())? {
            folder = Self(openat(&folder.0, name, FOLDER, Mode::empty())?);
        }
        Ok(folder)
    }

    fn make_one(&self, name: &str) -> io::Result<Self> {
        for _ in 0..3 {
            match openat(&self.0, name, FOLDER, Mode::empty()) {
                Ok(folder) => return Ok(Self(folder)),
                Err(Errno::NOENT) => {
                    let made = mkdirat(&self.0, name, Mode::from_raw_mode(0o755));
                    made.or_else(|error| if error == Errno::EXIST { Ok(()) } else { Err(error) })?;
                }
                Err(error) => {
                    let found = statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW)?;
                    match FileType::from_raw_mode(found.st_mode) {
                        FileType::Symlink => unlinkat(&self.0, name, AtFlags::empty())?,
                        _ => return Err(error.into()),
                    }
                }
            }
        }
        Err(io::Error::other(format!("`{name}` changes while it is opened")))
    }

    /// Writes a file: a reader sees the old content or the new one. What has the name is replaced, not followed.
    pub(crate) fn write(&self, path: impl AsRef<Path>, bytes: &[u8]) -> io::Result<()> {
        let (folder, name) = self.parent(path.as_ref())?;
        let part = format!(".{name}.{}.part", PARTS.fetch_add(1, Ordering::Relaxed));
        let _ = folder.remove(&part);
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        let file = openat(&folder.0, &part, flags | OFlags::CLOEXEC, Mode::from_raw_mode(0o644))?;
        File::from(file).write_all(bytes)?;
        match renameat(&folder.0, &part, &folder.0, name) {
            Err(Errno::ISDIR) => {
                folder.remove(name)?;
                Ok(renameat(&folder.0, &part, &folder.0, name)?)
            }
            done => Ok(done?),
        }
    }

    /// The content of a plain file of at most so many bytes.
    pub(crate) fn read(&self, path: impl AsRef<Path>, bytes_max: u64) -> io::Result<Vec<u8>> {
        let mut names = names(path.as_ref())?;
        let name = names.pop().ok_or(Errno::INVAL)?;
        let folder = self.open(names.iter().collect::<std::path::PathBuf>())?;
        // A pipe would block.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = File::from(openat(&folder.0, name, flags, Mode::empty())?);
        if !file.metadata()?.is_file() {
            return Err(io::Error::other("it is no plain file"));
        }
        let mut bytes = Vec::new();
        file.take(bytes_max + 1).read_to_end(&mut bytes)?;
        match bytes.len() as u64 <= bytes_max {
            true => Ok(bytes),
            false => Err(io::Error::other(format!("it has more than {bytes_max} bytes"))),
        }
    }

    /// The entries, without names that are no text.
    pub(crate) fn entries(&self) -> io::Result<Vec<(String, Kind)>> {
        let mut entries = Vec::new();
        for entry in Dir::read_from(&self.0)? {
            let entry = entry?;
            let Ok(name) = entry.file_name().to_str() else { continue };
            if matches!(name, "." | "..") {
                continue;
            }
            let Ok(found) = statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
            let kind = match FileType::from_raw_mode(found.st_mode) {
                FileType::RegularFile => Kind::File(stamp(&found)),
                FileType::Directory => Kind::Folder,
                _ => Kind::Other,
            };
            entries.push((name.to_owned(), kind));
        }
        Ok(entries)
    }

    /// Removes a file, a link or a tree; missing is fine.
    pub(crate) fn remove(&self, name: &str) -> io::Result<()> {
        self.remove_to(name, DEPTH_MAX)
    }

    fn remove_to(&self, name: &str, depth_max: usize) -> io::Result<()> {
        match unlinkat(&self.0, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => return Ok(()),
            Err(Errno::ISDIR | Errno::PERM) if depth_max > 0 => {}
            Err(error) => return Err(error.into()),
        }
        let folder = Self(openat(&self.0, name, FOLDER, Mode::empty())?);
        for (inner, _) in folder.entries()? {
            folder.remove_to(&inner, depth_max - 1)?;
        }
        Ok(unlinkat(&self.0, name, AtFlags::REMOVEDIR)?)
    }

    /// Gives the folder `part` the name of another one, which takes its name.
    pub(crate) fn replace(&self, part: &str, name: &str) -> io::Result<()> {
        match renameat_with(&self.0, part, &self.0, name, RenameFlags::EXCHANGE) {
            Ok(()) => self.remove(part),
            Err(Errno::NOENT) => Ok(renameat(&self.0, part, &self.0, name)?),
            Err(error) => Err(error.into()),
        }
    }

    /// The device and inode of the folder itself.
    pub(crate) fn identity(&self) -> io::Result<(u64, u64)> {
        let found = fstat(&self.0)?;
        Ok((found.st_dev, found.st_ino))
    }

    fn parent<'p>(&self, path: &'p Path) -> io::Result<(Self, &'p str)> {
        let mut names = names(path)?;
        let name = names.pop().ok_or(Errno::INVAL)?;
        Ok((self.make(names.iter().collect::<std::path::PathBuf>())?, name))
    }
}

fn stamp(found: &rustix::fs::Stat) -> Stamp {
    Stamp {
        inode: found.st_ino,
        bytes: u64::try_from(found.st_size).unwrap_or_default(),
        changed: (found.st_ctime, found.st_ctime_nsec),
    }
}

/// The names of a relative path that goes down only.
fn names(path: &Path) -> io::Result<Vec<&str>> {
    if !path.components().all(|part| matches!(part, Component::Normal(_))) {
        return Err(io::Error::other(format!("`{}` leads elsewhere", path.display())));
    }
    let names = path.iter().map(|name| name.to_str().ok_or(Errno::INVAL.into()));
    names.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn links_that_a_harness_made_lead_nowhere() {
        let root = tempfile::tempdir().unwrap();
        let (own, other) = (root.path().join("own"), root.path().join("other"));
        std::fs::create_dir_all(&own).unwrap();
        std::fs::create_dir_all(&other).unwrap();
        std::fs::write(other.join("file"), "kept").unwrap();
        let folder = Folder::trusted(&own).unwrap();
        symlink(&other, own.join("a")).unwrap();
        symlink(other.join("file"), own.join("b")).unwrap();
        folder.write("a/file", b"new").unwrap();
        folder.write("b", b"new").unwrap();
        assert_eq!(std::fs::read_to_string(other.join("file")).unwrap(), "kept");
        assert_eq!(std::fs::read_to_string(own.join("a/file")).unwrap(), "new");
        assert_eq!(folder.read("b", 10).unwrap(), b"new");
        // A link is removed itself, and not read.
        symlink(&other, own.join("c")).unwrap();
        assert!(folder.read("c/file", 10).is_err());
        folder.remove("c").unwrap();
        folder.remove("a").unwrap();
        assert!(other.join("file").exists() && !own.join("a").exists());
        for path in ["../x", "/x", "a/../../x"] {
            assert!(folder.write(path, b"").is_err(), "{path}");
        }
        assert!(folder.read("b", 2).is_err());
    }

    #[test]
    fn a_folder_is_replaced_as_a_whole() {
        let root = tempfile::tempdir().unwrap();
        let folder = Folder::trusted(root.path()).unwrap();
        for text in ["one", "two"] {
            folder.write(format!("part/{text}"), text.as_bytes()).unwrap();
            folder.replace("part", "skill").unwrap();
            let names: Vec<String> = folder
                .open("skill")
                .unwrap()
                .entries()
                .unwrap()
                .into_iter()
                .map(|it| it.0)
                .collect();
            assert_eq!(names, [text]);
            assert_eq!(folder.entries().unwrap().len(), 1);
        }
    }
}
