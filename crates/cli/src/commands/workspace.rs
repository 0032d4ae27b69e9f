//! `greenroom workspace`: the workspaces of external harnesses.
//!
//! Invariant: harnesses write these folders, so nothing in them is executed and no link in them is followed.

use crate::client::DEFAULT_DATA;
use crate::failure::{Exit, Failure, Outcome};
use crate::output;
use crate::wiring::harness::FOLDER;
use greenroom_acp_agent::workspace::{CHANGES, RECORD, Record, WORKSPACES};
use greenroom_config::{self as config, env};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Largest record and largest diff that are read.
const RECORD_BYTES_MAX: u64 = 1 << 20;
const DIFF_BYTES_MAX: u64 = 32 << 20;
/// Files that are counted for the size of a workspace.
const FILES_MAX: usize = 200_000;

/// List the workspaces of external harnesses
#[derive(Debug, clap::Args)]
pub struct ListArgs {
    /// Data folder of the host [default: ./greenroom-data, or `GREENROOM_DATA`]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Show one workspace
#[derive(Debug, clap::Args)]
pub struct OneArgs {
    /// Id of the workspace, or the beginning of it
    id: String,
    #[command(flatten)]
    options: ListArgs,
}

#[derive(Debug, clap::Args)]
pub struct RemoveArgs {
    /// Ids of workspaces, or the beginnings of them
    #[arg(required = true)]
    ids: Vec<String>,
    #[command(flatten)]
    options: ListArgs,
}

/// One workspace on disk.
struct Found {
    id: String,
    runner: String,
    root: PathBuf,
    record: Record,
}

pub fn list(args: &ListArgs) -> Outcome {
    let found = all(args)?;
    if args.json {
        let items: Vec<Value> = found.iter().map(Found::json).collect();
        output::print_json(&json!({"items": items}))?;
        return Ok(Exit::Ok);
    }
    if found.is_empty() {
        output::note("no workspaces");
        return Ok(Exit::Ok);
    }
    let head = ["ID", "RUNNER", "AGENT", "CONVERSATION", "KIND", "SIZE", "CHANGED"];
    let head = head.map(str::to_owned).to_vec();
    let rows = found.iter().map(|one| {
        let owner = &one.record.owner;
        let conversation = match &owner.thread_id {
            Some(thread) => format!("{} / {thread}", owner.conversation_id),
            None => owner.conversation_id.clone(),
        };
        let cells = [&one.id, &one.runner, &owner.agent, &conversation, &one.record.kind];
        let mut row: Vec<String> = cells.into_iter().map(|text| output::plain(text)).collect();
        row.extend([output::bytes(one.size()), one.changed_at()]);
        row
    });
    output::print(&output::table(&std::iter::once(head).chain(rows).collect::<Vec<_>>()))?;
    Ok(Exit::Ok)
}

pub fn show(args: &OneArgs) -> Outcome {
    let one = find(&args.options, &args.id)?;
    output::print_pretty(&one.json())?;
    Ok(Exit::Ok)
}

pub fn diff(args: &OneArgs) -> Outcome {
    let one = find(&args.options, &args.id)?;
    if one.record.kind != "git" {
        let message = format!("workspace `{}` is no `git` workspace", one.id);
        return Err(Failure::new(message).exit(Exit::Usage));
    }
    // The runner compares at the end of each run: git would execute what the harness configured.
    let diff = config::read_plain(&one.root.join(CHANGES), DIFF_BYTES_MAX).unwrap_or_default();
    let diff = String::from_utf8_lossy(&diff);
    if args.options.json {
        output::print_json(&json!({"id": one.id, "branch": one.record.branch,
            "base": one.record.base, "diff": diff}))?;
    } else {
        output::print(&diff)?;
    }
    Ok(Exit::Ok)
}

pub fn remove(args: &RemoveArgs) -> Outcome {
    let found: Result<Vec<Found>, Failure> =
        args.ids.iter().map(|id| find(&args.options, id)).collect();
    let mut removed = Vec::new();
    for one in found? {
        std::fs::remove_dir_all(&one.root).map_err(|error| {
            let context = format!("cannot remove `{}`", one.root.display());
            Failure::from(anyhow::Error::new(error).context(context))
        })?;
        if !args.options.json {
            let kept = match one.record.kind.as_str() {
                "folder" => format!("; `{}` itself is unchanged", one.record.path.display()),
                _ => String::new(),
            };
            output::note(&output::plain(&format!("removed workspace `{}`{kept}", one.id)));
        }
        removed.push(one.id);
    }
    if args.options.json {
        output::print_json(&json!({"removed": removed}))?;
    }
    Ok(Exit::Ok)
}

fn all(args: &ListArgs) -> Result<Vec<Found>, Failure> {
    let data = args.data.clone().or_else(|| env::get(env::DATA).map(PathBuf::from));
    let data = data.unwrap_or_else(|| PathBuf::from(DEFAULT_DATA));
    if !data.is_dir() {
        let message = format!("`{}` is not a data folder", data.display());
        return Err(Failure::new(message).exit(Exit::NotFound).hint("name it with `--data`"));
    }
    let mut found: Vec<Found> = Vec::new();
    for runner in folders(&data.join(FOLDER)) {
        let name = name_of(&runner);
        for root in folders(&runner.join(WORKSPACES)) {
            let text = config::read_plain(&root.join(RECORD), RECORD_BYTES_MAX).unwrap_or_default();
            if let Ok(record) = serde_json::from_slice::<Record>(&text) {
                found.push(Found { id: name_of(&root), runner: name.clone(), root, record });
            }
        }
    }
    found.sort_by(|one, other| (&one.runner, &one.id).cmp(&(&other.runner, &other.id)));
    Ok(found)
}

fn find(args: &ListArgs, id: &str) -> Result<Found, Failure> {
    let mut matching: Vec<Found> =
        all(args)?.into_iter().filter(|one| !id.is_empty() && one.id.starts_with(id)).collect();
    match (matching.pop(), matching.len()) {
        (Some(one), 0) => Ok(one),
        (Some(_), _) => Err(Failure::new(format!("several workspaces begin with `{id}`"))
            .exit(Exit::Usage)
            .hint("`greenroom workspace list` shows their ids")),
        (None, _) => Err(Failure::new(format!("there is no workspace `{id}`"))
            .exit(Exit::NotFound)
            .hint("`greenroom workspace list` shows those that exist")),
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

impl Found {
    fn json(&self) -> Value {
        let owner = &self.record.owner;
        json!({"id": self.id, "runner": self.runner, "agent": owner.agent,
            "conversation_id": owner.conversation_id, "thread_id": owner.thread_id,
            "workspace_id": owner.workspace_id, "kind": self.record.kind,
            "path": self.record.path, "branch": self.record.branch, "base": self.record.base,
            "size_bytes": self.size(), "changed_at": self.changed_at()})
    }

    fn size(&self) -> u64 {
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

    fn changed_at(&self) -> String {
        let record = std::fs::symlink_metadata(self.root.join(RECORD));
        let changed = record.and_then(|file| file.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
        jiff::Timestamp::try_from(changed).map(|at| format!("{at:.3}")).unwrap_or_default()
    }
}
