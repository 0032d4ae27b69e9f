//! Opens a database file with its mark and checksums, and refuses one that is damaged.
//!
//! Invariant: nothing in the folder is changed before the files were judged.

use super::identity::{Identity, boot};
use super::judge::{Check, Facts, Judgement, LogFacts, SumsUse, judge};
use super::keeper::{Keeper, LOG_BYTES_MAX};
use super::log::{Log, Pages};
use super::mark::{Found, Mark, Marker};
use super::scan::{Progress, Scan};
use super::sums::Sums;
use super::{SqliteDriver, refused, take_lock};
use crate::condition::Condition;
use crate::drivers::Driver;
use crate::gate::Gate;
use crate::schema;
use crate::store::{OnLoss, Sync};
use crate::{StoreError, fault};
use rusqlite::Connection;
use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Lines of SQLite's own check that are reported.
const LINES_MAX: usize = 3;

/// A writer and what watches over its files.
pub(crate) struct Guarded {
    pub(crate) writer: SqliteDriver,
    pub(crate) keeper: Keeper,
    /// Kept open as long as any connection: closing it would release SQLite's locks of this process.
    pub(crate) file: Arc<File>,
    /// What is missing or damaged, if the operator has accepted that.
    pub(crate) accepted_loss: Option<String>,
}

/// The files beside the database.
#[derive(Debug, Clone)]
pub(super) struct Files {
    pub(super) database: PathBuf,
    pub(super) log: PathBuf,
    pub(super) mark: PathBuf,
    pub(super) sums: PathBuf,
}

impl Files {
    pub(super) fn of(path: &Path) -> Self {
        let beside = |suffix| PathBuf::from(format!("{}{suffix}", path.display()));
        let database = path.to_owned();
        Self { database, log: beside("-wal"), mark: beside("-mark"), sums: beside("-sums") }
    }
}

/// Opens the database to write; blocks for a check of all pages if it was copied or moved.
pub(crate) fn open(
    path: &Path,
    (sync, on_loss): (Sync, OnLoss),
    condition: Arc<Condition>,
    gate: Arc<Gate>,
) -> Result<Guarded, StoreError> {
    let lock = Arc::new(take_lock(path)?);
    let files = Files::of(path);
    let Looked { facts, log_pages, log_end } = look(&files, sync)?;
    let mut judgement = judge(&facts);
    refuse(&judgement, on_loss)?;
    if let Some((_, bytes)) = log_end {
        cut_log(&files.log, bytes)?;
    }
    let mut writer = SqliteDriver::connect(path, sync, Arc::clone(&lock))?;
    let file = Arc::new(File::open(path).map_err(failed)?);
    judgement.mark.file = Identity::of(path).map_err(failed)?;
    let sums = Sums::open(&files.sums).map_err(failed)?;
    if judgement.sums == SumsUse::Renew {
        sums.clear(judgement.mark.moved).map_err(failed)?;
    }
    let page_bytes = page_bytes(&writer.connection)?;
    if judgement.check == Check::First || !judgement.problems.is_empty() {
        let found = check_all(&writer.connection, &file, page_bytes, (&sums, &log_pages))?;
        judgement.problems.extend(found);
        refuse(&judgement, on_loss)?;
    }
    judgement.mark.epoch = facts.epoch.unwrap_or_default() + 1;
    fault::point("before_mark");
    let first = (judgement.mark, log_end.map_or(0, |(frames, _)| frames));
    let marker = Marker::start(&files.mark, files.log.clone(), first).map_err(failed)?;
    let marker = Arc::new(marker);
    writer.mark_commits(Arc::clone(&marker))?;
    writer.file = Some(Arc::clone(&file));
    let is_unknown = judgement.sums == SumsUse::Renew && facts.file.is_some();
    let mut keeper = Keeper {
        files,
        marker,
        sums,
        file: Arc::clone(&file),
        page_bytes,
        log: None,
        log_pages,
        scan: Some(Scan::default()),
        needs_structure_check: is_unknown && judgement.check == Check::Beside,
        condition,
        gate,
        _lock: lock,
    };
    if log_end.is_some_and(|(_, bytes)| bytes > LOG_BYTES_MAX as u64) {
        keeper.move_log();
    }
    let accepted = (!judgement.problems.is_empty()).then(|| judgement.problems.join("; "));
    Ok(Guarded { writer, keeper, file, accepted_loss: accepted })
}

