//! Checksums of the pages of the database file, in a file beside it.
//!
//! Invariant: the checksum of a page is written and synced before a checkpoint moves the page from the log into the
//! database, so a page that no frame of the log replaces has its checksum, also after a crash.

use super::log::Pages;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

const MAGIC: [u8; 8] = *b"GRSUMS1\n";
const HEADER_BYTES: usize = 32;
/// Where the entries begin.
const ENTRIES_AT: u64 = 4096;
const ENTRY_BYTES: usize = 8;

pub(super) struct Sums {
    file: File,
    use_of: Use,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Use {
    Keep,
    /// Only to compare: what is written is dropped.
    View,
}

/// What is known about a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Entry {
    /// Not checkpointed since the file exists.
    Unknown,
    Known(u32),
    /// The entry itself is damaged.
    Damaged,
}

impl Sums {
    /// The commits whose pages have checksums; None if the file is missing or its header is damaged.
    pub(super) fn commits(path: &Path) -> io::Result<Option<u64>> {
        let mut bytes = [0; HEADER_BYTES];
        let read = File::open(path).and_then(|file| file.read_exact_at(&mut bytes, 0));
        match read {
            Ok(()) => Ok(decode(&bytes)),
            Err(error)
                if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::UnexpectedEof) =>
            {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.create(true).truncate(false).read(true).write(true).mode(0o600);
        Ok(Self { file: options.open(path)?, use_of: Use::Keep })
    }

    /// The checksums as they are, to compare only; none if there are none.
    pub(super) fn view(path: &Path) -> io::Result<Option<Self>> {
        match File::open(path) {
            Ok(file) => Ok(Some(Self { file, use_of: Use::View })),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Forgets every checksum.
    pub(super) fn clear(&self, commits: u64) -> io::Result<()> {
        self.file.set_len(0)?;
        self.set_commits(commits)?;
        self.file.sync_all()
    }

    pub(super) fn set_commits(&self, commits: u64) -> io::Result<()> {
        self.file.write_all_at(&encode(commits), 0)
    }

    pub(super) fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    pub(super) fn write(&self, pages: &Pages) -> io::Result<()> {
        if self.use_of == Use::View {
            return Ok(());
        }
        let mut run: Vec<u8> = Vec::new();
        let mut first = 0;
        for (&page, &sum) in pages {
            let expected = first + (run.len() / ENTRY_BYTES) as u32;
            if page != expected || run.is_empty() {
                self.write_run(first, &run)?;
                run.clear();
                first = page;
            }
            run.extend(entry(page, sum));
        }
        self.write_run(first, &run)
    }

    fn write_run(&self, first: u32, entries: &[u8]) -> io::Result<()> {
        match entries.is_empty() {
            true => Ok(()),
            false => self.file.write_all_at(entries, at(first)),
        }
    }

    /// The entries of `count` pages.
    pub(super) fn read(&self, first: u32, count: usize) -> io::Result<Vec<Entry>> {
        let mut bytes = vec![0; count * ENTRY_BYTES];
        let mut filled = 0;
        // Behind the end of the file nothing is known.
        while filled < bytes.len() {
            match self.file.read_at(&mut bytes[filled..], at(first) + filled as u64)? {
                0 => break,
                read => filled += read,
            }
        }
        let entries = bytes.chunks_exact(ENTRY_BYTES).zip(first..);
        Ok(entries.map(|(bytes, page)| decode_entry(page, bytes)).collect())
    }

    /// Pages that have a place in the file.
    pub(super) fn pages(&self) -> io::Result<u64> {
        let bytes = self.file.metadata()?.len().saturating_sub(ENTRIES_AT);
        Ok(bytes.div_ceil(ENTRY_BYTES as u64))
    }
}

fn at(page: u32) -> u64 {
    ENTRIES_AT + u64::from(page.saturating_sub(1)) * ENTRY_BYTES as u64
}

/// The checksum and a checksum of itself, so that damage of this file is not taken for damage of a page.
fn entry(page: u32, sum: u32) -> [u8; ENTRY_BYTES] {
    let mut bytes = [0; ENTRY_BYTES];
    bytes[..4].copy_from_slice(&sum.to_le_bytes());
    bytes[4..].copy_from_slice(&check_of(page, sum).to_le_bytes());
    bytes
}

fn check_of(page: u32, sum: u32) -> u32 {
    let mut bytes = [0; 8];
    bytes[..4].copy_from_slice(&page.to_le_bytes());
    bytes[4..].copy_from_slice(&sum.to_le_bytes());
    crc32fast::hash(&bytes)
}

fn decode_entry(page: u32, bytes: &[u8]) -> Entry {
    let number = |at: usize| {
        let mut four = [0; 4];
        four.copy_from_slice(&bytes[at..at + 4]);
        u32::from_le_bytes(four)
    };
    let (sum, check) = (number(0), number(4));
    match (sum, check) {
        (0, 0) => Entry::Unknown,
        _ if check_of(page, sum) == check => Entry::Known(sum),
        _ => Entry::Damaged,
    }
}

fn encode(commits: u64) -> [u8; HEADER_BYTES] {
    let mut bytes = [0; HEADER_BYTES];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..16].copy_from_slice(&commits.to_le_bytes());
    let check = crc32fast::hash(&bytes[..16]);
    bytes[16..20].copy_from_slice(&check.to_le_bytes());
    bytes
}

fn decode(bytes: &[u8; HEADER_BYTES]) -> Option<u64> {
    let mut eight = [0; 8];
    eight.copy_from_slice(&bytes[8..16]);
    let commits = u64::from_le_bytes(eight);
    (encode(commits) == *bytes).then_some(commits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_read_as_they_were_written_and_damaged_ones_are_recognised() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sums");
        assert_eq!(Sums::commits(&path).unwrap(), None);
        let sums = Sums::open(&path).unwrap();
        sums.clear(5).unwrap();
        assert_eq!(Sums::commits(&path).unwrap(), Some(5));
        sums.write(&Pages::from([(1, 10), (2, 0), (5, 50)])).unwrap();
        let known = [Entry::Known(10), Entry::Known(0), Entry::Unknown, Entry::Unknown];
        assert_eq!(sums.read(1, 4).unwrap(), known);
        assert_eq!(sums.read(5, 3).unwrap(), [Entry::Known(50), Entry::Unknown, Entry::Unknown]);
        sums.file.write_all_at(&[11], at(1)).unwrap();
        assert_eq!(sums.read(1, 2).unwrap(), [Entry::Damaged, Entry::Known(0)]);
        assert_eq!(sums.pages().unwrap(), 5);
    }
}
