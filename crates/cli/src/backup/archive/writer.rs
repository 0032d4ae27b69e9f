//! Writes an archive.
//!
//! Invariant: the file gets its name only after it was synced to disk, and only its owner can ever read it. A dropped
//! writer leaves no file.

use super::{MANIFEST, MANIFEST_SUM, hex};
use crate::backup::manifest::{Manifest, Member};
use sha2::{Digest, Sha256};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use tar::{Builder, EntryType, Header};

pub(crate) struct ArchiveWriter {
    builder: Builder<File>,
    target: PathBuf,
    part: PathBuf,
    seconds: u64,
    members: Vec<Member>,
    is_finished: bool,
}

impl ArchiveWriter {
    /// Creates a temporary file beside the target; fails if another backup writes it.
    pub(crate) fn create(target: &Path, at: SystemTime) -> io::Result<Self> {
        let part = part_of(target);
        let mut options = OpenOptions::new();
        let file = options.create_new(true).read(true).write(true).mode(0o600);
        let seconds = at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO);
        Ok(Self {
            builder: Builder::new(file.open(&part)?),
            target: target.to_owned(),
            part,
            seconds: seconds.as_secs(),
            members: Vec::new(),
            is_finished: false,
        })
    }

    /// Adds a member that `fill` writes; its length need not be known in advance.
    pub(crate) fn add<T, E: From<io::Error>>(
        &mut self,
        name: &str,
        mode: u32,
        fill: impl FnOnce(&mut dyn Write) -> Result<T, E>,
    ) -> Result<T, E> {
        let mut header = Header::new_gnu();
        header.set_entry_type(EntryType::Regular);
        header.set_mode(mode);
        header.set_mtime(self.seconds);
        let mut entry = self.builder.append_writer(&mut header, name)?;
        let mut out = Counted { out: &mut entry, size: 0, hash: Sha256::new() };
        let filled = fill(&mut out)?;
        let (size, sha256) = (out.size, hex(out.hash));
        entry.finish()?;
        self.members.push(Member { name: name.to_owned(), size, sha256 });
        Ok(filled)
    }

    pub(crate) fn add_bytes(&mut self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.add(name, 0o600, |out| out.write_all(bytes))
    }

    /// Adds the manifest, syncs the file, renames it and returns its size.
    pub(crate) fn finish(mut self, mut manifest: Manifest) -> io::Result<u64> {
        manifest.members = std::mem::take(&mut self.members);
        let text = serde_json::to_vec_pretty(&manifest)?;
        self.add_bytes(MANIFEST, &text)?;
        let sum = hex(Sha256::new_with_prefix(&text));
        self.add_bytes(MANIFEST_SUM, format!("{sum}  {MANIFEST}\n").as_bytes())?;
        self.builder.finish()?;
        let file = self.builder.get_ref();
        file.sync_all()?;
        let size = file.metadata()?.len();
        if self.target.exists() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        std::fs::rename(&self.part, &self.target)?;
        self.is_finished = true;
        let parent = self.target.parent().filter(|parent| !parent.as_os_str().is_empty());
        File::open(parent.unwrap_or(Path::new(".")))?.sync_all()?;
        Ok(size)
    }
}

/// The name of the temporary file.
pub(crate) fn part_of(target: &Path) -> PathBuf {
    PathBuf::from(format!("{}.part", target.display()))
}

impl Drop for ArchiveWriter {
    fn drop(&mut self) {
        if !self.is_finished {
            let _ = std::fs::remove_file(&self.part);
        }
    }
}

struct Counted<'a> {
    out: &'a mut dyn Write,
    size: u64,
    hash: Sha256,
}

impl Write for Counted<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.size += written as u64;
        self.hash.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
