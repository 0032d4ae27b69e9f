//! The commit mark: a small file beside the database that says how many commits it must have.
//!
//! Invariant: the mark is written after a commit and before its outcome is sent, so it never promises more than was
//! committed, and after the end of a process it is exact. It is synced with every checkpoint and twice a second.

use super::identity::{Identity, boot};
use super::log::{Salt, read_salt};
use crate::store::Sync;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

const MAGIC: [u8; 8] = *b"GRMARK1\n";
const BYTES: usize = 128;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Mark {
    /// The start of the machine in which it was written.
    pub(super) boot: Option<[u8; 16]>,
    pub(super) sync: Sync,
    /// The database file.
    pub(super) file: Identity,
    /// The start of the host that wrote it; one more while a host starts.
    pub(super) epoch: u64,
    /// The generation of the log that holds the last commit.
    pub(super) salt: Salt,
    /// Commits before that generation: they are in the database file.
    pub(super) base: u64,
    pub(super) commits: u64,
    /// Commits that are in the database file.
    pub(super) moved: u64,
    /// Commits that survive power loss.
    pub(super) synced: u64,
}

pub(super) enum Found {
    Missing,
    Damaged,
    Read(Mark),
}

impl Mark {
    /// Of a database that no host has marked yet.
    pub(super) fn new(sync: Sync, file: Identity) -> Self {
        Self {
            boot: boot(),
            sync,
            file,
            epoch: 0,
            salt: [0; 2],
            base: 0,
            commits: 0,
            moved: 0,
            synced: 0,
        }
    }

    pub(super) fn read(path: &Path) -> io::Result<Found> {
        match std::fs::read(path) {
            Ok(bytes) => Ok(Self::decode(&bytes).map_or(Found::Damaged, Found::Read)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Found::Missing),
            Err(error) => Err(error),
        }
    }

    fn encode(&self) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        let salt = (u64::from(self.salt[0]) << 32) | u64::from(self.salt[1]);
        let flags = u64::from(self.sync == Sync::Full) | u64::from(self.boot.is_some()) << 1;
        let Identity { device, inode, created_ns } = self.file;
        let numbers = [
            flags,
            device,
            inode,
            created_ns,
            self.epoch,
            salt,
            self.base,
            self.commits,
            self.moved,
            self.synced,
        ];
        bytes[..8].copy_from_slice(&MAGIC);
        for (index, number) in numbers.into_iter().enumerate() {
            bytes[8 + index * 8..16 + index * 8].copy_from_slice(&number.to_le_bytes());
        }
        bytes[88..104].copy_from_slice(&self.boot.unwrap_or_default());
        let check = crc32fast::hash(&bytes[..BYTES - 4]);
        bytes[BYTES - 4..].copy_from_slice(&check.to_le_bytes());
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; BYTES] = bytes.try_into().ok()?;
        let check = crc32fast::hash(&bytes[..BYTES - 4]).to_le_bytes();
        if bytes[..8] != MAGIC || bytes[BYTES - 4..] != check {
            return None;
        }
        let number = |index: usize| {
            let mut eight = [0; 8];
            eight.copy_from_slice(&bytes[8 + index * 8..16 + index * 8]);
            u64::from_le_bytes(eight)
        };
        let flags = number(0);
        let is_set = |bit: u32| flags >> bit & 1 == 1;
        let mut boot = [0; 16];
        boot.copy_from_slice(&bytes[88..104]);
        Some(Self {
            boot: is_set(1).then_some(boot),
            sync: if is_set(0) { Sync::Full } else { Sync::Normal },
            file: Identity { device: number(1), inode: number(2), created_ns: number(3) },
            epoch: number(4),
            salt: [(number(5) >> 32) as u32, number(5) as u32],
            base: number(6),
            commits: number(7),
            moved: number(8),
            synced: number(9),
        })
    }
}

/// Keeps the mark while a host runs.
pub(super) struct Marker {
    file: File,
    log_path: PathBuf,
    state: Mutex<State>,
}

