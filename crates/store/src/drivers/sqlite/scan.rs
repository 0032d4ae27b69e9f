//! Compares the pages of the database file with their checksums, a few at a time.
//!
//! Invariant: nothing moves pages into the file meanwhile: checkpoints are made by the same thread.

use super::log::Pages;
use super::sums::{Entry, Sums};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Pages per step.
const STEP: usize = 256;

#[derive(Debug, Default)]
pub(super) struct Scan {
    /// Pages before this one are done.
    done: u32,
    pub(super) checked: u64,
    pub(super) damaged: Vec<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    More,
    Done,
}

impl Scan {
    /// Checks the next pages and computes checksums that are missing. A page in the log is not read from the file.
    pub(super) fn step(
        &mut self,
        file: &File,
        page_bytes: usize,
        (sums, log): (&Sums, &Pages),
    ) -> io::Result<Progress> {
        let first = self.done + 1;
        let bytes = read(file, u64::from(self.done) * page_bytes as u64, STEP * page_bytes)?;
        let in_file = bytes.len() / page_bytes;
        let known = sums.pages()?.saturating_sub(u64::from(self.done)).min(STEP as u64) as usize;
        let count = in_file.max(known);
        if count == 0 {
            return Ok(Progress::Done);
        }
        let mut contents = bytes.chunks_exact(page_bytes);
        let mut unknown = Pages::new();
        for (entry, page) in sums.read(first, count)?.into_iter().zip(first..) {
            let found = contents.next().map(crc32fast::hash);
            match (entry, found) {
                (Entry::Known(sum), found) if found == Some(sum) => self.checked += 1,
                (Entry::Known(_), _) if log.contains_key(&page) => {}
                (Entry::Known(_), _) => self.damaged.push(page),
                (Entry::Unknown | Entry::Damaged, Some(sum)) => {
                    if entry == Entry::Damaged {
                        tracing::warn!(page, "the checksum of a page is damaged; computed again");
                    }
                    unknown.insert(page, sum);
                }
                (Entry::Unknown | Entry::Damaged, None) => {}
            }
        }
        sums.write(&unknown)?;
        self.done += count as u32;
        Ok(if count < STEP { Progress::Done } else { Progress::More })
    }

    /// What is wrong, if anything is.
    pub(super) fn problem(&self) -> Option<String> {
        let first = self.damaged.first()?;
        Some(match self.damaged.len() {
            1 => format!("page {first} of the database file differs from its checksum"),
            count => format!(
                "{count} pages of the database file differ from their checksums, the first one is page {first}"
            ),
        })
    }
}

/// Up to `count` bytes; fewer at the end of the file.
fn read(file: &File, at: u64, count: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; count];
    let mut filled = 0;
    while filled < count {
        match file.read_at(&mut bytes[filled..], at + filled as u64)? {
            0 => break,
            read => filled += read,
        }
    }
    bytes.truncate(filled);
    Ok(bytes)
}
