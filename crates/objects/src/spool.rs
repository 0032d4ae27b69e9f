//! A folder of incoming files, each of one start of the host.
//!
//! Invariant: files of this start are removed when their handle is dropped, files of earlier starts by `sweep`.
//! Names are made only here, and links are never followed.

use crate::ObjectsError;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, mkdirat, openat, unlinkat};
use rustix::io::Errno;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const FOLDER: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

pub(crate) struct Spool {
    folder: OwnedFd,
    start: String,
    next: AtomicU64,
}

/// An incoming file; dropping it removes it.
pub(crate) struct SpoolFile {
    pub(crate) file: File,
    name: String,
    spool: Arc<Spool>,
    moved: bool,
}

impl Spool {
    /// Opens the folder `name` within `parent`; it is created if missing.
    pub(crate) fn open(parent: &OwnedFd, name: &str) -> Result<Arc<Spool>, ObjectsError> {
        let folder = open_folder(parent, name)?.0;
        let start = uuid::Uuid::new_v4().simple().to_string();
        Ok(Arc::new(Spool { folder, start, next: AtomicU64::new(0) }))
    }

    /// A new file; `kind` is its suffix.
    pub(crate) fn create(self: &Arc<Self>, kind: &str) -> Result<SpoolFile, ObjectsError> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let name = format!("{}-{number}.{kind}", self.start);
        let flags =
            OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(&self.folder, &name, flags, Mode::RUSR | Mode::WUSR)?;
        Ok(SpoolFile { file: file.into(), name, spool: Arc::clone(self), moved: false })
    }

    /// The names of files of earlier starts.
    pub(crate) fn left_behind(&self) -> Result<Vec<String>, ObjectsError> {
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.folder)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if entry.file_type() != FileType::Directory && !name.starts_with(&self.start) {
                names.push(name);
            }
        }
        Ok(names)
    }

    pub(crate) fn read(&self, name: &str) -> Result<String, ObjectsError> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = File::from(openat(&self.folder, name, flags, Mode::empty())?);
        Ok(std::io::read_to_string(file)?)
    }

    pub(crate) fn remove(&self, name: &str) -> Result<(), ObjectsError> {
        match unlinkat(&self.folder, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    pub(crate) fn sync(&self) -> Result<(), ObjectsError> {
        Ok(rustix::fs::fsync(&self.folder)?)
    }
}

impl SpoolFile {
    /// Moves the file to its final name atomically, replacing an existing file.
    pub(crate) fn move_to(mut self, folder: &OwnedFd, name: &str) -> Result<(), ObjectsError> {
        rustix::fs::renameat(&self.spool.folder, &self.name, folder, name)?;
        self.moved = true;
        Ok(())
    }

    /// Leaves the file to a later sweep.
    pub(crate) fn abandon(mut self) {
        let name = format!("abandoned-{}", self.name);
        let folder = &self.spool.folder;
        self.moved = rustix::fs::renameat(folder, &self.name, folder, &name).is_ok();
    }
}

impl Drop for SpoolFile {
    fn drop(&mut self) {
        if !self.moved
            && let Err(error) = self.spool.remove(&self.name)
        {
            tracing::warn!(%error, "cannot remove an incoming file");
        }
    }
}

/// Opens a folder; tells whether it was created. A link is refused.
pub(crate) fn open_folder(parent: &OwnedFd, name: &str) -> Result<(OwnedFd, bool), ObjectsError> {
    let new = match mkdirat(parent, name, Mode::RWXU) {
        Ok(()) => true,
        Err(Errno::EXIST) => false,
        Err(error) => return Err(error.into()),
    };
    Ok((openat(parent, name, FOLDER, Mode::empty())?, new))
}

/// Opens the folder `name` if it exists.
pub(crate) fn find_folder(parent: &OwnedFd, name: &str) -> Result<Option<OwnedFd>, ObjectsError> {
    match openat(parent, name, FOLDER, Mode::empty()) {
        Ok(folder) => Ok(Some(folder)),
        Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
