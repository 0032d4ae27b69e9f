//! Counts the bytes and files in folders, a little at a time.
//!
//! Invariant: never follows a link, never leaves the file system of a folder, and never holds more than
//! `DEPTH_MAX` descriptors.

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, StatxFlags, openat, statx};
use std::collections::HashSet;
use std::ffi::CStr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Deepest folder that is counted. A tree below it is no use to a program, only work for others.
pub(super) const DEPTH_MAX: usize = 256;
const BLOCK_BYTES: u64 = 512;

/// The content of folders.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Usage {
    pub(super) bytes: u64,
    /// Files, folders and everything else with an inode.
    pub(super) files: u64,
    pub(super) is_too_deep: bool,
}

/// A count in progress.
pub(super) struct Count {
    folders: Vec<PathBuf>,
    /// The open folders, the outermost first, with the device of that one.
    open: Vec<(Dir, (u32, u32))>,
    /// Files with several names, which count once.
    seen: HashSet<(u32, u32, u64)>,
    usage: Usage,
}

impl Count {
    pub(super) fn of(folders: Vec<PathBuf>) -> Self {
        Self { folders, open: Vec::new(), seen: HashSet::new(), usage: Usage::default() }
    }

    /// Continues for about this long; returns the sum so far, and whether it is complete.
    pub(super) fn proceed(&mut self, time: Duration) -> (Usage, Progress) {
        let began = Instant::now();
        while began.elapsed() < time {
            // Asking for the time costs as much as one entry.
            for _ in 0..32 {
                if !self.step() {
                    return (self.usage, Progress::Complete);
                }
            }
        }
        (self.usage, Progress::Partial)
    }

    /// Counts one entry; `false` when there is none left.
    fn step(&mut self) -> bool {
        let Some((dir, device)) = self.open.last_mut() else {
            let Some(folder) = self.folders.pop() else { return false };
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            if let Ok(opened) = openat(CWD, &folder, flags, Mode::empty())
                && let Ok(found) = statx(&opened, c"", AtFlags::EMPTY_PATH, StatxFlags::BASIC_STATS)
                && let Ok(dir) = Dir::new(opened)
            {
                self.open.push((dir, (found.stx_dev_major, found.stx_dev_minor)));
            }
            return true;
        };
        let device = *device;
        match dir.next() {
            Some(Ok(entry)) => {
                let name = entry.file_name();
                if name != c"." && name != c".." {
                    let name = name.to_owned();
                    self.count(&name, device);
                }
            }
            Some(Err(_)) | None => drop(self.open.pop()),
        }
        true
    }

    fn count(&mut self, name: &CStr, device: (u32, u32)) {
        let depth = self.open.len();
        let Some(folder) = self.open.last().and_then(|(dir, _)| dir.fd().ok()) else { return };
        let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::STATX_DONT_SYNC;
        let Ok(found) = statx(folder, name, flags, StatxFlags::BASIC_STATS) else { return };
        if (found.stx_dev_major, found.stx_dev_minor) != device {
            return;
        }
        let id = (found.stx_dev_major, found.stx_dev_minor, found.stx_ino);
        let is_folder = FileType::from_raw_mode(found.stx_mode.into()).is_dir();
        if !is_folder && found.stx_nlink > 1 && !self.seen.insert(id) {
            return;
        }
        self.usage.files += 1;
        self.usage.bytes += found.stx_blocks * BLOCK_BYTES;
        if !is_folder {
            return;
        }
        if depth >= DEPTH_MAX {
            self.usage.is_too_deep = true;
            return;
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        // A folder that cannot be opened is one that its program has closed to itself as well.
        if let Ok(inner) = openat(folder, name, flags, Mode::empty())
            && let Ok(inner) = Dir::new(inner)
        {
            self.open.push((inner, device));
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    Partial,
    Complete,
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{create_dir_all, hard_link, write};

    fn count(folder: &std::path::Path) -> Usage {
        let mut count = Count::of(vec![folder.to_owned(), folder.join("missing")]);
        let (mut usage, mut progress) = count.proceed(Duration::ZERO);
        while progress == Progress::Partial {
            (usage, progress) = count.proceed(Duration::from_micros(10));
        }
        usage
    }

    #[test]
    fn files_count_once_and_links_are_not_followed() {
        let root = tempfile::tempdir().unwrap();
        let path = |name: &str| root.path().join(name);
        create_dir_all(path("own/a/b")).unwrap();
        create_dir_all(path("other")).unwrap();
        write(path("other/large"), vec![1; 4 << 20]).unwrap();
        write(path("own/a/file"), vec![1; 1 << 20]).unwrap();
        hard_link(path("own/a/file"), path("own/a/b/twin")).unwrap();
        std::os::unix::fs::symlink(path("other"), path("own/link")).unwrap();
        let usage = count(&path("own"));
        // The folders `a` and `b`, the file, and the link.
        assert_eq!((usage.files, usage.is_too_deep), (4, false));
        assert!((1 << 20..(1 << 20) + 65_536).contains(&usage.bytes), "{}", usage.bytes);
    }

    #[test]
    fn a_tree_that_is_too_deep_is_reported() {
        let root = tempfile::tempdir().unwrap();
        create_dir_all(root.path().join("d/".repeat(DEPTH_MAX - 1))).unwrap();
        assert!(!count(root.path()).is_too_deep);
        create_dir_all(root.path().join("d/".repeat(DEPTH_MAX + 4))).unwrap();
        let usage = count(root.path());
        assert_eq!((usage.files, usage.is_too_deep), (DEPTH_MAX as u64, true));
    }
}
