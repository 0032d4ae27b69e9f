//! Keeps the files of a database while a host runs: checkpoints, checksums of pages, the mark, and whether the files
//! still exist. One thread does all of it.
//!
//! Invariant: before a page is moved into the database file its checksum is synced, and before the log may be
//! overwritten the mark says that all of it was moved.

use super::guard::{Files, check_structure};
use super::log::{Log, LogReader, Pages};
use super::mark::{Mark, Marker};
use super::scan::{Progress, Scan};
use super::sums::Sums;
use super::{open_existing, refused};
use crate::StoreError;
use crate::condition::Condition;
use crate::gate::Gate;
use rusqlite::Connection;
use std::fs::File;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

/// Size of the log from which on it is moved into the database.
const LOG_BYTES: i64 = 4 * 1024 * 1024;
/// The log is truncated to this size, since writing into an existing file is faster. Above it the writer is paused
/// for a moment so that the log can restart: under constant load it would grow without bound.
pub(super) const LOG_BYTES_MAX: i64 = 64 * 1024 * 1024;
/// How long the writer is paused for readers at most.
const RESTART_PATIENCE: Duration = Duration::from_millis(20);
/// Between two looks at mark, log and files.
const TICK: Duration = Duration::from_millis(500);
/// Between two steps of a check of the pages.
const SCAN_PAUSE: Duration = Duration::from_millis(10);
/// Between two checks of all pages.
const SCAN_EVERY: Duration = Duration::from_secs(24 * 60 * 60);
/// Time without a commit after which the whole log is moved into the database.
const QUIET: Duration = Duration::from_secs(5);

pub(crate) struct Keeper {
    pub(super) files: Files,
    pub(super) marker: Arc<Marker>,
    pub(super) sums: Sums,
    pub(super) file: Arc<File>,
    pub(super) page_bytes: usize,
    pub(super) log: Option<LogReader>,
    /// The pages of this generation of the log.
    pub(super) log_pages: Pages,
    /// A check of the pages that has not ended.
    pub(super) scan: Option<Scan>,
    /// Whether checksums do not cover the past, so that SQLite has to look.
    pub(super) needs_structure_check: bool,
    pub(super) condition: Arc<Condition>,
    pub(super) gate: Arc<Gate>,
    /// No other host may begin before the last checkpoint has ended.
    pub(super) _lock: Arc<File>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum After {
    /// The log is written from its beginning again.
    Restart,
    /// The log is empty.
    Truncate,
}

impl Keeper {
    /// Works until the writer has ended, then moves the whole log.
    pub(crate) fn run(mut self, writer: &Receiver<()>) {
        let mut counted = None;
        let mut changed_at = Some(Instant::now());
        let (mut ticked_at, mut scanned_at) = (Instant::now(), Instant::now());
        loop {
            let pause = if self.scan.is_some() { SCAN_PAUSE } else { TICK };
            match writer.recv_timeout(pause) {
                Err(RecvTimeoutError::Disconnected) => return self.finish(),
                Ok(()) | Err(RecvTimeoutError::Timeout) => {}
            }
            if self.scan.is_some() {
                self.scan_some();
                scanned_at = Instant::now();
            } else if scanned_at.elapsed() >= SCAN_EVERY {
                self.scan = Some(Scan::default());
            }
            if ticked_at.elapsed() < TICK {
                continue;
            }
            ticked_at = Instant::now();
            if self.note_gone() {
                continue;
            }
            let commits = self.marker.position().0.commits;
            if counted.replace(commits) != Some(commits) {
                changed_at = Some(Instant::now());
                log_failure(self.marker.sync().map_err(failed));
                log_failure(self.checkpoint_large());
            } else if changed_at.is_some_and(|at| at.elapsed() >= QUIET) {
                changed_at = None;
                log_failure(self.checkpoint_all());
            }
        }
    }

    /// Moves a log that hosts left behind which were killed too soon to move it: every start reads the whole log.
    pub(super) fn move_log(&mut self) {
        log_failure(self.checkpoint_all());
    }

    fn finish(mut self) {
        if self.note_gone() {
            return;
        }
        log_failure(self.checkpoint_all());
    }

    /// Whether the database is gone; nothing is done with its path then.
    fn note_gone(&self) -> bool {
        if !self.marker.files_are_whole(&self.files.database) {
            self.condition.note(&super::gone());
        }
        self.condition.refuse_gone().is_err()
    }

    fn scan_some(&mut self) {
        if self.needs_structure_check {
            self.needs_structure_check = false;
            let opened = open_existing(&self.files.database);
            let found =
                opened.map(|connection| check_structure(&connection, "PRAGMA quick_check(3)"));
            if let Ok(Some(problem)) = found {
                self.condition.note(&StoreError::Damaged(problem));
            }
        }
        let Some(mut scan) = self.scan.take() else { return };
        match scan.step(&self.file, self.page_bytes, (&self.sums, &self.log_pages)) {
            Ok(Progress::More) => self.scan = Some(scan),
            Ok(Progress::Done) => self.end_scan(&scan),
            Err(error) => {
                let problem = format!("its pages cannot be read: {error}");
                self.condition.note(&StoreError::Damaged(problem));
            }
        }
    }

