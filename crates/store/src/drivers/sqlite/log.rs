//! Reads SQLite's write-ahead log as its recovery does (<https://sqlite.org/walformat.html>).
//!
//! Invariant: a commit counts only if its frames and all frames before it are intact.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::path::Path;

const HEADER_BYTES: usize = 32;
const FRAME_HEADER_BYTES: usize = 24;
/// The last bit says whether checksums are over big-endian numbers.
const MAGIC: u32 = 0x377f_0682;

/// Identifies one generation of the log: every restart of the log at its beginning chooses another.
pub(super) type Salt = [u32; 2];

/// Page numbers with the checksums of their newest committed content.
pub(super) type Pages = BTreeMap<u32, u32>;

pub(super) enum Log {
    /// No log, or one without a header.
    Empty,
    /// Its header is damaged, so SQLite would ignore it.
    Headless,
    Readable(LogReader),
}

pub(super) struct LogReader {
    file: File,
    pub(super) salt: Salt,
    page_bytes: usize,
    is_big_endian: bool,
    /// Frames up to the last intact commit.
    pub(super) frames: u64,
    /// Intact commits.
    pub(super) commits: u64,
    /// Checksum of everything before the next frame to read.
    sum: [u32; 2],
}

/// Frames of this generation behind the first one that is not intact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Tail {
    /// Commits that are followed by more frames: whoever wrote those had finished these.
    pub(super) finished_commits: u64,
}

struct Frame {
    page: u32,
    is_commit: bool,
    salt: Salt,
    sum: [u32; 2],
}

impl Log {
    pub(super) fn open(path: &Path) -> io::Result<Log> {
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Log::Empty),
            Err(error) => return Err(error),
        };
        let mut header = [0; HEADER_BYTES];
        match file.read_exact_at(&mut header, 0) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(Log::Empty),
            Err(error) => return Err(error),
        }
        let magic = number(&header, 0);
        let is_big_endian = magic & 1 == 1;
        let page_bytes = number(&header, 8) as usize;
        let sum = add([0, 0], &header[..24], is_big_endian);
        let is_intact = magic & !1 == MAGIC
            && sum == [number(&header, 24), number(&header, 28)]
            && page_bytes.is_power_of_two()
            && (512..=65_536).contains(&page_bytes);
        if !is_intact {
            return Ok(Log::Headless);
        }
        let salt = [number(&header, 16), number(&header, 20)];
        let reader =
            LogReader { file, salt, page_bytes, is_big_endian, frames: 0, commits: 0, sum };
        Ok(Log::Readable(reader))
    }
}

impl LogReader {
    /// Reads on up to the last intact commit, and notes the pages.
    pub(super) fn read_on(&mut self, pages: &mut Pages) -> io::Result<()> {
        let (mut frames, mut sum) = (self.frames, self.sum);
        let mut open = Vec::new();
        let mut bytes = vec![0; self.frame_bytes()];
        while let Some(frame) = self.frame(frames, &mut bytes)? {
            let content = &bytes[FRAME_HEADER_BYTES..];
            sum = add(sum, &bytes[..8], self.is_big_endian);
            sum = add(sum, content, self.is_big_endian);
            if frame.salt != self.salt || frame.sum != sum || frame.page == 0 {
                break;
            }
            frames += 1;
            open.push((frame.page, crc32fast::hash(content)));
            if frame.is_commit {
                pages.extend(open.drain(..));
                (self.frames, self.sum) = (frames, sum);
                self.commits += 1;
            }
        }
        Ok(())
    }

    /// Reads on up to a frame that is known to be committed, without verifying it: the newest content of every page.
    pub(super) fn read_to(&mut self, frames: u64) -> io::Result<Pages> {
        let mut newest = BTreeMap::new();
        let mut header = [0; FRAME_HEADER_BYTES];
        for index in self.frames..frames {
            self.file.read_exact_at(&mut header, self.at(index))?;
            newest.insert(number(&header, 0), index);
        }
        let mut content = vec![0; self.page_bytes];
        let mut pages = Pages::new();
        for (page, index) in newest {
            self.file.read_exact_at(&mut content, self.at(index) + FRAME_HEADER_BYTES as u64)?;
            pages.insert(page, crc32fast::hash(&content));
        }
        self.frames = frames;
        Ok(pages)
    }

    /// What follows the last intact commit.
    pub(super) fn tail(&self) -> io::Result<Tail> {
        let (mut commits, mut finished) = (0, 0);
        let mut bytes = vec![0; self.frame_bytes()];
        let mut frames = self.frames;
        while let Some(frame) = self.frame(frames, &mut bytes)? {
            frames += 1;
            if frame.salt != self.salt {
                continue;
            }
            finished = commits;
            commits += u64::from(frame.is_commit);
        }
        Ok(Tail { finished_commits: finished })
    }

    /// Length of the file up to the last intact commit.
    pub(super) fn bytes(&self) -> u64 {
        self.at(self.frames)
    }

    fn at(&self, index: u64) -> u64 {
        HEADER_BYTES as u64 + index * self.frame_bytes() as u64
    }

    pub(super) fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn frame_bytes(&self) -> usize {
        FRAME_HEADER_BYTES + self.page_bytes
    }

    fn frame(&self, index: u64, bytes: &mut [u8]) -> io::Result<Option<Frame>> {
        match self.file.read_exact_at(bytes, self.at(index)) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(None),
            Err(error) => return Err(error),
        }
        Ok(Some(Frame {
            page: number(bytes, 0),
            is_commit: number(bytes, 4) != 0,
            salt: [number(bytes, 8), number(bytes, 12)],
            sum: [number(bytes, 16), number(bytes, 20)],
        }))
    }
}

/// The generation that a log file holds, and the bytes of so many frames. Fails if it has no header: something else
/// has cut or overwritten it.
pub(super) fn read_salt(file: &File, frames: u64) -> io::Result<(Salt, u64)> {
    let mut header = [0; 24];
    file.read_exact_at(&mut header, 0)?;
    if number(&header, 0) & !1 != MAGIC {
        return Err(io::Error::new(ErrorKind::InvalidData, "the write-ahead log was cut"));
    }
    let frame_bytes = FRAME_HEADER_BYTES as u64 + u64::from(number(&header, 8));
    let salt = [number(&header, 16), number(&header, 20)];
    Ok((salt, HEADER_BYTES as u64 + frames * frame_bytes))
}

fn number(bytes: &[u8], at: usize) -> u32 {
    let mut four = [0; 4];
    four.copy_from_slice(&bytes[at..at + 4]);
    u32::from_be_bytes(four)
}

fn add([mut one, mut two]: [u32; 2], bytes: &[u8], is_big_endian: bool) -> [u32; 2] {
    for pair in bytes.chunks_exact(8) {
        let (mut first, mut second) = (number(pair, 0), number(pair, 4));
        if !is_big_endian {
            (first, second) = (first.swap_bytes(), second.swap_bytes());
        }
        one = one.wrapping_add(first).wrapping_add(two);
        two = two.wrapping_add(second).wrapping_add(one);
    }
    [one, two]
}
