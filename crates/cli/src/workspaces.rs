//! The workspaces of external harnesses on disk: found, measured, removed, and forgotten when nobody uses them.
//!
//! Invariant: harnesses write these folders, so nothing in them is executed and no link in them is followed. A
//! workspace that a run uses is not removed.

use crate::wiring::harness::FOLDER;
use greenroom_acp_agent::workspace::{RECORD, Record, WORKSPACES, take_away};
use greenroom_config::{self as config, Retention};
use greenroom_runtime::supervisor::remove_all;
use serde_json::{Value, json};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

/// Largest record.
const RECORD_BYTES_MAX: u64 = 1 << 20;
/// Files that are counted for the size of a workspace.
const FILES_MAX: usize = 200_000;
/// The ending of a folder that is being removed.
const REMOVED: &str = ".removed";

/// One workspace.
pub(crate) struct Workspace {
    pub(crate) id: String,
    pub(crate) runner: String,
    pub(crate) root: PathBuf,
    pub(crate) record: Record,
}

/// All workspaces of a data folder, by runner and id.
pub(crate) fn all(data: &Path) -> Vec<Workspace> {
    let mut found: Vec<Workspace> = Vec::new();
    for runner in folders(&data.join(FOLDER)) {
        let name = name_of(&runner);
        for root in folders(&runner.join(WORKSPACES)) {
            if name_of(&root).ends_with(REMOVED) {
                continue;
            }
            let text = config::read_plain(&root.join(RECORD), RECORD_BYTES_MAX).unwrap_or_default();
            if let Ok(record) = serde_json::from_slice::<Record>(&text) {
                found.push(Workspace { id: name_of(&root), runner: name.clone(), root, record });
            }
        }
    }
    found.sort_by(|one, other| (&one.runner, &one.id).cmp(&(&other.runner, &other.id)));
    found
}

impl Workspace {
    pub(crate) fn json(&self) -> Value {
        let owner = &self.record.owner;
        json!({"id": self.id, "runner": self.runner, "agent": owner.agent,
            "conversation_id": owner.conversation_id, "thread_id": owner.thread_id,
            "workspace_id": owner.workspace_id, "kind": self.record.kind,
            "path": self.record.path, "repository": self.record.repository,
            "branch": self.record.branch, "base": self.record.base,
            "size_bytes": self.size(), "used_at": self.used_at()})
    }

    pub(crate) fn size(&self) -> u64 {
        let (mut open, mut bytes, mut files) = (vec![self.root.clone()], 0, 0);
        while let Some(folder) = open.pop() {
            for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
                files += 1;
                let Ok(kind) = entry.file_type() else { continue };
                if kind.is_dir() && files < FILES_MAX {
                    open.push(entry.path());
                } else if kind.is_file() {
                    bytes += entry.metadata().map_or(0, |file| file.len());
                }
            }
        }
        bytes
    }

    /// When the last run began.
    pub(crate) fn used_at(&self) -> String {
        jiff::Timestamp::try_from(self.used()).map(|at| format!("{at:.3}")).unwrap_or_default()
    }

    fn used(&self) -> SystemTime {
        let record = std::fs::symlink_metadata(self.root.join(RECORD));
        record.and_then(|file| file.modified()).unwrap_or_else(|_| SystemTime::now())
    }

    /// Removes it with everything in it; false if a run uses it.
    pub(crate) fn remove(&self) -> io::Result<bool> {
        let Some(away) = take_away(&self.root)? else { return Ok(false) };
        match remove_all(&away) {
            // The host may help.
            Err(error) if away.symlink_metadata().is_ok() => Err(error.into()),
            _ => Ok(true),
        }
    }
}

/// Removes workspaces that are unused for too long, as often as other expired facts.
#[derive(Debug, Default)]
pub(crate) struct Keeper {
    last: Option<Instant>,
}

impl Keeper {
    /// Begins a pass in the background if one is due.
    pub(crate) fn look(&mut self, data: &Path, retention: &Retention) {
        if self.last.is_some_and(|last| last.elapsed() < retention.collect_every) {
            return;
        }
        self.last = Some(Instant::now());
        let (data, unused_max) = (data.to_owned(), retention.unused_workspaces());
        // A pass may be cut off by the end of the host: the next one goes on.
        tokio::task::spawn_blocking(move || {
            remove_left(&data);
            if let Some(unused_max) = unused_max {
                remove_unused(&data, unused_max, SystemTime::now());
            }
        });
    }
}

fn remove_unused(data: &Path, unused_max: Duration, now: SystemTime) {
    let is_unused =
        |one: &Workspace| now.duration_since(one.used()).is_ok_and(|unused| unused >= unused_max);
    for one in all(data).into_iter().filter(is_unused) {
        let (id, runner) = (&one.id, &one.runner);
        match one.remove() {
            Ok(true) => tracing::info!(%id, %runner, "removed an unused workspace"),
            Ok(false) => {}
            Err(error) => tracing::warn!(%id, %runner, %error, "cannot remove a workspace"),
        }
    }
}

/// Removes what an interrupted removal left.
fn remove_left(data: &Path) {
    for runner in folders(&data.join(FOLDER)) {
        let left = folders(&runner.join(WORKSPACES)).into_iter();
        for root in left.filter(|root| name_of(root).ends_with(REMOVED)) {
            if let Err(error) = remove_all(&root) {
                tracing::warn!(folder = %root.display(), %error, "cannot remove a workspace");
            }
        }
    }
}

/// The folders in a folder, without links.
fn folders(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let real = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    real.map(|entry| entry.path()).collect()
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