    fn end_scan(&self, scan: &Scan) {
        let checked = scan.checked;
        if let Some(problem) = scan.problem() {
            return self.condition.note(&StoreError::Damaged(problem));
        }
        tracing::debug!(pages = checked, "database pages match their checksums");
        self.condition.set_check(format!("{checked} pages match their checksums"));
    }

    /// Moves committed pages of a log that has grown into the database while the writer goes on; the writer waits
    /// for the last pages only if the log is far too large.
    fn checkpoint_large(&mut self) -> Result<(), StoreError> {
        let connection = open_existing(&self.files.database)?;
        let (_, pages, moved) = checkpoint(&connection, "NOOP")?;
        let bytes = |pages: i64| pages * self.page_bytes as i64;
        if bytes(pages - moved) <= LOG_BYTES {
            return Ok(());
        }
        let is_too_large = bytes(pages) > LOG_BYTES_MAX;
        self.move_some(&connection)?;
        if is_too_large {
            // A long reader is not waited for: the log grows then.
            self.move_all(&connection, After::Restart)?;
        }
        Ok(())
    }

    /// Moves the whole log into the database and empties it. What a longer read holds back is left for the next time.
    fn checkpoint_all(&mut self) -> Result<(), StoreError> {
        let connection = open_existing(&self.files.database)?;
        // Most of the work is done without blocking others.
        self.move_some(&connection)?;
        self.move_all(&connection, After::Truncate)
    }

    /// While the snapshot is open, SQLite moves nothing that was committed after it, and does not restart the log.
    fn move_some(&mut self, connection: &Connection) -> Result<(), StoreError> {
        let snapshot = open_existing(&self.files.database)?;
        let (mark, frames) = {
            let _pause = self.gate.pause();
            snapshot.execute_batch("BEGIN").map_err(refused)?;
            snapshot
                .query_row("SELECT count(*) FROM sqlite_master", [], |_| Ok(()))
                .map_err(refused)?;
            self.marker.position()
        };
        self.note_pages(&mark, frames)?;
        let (_, pages, moved) = checkpoint(connection, "PASSIVE")?;
        match pages == moved && u64::try_from(moved) == Ok(frames) {
            true => self.note_moved(mark.commits),
            false => Ok(()),
        }
    }

    /// Pauses the writer and moves the rest.
    fn move_all(&mut self, connection: &Connection, after: After) -> Result<(), StoreError> {
        let gate = Arc::clone(&self.gate);
        let _pause = gate.pause();
        let (mark, frames) = self.marker.position();
        self.note_pages(&mark, frames)?;
        connection.busy_timeout(RESTART_PATIENCE).map_err(refused)?;
        let (busy, ..) = checkpoint(connection, "RESTART")?;
        if busy != 0 {
            return Ok(());
        }
        self.note_moved(mark.commits)?;
        match after {
            After::Restart => Ok(()),
            After::Truncate => {
                // Even if it fails: the log may be empty then.
                self.marker.note_truncated();
                checkpoint(connection, "TRUNCATE").map(drop)
            }
        }
    }

    /// Syncs the checksums of all pages that the log has up to a commit.
    fn note_pages(&mut self, mark: &Mark, frames: u64) -> Result<(), StoreError> {
        if self.log.as_ref().is_none_or(|log| log.salt != mark.salt) {
            self.log = match Log::open(&self.files.log).map_err(failed)? {
                Log::Readable(log) if log.salt == mark.salt => Some(log),
                _ => None,
            };
            self.log_pages.clear();
        }
        let Some(log) = &mut self.log else { return Ok(()) };
        let mut pages = log.read_to(frames).map_err(failed)?;
        // A checksum must not last longer than its page.
        log.sync().map_err(failed)?;
        self.sums.write(&pages).map_err(failed)?;
        self.sums.set_commits(mark.commits).map_err(failed)?;
        self.sums.sync().map_err(failed)?;
        self.log_pages.append(&mut pages);
        Ok(())
    }

    fn note_moved(&self, commits: u64) -> Result<(), StoreError> {
        let noted = self.marker.update(|mark| {
            mark.moved = mark.moved.max(commits);
            mark.synced = mark.synced.max(commits).min(mark.commits);
        });
        noted.and_then(|()| self.marker.sync()).map_err(failed)
    }
}

/// Whether something held it up, the frames of the log, and how many of them are in the database.
fn checkpoint(connection: &Connection, mode: &str) -> Result<(i64, i64, i64), StoreError> {
    let row = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
    connection.query_row(&format!("PRAGMA wal_checkpoint({mode})"), [], row).map_err(refused)
}

fn log_failure(work: Result<(), StoreError>) {
    if let Err(error) = work {
        tracing::warn!(%error, "checkpoint of the write-ahead log failed");
    }
}

fn failed(error: std::io::Error) -> StoreError {
    StoreError::Unavailable(error.to_string())
}
