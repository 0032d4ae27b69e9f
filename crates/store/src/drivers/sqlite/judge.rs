//! Decides at a start whether database, log, mark and checksums belong together. No IO.
//!
//! Invariant: what a power cut or a kill may leave behind is no problem; a lost acknowledged commit is one. With
//! `sync = "full"`, and after the end of a process with `"normal"`, every marked commit must exist; after power loss
//! with `"normal"`, every synced one.

use super::identity::Identity;
use super::log::{Salt, Tail};
use super::mark::{Found, Mark};
use crate::store::Sync;

pub(super) struct Facts {
    /// None if the database file does not exist.
    pub(super) file: Option<Identity>,
    pub(super) boot: Option<[u8; 16]>,
    /// The setting of this start.
    pub(super) sync: Sync,
    /// The starts that the database counts, if it can be read.
    pub(super) epoch: Option<u64>,
    pub(super) mark: Found,
    pub(super) log: LogFacts,
    /// The commits whose pages have checksums.
    pub(super) sums: Option<u64>,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum LogFacts {
    Empty,
    Headless,
    Read { salt: Salt, commits: u64, tail: Tail },
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Judgement {
    /// Why the host must not start; empty if it may.
    pub(super) problems: Vec<String>,
    pub(super) check: Check,
    /// The first mark of this start, without its epoch.
    pub(super) mark: Mark,
    pub(super) sums: SumsUse,
}

/// When the pages of the database are checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Check {
    /// While the host runs.
    Beside,
    /// Before it is ready: the files were copied, moved or changed by another program.
    First,
}

/// What to do with the checksums that exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SumsUse {
    Keep,
    /// Compute all of them again.
    Renew,
}

pub(super) fn judge(facts: &Facts) -> Judgement {
    let file = facts.file.unwrap_or_default();
    let fresh = fresh_mark(facts, file);
    match &facts.mark {
        Found::Damaged => Judgement {
            problems: vec![
                "the commit mark is damaged, so it is not known whether commits are missing"
                    .to_owned(),
            ],
            check: Check::First,
            mark: fresh,
            sums: SumsUse::Renew,
        },
        // An older version of this program, which writes no mark, has used the database since.
        Found::Read(mark) if facts.epoch.is_some_and(|epoch| epoch > mark.epoch) => {
            let check = if mark.file.is_same(&file) { Check::Beside } else { Check::First };
            Judgement { check, ..unmarked(facts, fresh) }
        }
        Found::Read(mark) => marked(facts, mark, file),
        Found::Missing => unmarked(facts, fresh),
    }
}

/// A database that has no mark, or an outdated one: only the log itself can show damage.
fn unmarked(facts: &Facts, mark: Mark) -> Judgement {
    let has_lost_mark =
        matches!(facts.mark, Found::Missing) && facts.sums.is_some_and(|commits| commits > 0);
    let problems = match facts.log {
        // Checksums of commits are written by hosts that write a mark first.
        _ if has_lost_mark => vec![
            "the commit mark is missing, so it is not known whether commits are missing".to_owned(),
        ],
        LogFacts::Read { tail, .. } if facts.sync == Sync::Full && tail.finished_commits > 0 => {
            vec![damaged_log(tail.finished_commits)]
        }
        LogFacts::Headless => vec!["the header of the write-ahead log is damaged".to_owned()],
        _ => Vec::new(),
    };
    Judgement { problems, check: Check::Beside, mark, sums: SumsUse::Renew }
}

