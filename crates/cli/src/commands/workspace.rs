//! `greenroom workspace`: the workspaces of external harnesses.
//!
//! Invariant: harnesses write these folders, so nothing in them is executed and no link in them is followed.

use crate::client::DEFAULT_DATA;
use crate::failure::{Exit, Failure, Outcome};
use crate::output;
use crate::workspaces::{self, Workspace};
use greenroom_acp_agent::workspace::CHANGES;
use greenroom_config::{self as config, env};
use serde_json::{Value, json};
use std::path::PathBuf;

/// Largest diff that is read.
const DIFF_BYTES_MAX: u64 = 32 << 20;

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

pub fn list(args: &ListArgs) -> Outcome {
    let found = all(args)?;
    if args.json {
        let items: Vec<Value> = found.iter().map(Workspace::json).collect();
        output::print_json(&json!({"items": items}))?;
        return Ok(Exit::Ok);
    }
    if found.is_empty() {
        output::note("no workspaces");
        return Ok(Exit::Ok);
    }
    let head = ["ID", "RUNNER", "AGENT", "CONVERSATION", "KIND", "SIZE", "USED"];
    let head = head.map(str::to_owned).to_vec();
    let rows = found.iter().map(|one| {
        let owner = &one.record.owner;
        let conversation = match &owner.thread_id {
            Some(thread) => format!("{} / {thread}", owner.conversation_id),
            None => owner.conversation_id.clone(),
        };
        let cells = [&one.id, &one.runner, &owner.agent, &conversation, &one.record.kind];
        let mut row: Vec<String> = cells.into_iter().map(|text| output::plain(text)).collect();
        row.extend([output::bytes(one.size()), one.used_at()]);
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
    let found: Result<Vec<Workspace>, Failure> =
        args.ids.iter().map(|id| find(&args.options, id)).collect();
    let mut removed = Vec::new();
    for one in found? {
        let done = one.remove().map_err(|error| {
            let context = format!("cannot remove `{}`", one.root.display());
            Failure::from(anyhow::Error::new(error).context(context))
        })?;
        if !done {
            let message = format!("a run uses workspace `{}`", one.id);
            return Err(Failure::new(message).hint("wait for the end of the run, or cancel it"));
        }
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

fn all(args: &ListArgs) -> Result<Vec<Workspace>, Failure> {
    let data = args.data.clone().or_else(|| env::get(env::DATA).map(PathBuf::from));
    let data = data.unwrap_or_else(|| PathBuf::from(DEFAULT_DATA));
    if !data.is_dir() {
        let message = format!("`{}` is not a data folder", data.display());
        return Err(Failure::new(message).exit(Exit::NotFound).hint("name it with `--data`"));
    }
    Ok(workspaces::all(&std::path::absolute(data)?))
}

fn find(args: &ListArgs, id: &str) -> Result<Workspace, Failure> {
    let mut matching: Vec<Workspace> =
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