/// Whether a host could start with the files as they are. Changes nothing; says nothing while a host uses them.
pub(crate) fn inspect(path: &Path, sync: Sync) -> Result<(), StoreError> {
    let Ok(_lock) = take_lock(path) else { return Ok(()) };
    let files = Files::of(path);
    let Looked { facts, log_pages, .. } = look(&files, sync)?;
    let mut judgement = judge(&facts);
    refuse(&judgement, OnLoss::Refuse)?;
    if judgement.sums == SumsUse::Keep
        && let Some(sums) = Sums::view(&files.sums).map_err(failed)?
    {
        let file = File::open(path).map_err(failed)?;
        let page_bytes = page_bytes(&SqliteDriver::reader(path)?.connection)?;
        judgement.problems.extend(compare_all(&file, page_bytes, (&sums, &log_pages))?);
    }
    refuse(&judgement, OnLoss::Refuse)
}

fn refuse(judgement: &Judgement, on_loss: OnLoss) -> Result<(), StoreError> {
    if judgement.problems.is_empty() || on_loss == OnLoss::Accept {
        return Ok(());
    }
    let problems = judgement.problems.join("; ");
    Err(StoreError::Unsound(match judgement.check {
        Check::First => format!("its files were copied or moved, and are not complete: {problems}"),
        Check::Beside => problems,
    }))
}

struct Looked {
    facts: Facts,
    log_pages: Pages,
    /// Frames and bytes of the log up to its last intact commit.
    log_end: Option<(u64, u64)>,
}

fn look(files: &Files, sync: Sync) -> Result<Looked, StoreError> {
    let mut log_pages = Pages::new();
    let (log, log_end) = match Log::open(&files.log).map_err(failed)? {
        Log::Empty => (LogFacts::Empty, None),
        Log::Headless => (LogFacts::Headless, None),
        Log::Readable(mut log) => {
            log.read_on(&mut log_pages).map_err(failed)?;
            let tail = log.tail().map_err(failed)?;
            let facts = LogFacts::Read { salt: log.salt, commits: log.commits, tail };
            (facts, Some((log.frames, log.bytes())))
        }
    };
    let mark = Mark::read(&files.mark).map_err(failed)?;
    let file = std::fs::metadata(&files.database).ok().filter(|file| file.len() > 0);
    let epoch = match (&mark, &file) {
        (Found::Missing, _) | (_, None) => None,
        _ => read_epoch(&files.database),
    };
    let facts = Facts {
        file: file.as_ref().map(Identity::from),
        boot: boot(),
        sync,
        epoch,
        mark,
        log,
        sums: Sums::commits(&files.sums).map_err(failed)?,
    };
    Ok(Looked { facts, log_pages, log_end })
}

/// A damaged database may not have one.
fn read_epoch(path: &Path) -> Option<u64> {
    let mut driver = SqliteDriver::reader(path).ok()?;
    if !driver.has_schema().ok()? {
        return None;
    }
    schema::read_meta(&mut driver, "epoch").ok()?.parse().ok()
}

/// Cuts off what a killed host had not committed, so that no later start takes it for something else.
fn cut_log(path: &Path, bytes: u64) -> Result<(), StoreError> {
    let file = OpenOptions::new().write(true).open(path).map_err(failed)?;
    match file.metadata().map_err(failed)?.len() > bytes {
        true => file.set_len(bytes).map_err(failed),
        false => Ok(()),
    }
}

/// Compares every page, and lets SQLite check how they fit together.
fn check_all(
    connection: &Connection,
    file: &File,
    page_bytes: usize,
    known: (&Sums, &Pages),
) -> Result<Vec<String>, StoreError> {
    tracing::info!("checking the whole database before the start");
    let pages = compare_all(file, page_bytes, known)?;
    let structure = check_structure(connection, "PRAGMA integrity_check(3)");
    Ok(pages.into_iter().chain(structure).collect())
}

/// Compares every page with its checksum.
fn compare_all(
    file: &File,
    page_bytes: usize,
    known: (&Sums, &Pages),
) -> Result<Option<String>, StoreError> {
    let mut scan = Scan::default();
    while scan.step(file, page_bytes, known).map_err(failed)? == Progress::More {}
    Ok(scan.problem())
}

/// What SQLite finds wrong.
pub(super) fn check_structure(connection: &Connection, pragma: &str) -> Option<String> {
    let lines = || -> rusqlite::Result<Vec<String>> {
        let mut statement = connection.prepare(pragma)?;
        let lines = statement.query_map([], |row| row.get(0))?;
        lines.take(LINES_MAX).collect()
    };
    match lines() {
        Ok(lines) if lines == ["ok"] => None,
        Ok(lines) => Some(format!("SQLite reports: {}", lines.join(", ").replace('\n', " "))),
        Err(error) => Some(format!("SQLite reports: {error}")),
    }
}

fn page_bytes(connection: &Connection) -> Result<usize, StoreError> {
    let bytes: i64 =
        connection.pragma_query_value(None, "page_size", |row| row.get(0)).map_err(refused)?;
    usize::try_from(bytes).map_err(|_| StoreError::Damaged("no page size".to_owned()))
}

fn failed(error: std::io::Error) -> StoreError {
    StoreError::Lost(format!("cannot use the files of the database: {error}"))
}