fn marked(facts: &Facts, mark: &Mark, file: Identity) -> Judgement {
    if facts.file.is_none() {
        let problems = match mark.commits {
            0 => Vec::new(),
            _ => vec!["the database file is missing".to_owned()],
        };
        let (mark, sums) = (fresh_mark(facts, file), SumsUse::Renew);
        return Judgement { problems, check: Check::Beside, mark, sums };
    }
    let is_copied = !mark.file.is_same(&file);
    let is_same_boot = mark.boot.is_some() && mark.boot == facts.boot;
    let lasts = mark.sync == Sync::Full || is_same_boot;
    let required = if lasts { mark.commits } else { mark.synced };
    // Another program that closes the database last moves the log; the checksums show whether it moved all of it.
    let by_other = matches!(facts.log, LogFacts::Empty) && mark.moved < required;
    let moved = facts.sums.filter(|sums| by_other && *sums >= required);
    let mark = &Mark { moved: moved.unwrap_or(mark.moved), ..*mark };
    let mut problems: Vec<String> = log_problem(facts, mark, required, lasts).into_iter().collect();
    problems.extend(sums_problem(facts, mark));
    if is_copied {
        problems.extend(copy_problem(facts, mark));
    }
    let check = if is_copied || moved.is_some() { Check::First } else { Check::Beside };
    let (mark, sums) = match (problems.is_empty(), facts.sums) {
        (true, Some(_)) => (continued(facts, mark, file), SumsUse::Keep),
        (true, None) => (continued(facts, mark, file), SumsUse::Renew),
        (false, _) => (fresh_mark(facts, file), SumsUse::Renew),
    };
    Judgement { problems, check, mark, sums }
}

fn log_problem(facts: &Facts, mark: &Mark, required: u64, lasts: bool) -> Option<String> {
    let missing = |found: u64| {
        let missing = required.checked_sub(found).filter(|missing| *missing > 0)?;
        Some(format!("{missing} of {required} commits are missing"))
    };
    match facts.log {
        LogFacts::Empty => Some(format!("{}: the write-ahead log is gone", missing(mark.moved)?)),
        LogFacts::Headless => {
            Some(format!("{}: the header of the write-ahead log is damaged", missing(mark.moved)?))
        }
        LogFacts::Read { salt, commits, tail } if salt == mark.salt => {
            match missing(mark.base + commits) {
                Some(missing) => Some(format!("{missing}: the write-ahead log is damaged")),
                None if lasts && tail.finished_commits > 0 => {
                    Some(damaged_log(tail.finished_commits))
                }
                None => None,
            }
        }
        LogFacts::Read { .. } => Some(format!(
            "{}: the write-ahead log does not belong to the database file",
            missing(mark.moved)?
        )),
    }
}

/// Checksums are written before pages are moved, so they cover at least what was moved.
fn sums_problem(facts: &Facts, mark: &Mark) -> Option<String> {
    let sums = facts.sums?;
    let found = match facts.log {
        LogFacts::Read { salt, commits, .. } if salt == mark.salt => Some(mark.base + commits),
        _ => None,
    };
    if sums < mark.moved {
        return Some("the page checksums are older than the commit mark".to_owned());
    }
    found.filter(|found| sums > *found).map(|_| {
        "the write-ahead log and the commit mark are older than the page checksums".to_owned()
    })
}

/// Parts of a copy that were copied at different times.
fn copy_problem(facts: &Facts, mark: &Mark) -> Option<String> {
    match facts.log {
        _ if facts.sums.is_none() => Some("the copy has no page checksums".to_owned()),
        LogFacts::Read { salt, commits, .. } if salt != mark.salt && commits > 0 => {
            Some("the write-ahead log was copied at another time than the commit mark".to_owned())
        }
        _ => None,
    }
}

fn damaged_log(commits: u64) -> String {
    format!("the write-ahead log is damaged: at least {commits} commits cannot be read")
}

fn fresh_mark(facts: &Facts, file: Identity) -> Mark {
    let mut mark = Mark::new(facts.sync, file);
    if let LogFacts::Read { salt, commits, .. } = facts.log {
        (mark.salt, mark.commits) = (salt, commits);
    }
    mark
}

/// The mark after an undamaged start: it counts on.
fn continued(facts: &Facts, old: &Mark, file: Identity) -> Mark {
    let mut mark = Mark { boot: facts.boot, sync: facts.sync, file, ..*old };
    match facts.log {
        LogFacts::Read { salt, commits, .. } if salt == old.salt => {
            mark.commits = old.base + commits;
        }
        LogFacts::Read { salt, commits, .. } => {
            mark.base = old.commits.max(old.moved);
            (mark.salt, mark.moved) = (salt, mark.base);
            mark.commits = mark.base + commits;
        }
        LogFacts::Empty | LogFacts::Headless => {
            (mark.salt, mark.commits, mark.base) = ([0; 2], old.moved, old.moved);
        }
    }
    mark.synced = match facts.sync {
        Sync::Full => mark.commits,
        Sync::Normal => old.synced.min(mark.commits),
    };
    mark
}

#[cfg(test)]
mod tests;
