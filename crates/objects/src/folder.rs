//! Objects in a folder: `ab/abcdef…` for those whose hash begins with `ab`.
//!
//! Invariant: names are opened relative to an open folder and links are never followed; a file is complete and
//! synced before it gets its name, and its name is synced before `keep` returns.

use crate::id::{ObjectId, Shard};
use crate::objects::StoredObject;
use crate::spool::{Spool, SpoolFile, find_folder, open_folder};
use crate::stage::{Body, Staged};
use crate::{ObjectsError, backend::Backend};
use bytes::Bytes;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, fsync, openat, statat, unlinkat};
use rustix::io::Errno;
use std::fs::{DirBuilder, File};
use std::io::Write;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, FileExt};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

const SPOOL: &str = "incoming";
const OWNER: &str = "owner";

pub(crate) struct Folder {
    root: OwnedFd,
    pub(crate) spool: Arc<Spool>,
}

impl Folder {
    pub(crate) fn open(path: &Path, owner: &str) -> Result<Folder, ObjectsError> {
        let root = open_root(path)?;
        let spool = Spool::open(&root, SPOOL)?;
        let folder = Folder { root, spool };
        match folder.owner()? {
            Some(found) if found == owner => Ok(folder),
            Some(_) => {
                let backend = Backend::Folder(path.to_owned()).to_string();
                Err(ObjectsError::Foreign { backend })
            }
            None => {
                let mut file = folder.spool.create("owner")?;
                file.file.write_all(owner.as_bytes())?;
                file.file.sync_all()?;
                file.move_to(&folder.root, OWNER)?;
                fsync(&folder.root)?;
                Ok(folder)
            }
        }
    }

    fn owner(&self) -> Result<Option<String>, ObjectsError> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        match openat(&self.root, OWNER, flags, Mode::empty()) {
            Ok(file) => Ok(Some(std::io::read_to_string(File::from(file))?)),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Stores an object, unless it is stored already.
    pub(crate) fn keep(&self, staged: Staged) -> Result<(), ObjectsError> {
        let Staged { id, size, body, .. } = staged;
        let (shard, new) = open_folder(&self.root, &id.shard().to_string())
            .map_err(|error| tampered(error, id))?;
        let name = id.to_string();
        if !exists(&shard, &name, size)? {
            let file = self.written(body)?;
            file.file.sync_all()?;
            file.move_to(&shard, &name)?;
        }
        // Also for an existing file: its writer may have stopped before this.
        fsync(&shard)?;
        if new {
            fsync(&self.root)?;
        }
        Ok(())
    }

    fn written(&self, body: Body) -> Result<SpoolFile, ObjectsError> {
        match body {
            Body::File(file) => Ok(file),
            Body::Memory(bytes) => {
                let mut file = self.spool.create("part")?;
                file.file.write_all(&bytes)?;
                Ok(file)
            }
        }
    }

    /// The file of an id, and its size.
    pub(crate) fn find(&self, id: ObjectId) -> Result<(File, u64), ObjectsError> {
        let shard = find_folder(&self.root, &id.shard().to_string());
        let shard = shard.map_err(|error| tampered(error, id))?;
        let shard = shard.ok_or(ObjectsError::Missing(id))?;
        // A pipe instead of a file must not block the reader.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match openat(&shard, id.to_string(), flags, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(Errno::NOENT) => return Err(ObjectsError::Missing(id)),
            Err(error) => return Err(tampered(error.into(), id)),
        };
        let about = file.metadata()?;
        match about.is_file() {
            true => Ok((file, about.len())),
            false => Err(ObjectsError::Tampered(id)),
        }
    }

    pub(crate) fn read(&self, id: ObjectId, range: Range<u64>) -> Result<Bytes, ObjectsError> {
        let (file, size) = self.find(id)?;
        if range.end > size {
            return Err(ObjectsError::Tampered(id));
        }
        read_at(&file, range)
    }

    pub(crate) fn delete(&self, id: ObjectId) -> Result<(), ObjectsError> {
        let Some(shard) = find_folder(&self.root, &id.shard().to_string())? else { return Ok(()) };
        match unlinkat(&shard, id.to_string(), AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    pub(crate) fn list(&self, shard: Shard) -> Result<Vec<StoredObject>, ObjectsError> {
        let Some(folder) = find_folder(&self.root, &shard.to_string())? else {
            return Ok(Vec::new());
        };
        let mut found = Vec::new();
        for entry in Dir::read_from(&folder)? {
            let entry = entry?;
            let id = entry.file_name().to_str().ok().and_then(ObjectId::parse);
            let Some(id) = id.filter(|id| id.shard() == shard) else { continue };
            let about = match statat(&folder, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW) {
                Ok(about) => about,
                Err(Errno::NOENT) => continue,
                Err(error) => return Err(error.into()),
            };
            let seconds = Duration::from_secs(u64::try_from(about.st_mtime).unwrap_or(0));
            let size = u64::try_from(about.st_size).unwrap_or(0);
            found.push(StoredObject { id, size, modified: UNIX_EPOCH + seconds });
        }
        Ok(found)
    }

    pub(crate) fn sweep(&self) -> Result<usize, ObjectsError> {
        let names = self.spool.left_behind()?;
        names.iter().try_for_each(|name| self.spool.remove(name))?;
        Ok(names.len())
    }
}

pub(crate) fn open_root(path: &Path) -> Result<OwnedFd, ObjectsError> {
    let unusable = |source| ObjectsError::Unusable { backend: path.display().to_string(), source };
    DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(unusable)?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty()).map_err(|error| unusable(error.into()))
}

pub(crate) fn read_at(file: &File, range: Range<u64>) -> Result<Bytes, ObjectsError> {
    let length = usize::try_from(range.end.saturating_sub(range.start)).unwrap_or(usize::MAX);
    let mut bytes = vec![0; length];
    file.read_exact_at(&mut bytes, range.start)?;
    Ok(bytes.into())
}

fn exists(shard: &OwnedFd, name: &str, size: u64) -> Result<bool, ObjectsError> {
    match statat(shard, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(about) => {
            let plain = FileType::from_raw_mode(about.st_mode) == FileType::RegularFile;
            Ok(plain && u64::try_from(about.st_size) == Ok(size))
        }
        Err(Errno::NOENT) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// A link instead of a folder or a file.
fn tampered(error: ObjectsError, id: ObjectId) -> ObjectsError {
    match &error {
        ObjectsError::Io(cause) => match cause.raw_os_error().map(Errno::from_raw_os_error) {
            Some(Errno::LOOP | Errno::NOTDIR | Errno::NXIO) => ObjectsError::Tampered(id),
            _ => error,
        },
        _ => error,
    }
}