struct State {
    mark: Mark,
    /// Frames of the log up to the last commit.
    frames: u64,
    /// Opened with the first commit.
    log: Option<(File, Identity)>,
    /// The bytes of the log up to the last commit.
    log_bytes: u64,
    /// Whether something else has cut the log.
    is_cut: bool,
}

impl Marker {
    /// Writes the first mark of this start and syncs it.
    pub(super) fn start(
        path: &Path,
        log_path: PathBuf,
        (mark, frames): (Mark, u64),
    ) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        let file = options.create(true).truncate(false).write(true).mode(0o600).open(path)?;
        file.set_len(BYTES as u64)?;
        file.write_all_at(&mark.encode(), 0)?;
        file.sync_all()?;
        sync_folder(path)?;
        Ok(Self {
            file,
            log_path,
            state: Mutex::new(State { mark, frames, log: None, log_bytes: 0, is_cut: false }),
        })
    }

    /// Counts a commit, with which the log has so many frames now.
    pub(super) fn count_commit(&self, frames: u64) -> io::Result<()> {
        let mut state = self.lock();
        state.frames = frames;
        let salt = state.log(&self.log_path).and_then(|(log, _)| read_salt(log, frames));
        state.is_cut |= salt.is_err();
        let (salt, log_bytes) = salt?;
        state.log_bytes = log_bytes;
        let mark = &mut state.mark;
        if salt != mark.salt {
            // SQLite restarts the log only when all of it is in the database file.
            (mark.salt, mark.base) = (salt, mark.commits);
            mark.moved = mark.base;
        }
        mark.commits += 1;
        if mark.sync == Sync::Full {
            mark.synced = mark.commits;
        }
        let bytes = mark.encode();
        self.file.write_all_at(&bytes, 0)
    }

    /// The log is empty: the host itself has truncated it.
    pub(super) fn note_truncated(&self) {
        self.lock().log_bytes = 0;
    }

    /// Whether the log still has all that was committed. For the writer alone: nothing may truncate the log
    /// meanwhile.
    pub(super) fn log_is_whole(&self) -> bool {
        let mut state = self.lock();
        let file = state.log.as_ref().and_then(|(log, _)| log.metadata().ok());
        state.is_cut |= file.is_some_and(|file| file.len() < state.log_bytes);
        !state.is_cut
    }

    /// Changes the mark and writes it.
    pub(super) fn update(&self, change: impl FnOnce(&mut Mark)) -> io::Result<()> {
        let mut state = self.lock();
        change(&mut state.mark);
        let bytes = state.mark.encode();
        self.file.write_all_at(&bytes, 0)
    }

    pub(super) fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    /// The mark, and the frames of the log up to its last commit.
    pub(super) fn position(&self) -> (Mark, u64) {
        let state = self.lock();
        (state.mark, state.frames)
    }

    /// Whether database and log are still the files that this host opened, and the log has every commit.
    pub(super) fn files_are_whole(&self, path: &Path) -> bool {
        let state = self.lock();
        let is = |path: &Path, known: &Identity| {
            Identity::of(path).is_ok_and(|found| found.is_same(known))
        };
        !state.is_cut
            && is(path, &state.mark.file)
            && state.log.as_ref().is_none_or(|(_, known)| is(&self.log_path, known))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn log(&mut self, path: &Path) -> io::Result<&(File, Identity)> {
        if self.log.is_none() {
            let file = File::open(path)?;
            let identity = Identity::from(&file.metadata()?);
            self.log = Some((file, identity));
        }
        self.log.as_ref().ok_or_else(|| ErrorKind::NotFound.into())
    }
}

fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_read_as_it_was_written_and_one_flipped_bit_is_noticed() {
        let file = Identity { device: 7, inode: 8, created_ns: 9 };
        let mut mark = Mark::new(Sync::Full, file);
        (mark.salt, mark.base, mark.commits) = ([u32::MAX, 3], 10, 12);
        (mark.moved, mark.synced, mark.epoch) = (10, 12, 4);
        let bytes = mark.encode();
        assert_eq!(Mark::decode(&bytes), Some(mark));
        for bit in 0..BYTES * 8 {
            let mut flipped = bytes;
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Mark::decode(&flipped), None, "bit {bit}");
        }
    }
}
