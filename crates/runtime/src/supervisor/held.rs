//! What the descriptors of a process tree hold besides its resident memory: files without a name.
//!
//! Invariant: a file counts once, however many descriptors and processes have it open. Nothing here waits for a
//! file system.

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawDir, StatxFlags, openat, statx};
use rustix::process::Pid;
use std::collections::{HashMap, HashSet};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;

/// Their files are memory.
const TMPFS: i64 = 0x0102_1994;
const HUGETLBFS: i64 = 0x9584_58f6;
/// Bytes of a block, whatever the block size of the file system is.
const BLOCK_BYTES: u64 = 512;

/// Device and number of a file.
type FileId = (u32, u32, u64);

/// Files without a name, with their sizes in bytes.
#[derive(Debug, Default)]
pub(super) struct Held {
    memory: HashMap<FileId, u64>,
    pub(super) disk_bytes: u64,
    /// Open descriptors of the tree.
    pub(super) descriptors: usize,
    /// Processes whose descriptors this process may not see.
    pub(super) unseen: Vec<Pid>,
}

impl Held {
    pub(super) fn memory_bytes(&self) -> u64 {
        self.memory.values().sum()
    }

    fn has(&self, file: &FileId) -> bool {
        self.memory.contains_key(file)
    }
}

/// Which devices are memory, as far as they were seen.
#[derive(Debug, Default)]
pub(super) struct Devices(HashMap<(u32, u32), bool>);

impl Devices {
    /// Reads the descriptors of these processes, at most about `descriptors_max`.
    pub(super) fn held_by(&mut self, tree: &[Pid], descriptors_max: usize) -> Held {
        let mut held = Held::default();
        let mut on_disk = HashSet::new();
        for pid in tree {
            if held.descriptors > descriptors_max {
                break;
            }
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let path = format!("/proc/{}/fd", pid.as_raw_pid());
            match rustix::fs::open(path, flags, Mode::empty()) {
                Ok(folder) => self.read(&folder, &mut held, &mut on_disk),
                Err(rustix::io::Errno::ACCESS | rustix::io::Errno::PERM) => held.unseen.push(*pid),
                // It has just ended.
                Err(_) => {}
            }
        }
        held
    }

    fn read(&mut self, folder: &OwnedFd, held: &mut Held, on_disk: &mut HashSet<FileId>) {
        let mut space = [MaybeUninit::uninit(); 8192];
        let mut entries = RawDir::new(folder, &mut space);
        while let Some(Ok(entry)) = entries.next() {
            if entry.file_name().to_bytes().starts_with(b".") {
                continue;
            }
            held.descriptors += 1;
            let wanted =
                StatxFlags::TYPE | StatxFlags::NLINK | StatxFlags::INO | StatxFlags::BLOCKS;
            let Ok(file) = statx(folder, entry.file_name(), AtFlags::STATX_DONT_SYNC, wanted)
            else {
                continue;
            };
            let is_file = FileType::from_raw_mode(file.stx_mode.into()).is_file();
            if !is_file || file.stx_nlink > 0 {
                continue;
            }
            let id = (file.stx_dev_major, file.stx_dev_minor, file.stx_ino);
            let bytes = file.stx_blocks * BLOCK_BYTES;
            let device = (id.0, id.1);
            let is_memory = || is_memory(folder, entry.file_name());
            if *self.0.entry(device).or_insert_with(is_memory) {
                held.memory.insert(id, bytes);
            } else if on_disk.insert(id) {
                held.disk_bytes += bytes;
            }
        }
    }
}

fn is_memory(folder: &OwnedFd, name: &std::ffi::CStr) -> bool {
    // Opened as a path only: that reads nothing, and works for files without read permission.
    let file = openat(folder, name, OFlags::PATH | OFlags::CLOEXEC, Mode::empty());
    let found = file.and_then(|file| rustix::fs::fstatfs(&file));
    #[expect(clippy::unnecessary_cast, reason = "the type differs between architectures")]
    found.is_ok_and(|found| [TMPFS, HUGETLBFS].contains(&(found.f_type as i64)))
}

/// The proportional share of one process in memory, and how much of it is mapped from held files. Slow: reads
/// every mapping.
pub(super) fn proportional_bytes(pid: Pid, held: &Held) -> Option<(u64, u64)> {
    let text = std::fs::read_to_string(format!("/proc/{}/smaps", pid.as_raw_pid())).ok()?;
    Some(sum_shares(&text, held))
}

/// From the text of `/proc/PID/smaps`.
fn sum_shares(text: &str, held: &Held) -> (u64, u64) {
    let (mut all, mut of_held, mut is_held) = (0, 0, false);
    for line in text.lines() {
        if let Some(share) = line.strip_prefix("Pss:") {
            let kib = share.split_whitespace().next().and_then(|kib| kib.parse::<u64>().ok());
            let bytes = kib.unwrap_or(0) * 1024;
            all += bytes;
            of_held += if is_held { bytes } else { 0 };
        } else if let Some(file) = mapped_file(line) {
            is_held = held.has(&file);
        }
    }
    (all, of_held)
}

/// The file of a line such as `7f2c…-7f2d… rw-s 00000000 00:01 2055 /memfd:x (deleted)`.
fn mapped_file(line: &str) -> Option<FileId> {
    let mut words = line.split_whitespace();
    let (range, _mode, _offset) = (words.next()?, words.next()?, words.next()?);
    if range.ends_with(':') || !range.contains('-') {
        return None;
    }
    let (major, minor) = words.next()?.split_once(':')?;
    let number = words.next()?.parse().ok()?;
    let hex = |text| u32::from_str_radix(text, 16).ok();
    Some((hex(major)?, hex(minor)?, number))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{MemfdFlags, ftruncate, memfd_create};

    #[test]
    fn a_nameless_file_in_memory_counts_once_and_only_what_it_holds() {
        let before = Devices::default().held_by(&[rustix::process::getpid()], usize::MAX);
        let file = memfd_create("held", MemfdFlags::CLOEXEC).unwrap();
        ftruncate(&file, 1 << 40).unwrap();
        let copy = rustix::io::dup(&file).unwrap();
        rustix::io::pwrite(&copy, &vec![1; 8 << 20], 1 << 30).unwrap();
        let held = Devices::default().held_by(&[rustix::process::getpid()], usize::MAX);
        // Other tests of this process may hold a little.
        let grown = held.memory_bytes() - before.memory_bytes();
        assert!((8 << 20..9 << 20).contains(&grown), "{grown}");
        assert!(held.descriptors >= before.descriptors + 2);
        assert!(held.unseen.is_empty());
    }

    #[test]
    fn shares_are_summed_and_those_of_held_files_apart() {
        let text = "5570-5580 r--p 00000000 fd:01 1441 /usr/bin/python3\n\
                    Size:                 44 kB\nRss:                  44 kB\nPss:                  10 kB\n\
                    7f00-7f80 rw-s 00000000 00:01 2055 /memfd:x (deleted)\n\
                    Rss:                2048 kB\nPss:                1024 kB\nVmFlags: rd wr sh\n\
                    7f90-7fa0 rw-p 00000000 00:00 0 \nPss:                  30 kB\n";
        let held = Held { memory: [((0, 1, 2055), 4 << 20)].into(), ..Held::default() };
        assert_eq!(sum_shares(text, &held), ((10 + 1024 + 30) * 1024, 1024 * 1024));
        assert_eq!(sum_shares(text, &Held::default()), ((10 + 1024 + 30) * 1024, 0));
    }
}
