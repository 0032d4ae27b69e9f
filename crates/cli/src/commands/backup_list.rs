//! `greenroom backup list`: the archives in a folder and their state.

use crate::backup::archive::{Archive, ArchiveError};
use crate::backup::progress::{Progress, size};
use crate::failure::{Exit, Failure, Outcome};
use crate::{output, times};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// List backups with their time, size and contents
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A backup is `complete` if its end is present, and `verified` if all checksums match.
Exits with 1 if a backup is damaged or incomplete.

Examples:
  greenroom backup list
  greenroom backup list /var/backups/greenroom --verify --json")]
pub struct Args {
    /// Folder with backups, or one backup [default: .]
    #[arg(value_name = "PATH", default_value = ".", hide_default_value = true)]
    path: PathBuf,
    /// Read every backup completely and verify its checksums
    #[arg(long)]
    verify: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> Outcome {
    let unreadable = |error: std::io::Error| {
        let context = format!("cannot read `{}`", args.path.display());
        Failure::from(anyhow::Error::new(error).context(context)).exit(Exit::NotFound)
    };
    let mut progress = Progress::new();
    let mut items = Vec::new();
    if args.path.is_dir() {
        for file in archives(&args.path).map_err(unreadable)? {
            items.extend(look(&file, Named::ByFolder, args, &mut progress));
        }
    } else {
        std::fs::metadata(&args.path).map_err(unreadable)?;
        items.extend(look(&args.path, Named::ByUser, args, &mut progress));
    }
    let is_well = items.iter().all(|item| item["problem"].is_null());
    if args.json {
        output::print_json(&json!({"items": items}))?;
    } else if items.is_empty() {
        output::note("no backups found");
    } else {
        let head = [
            "CREATED",
            "SIZE",
            "STATE",
            "SCHEMA",
            "DATABASE",
            "EVENTS",
            "RUNS",
            "ARTIFACTS",
            "FILE",
        ];
        let head = head.map(str::to_owned).to_vec();
        let rows = items.iter().map(row);
        output::print(&output::table(&std::iter::once(head).chain(rows).collect::<Vec<_>>()))?;
        for problem in items.iter().filter_map(|item| item["problem"].as_str()) {
            output::note(&format!("note: {problem}"));
        }
    }
    Ok(if is_well { Exit::Ok } else { Exit::Failure })
}

/// How a file was selected.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Named {
    ByUser,
    ByFolder,
}

/// Files of the folder that may be backups, sorted by name.
fn archives(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let is_part = name.starts_with("greenroom-backup-") && name.ends_with(".tar.part");
        if (name.ends_with(".tar") || is_part) && path.is_file() {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// The entry of a file; `None` for a file in a folder that is not a backup.
fn look(file: &Path, named: Named, args: &Args, progress: &mut Progress) -> Option<Value> {
    let bytes = std::fs::metadata(file).map_or(0, |about| about.len());
    let bad = |error: &ArchiveError| {
        let state = match error {
            ArchiveError::Incomplete(_) => "incomplete",
            ArchiveError::NotABackup(_) => "not a backup",
            ArchiveError::NewerFormat { .. } => "newer",
            ArchiveError::Damaged { .. } => "damaged",
            ArchiveError::Io { .. } => "unreadable",
        };
        json!({"file": file, "bytes": bytes, "state": state, "problem": error.to_string()})
    };
    let archive = match Archive::open(file) {
        Ok(archive) => archive,
        Err(ArchiveError::NotABackup(_)) if named == Named::ByFolder => return None,
        Err(error) => return Some(bad(&error)),
    };
    let state = match args.verify {
        true => {
            let shown = file.display();
            let checked = archive.verify(&mut |read| {
                progress.update(|| format!("{shown}: {} of {}", size(read), size(bytes)));
            });
            if let Err(error) = checked {
                return Some(bad(&error));
            }
            progress.done(&format!("{shown}: verified"));
            "verified"
        }
        false => "complete",
    };
    let manifest = &archive.manifest;
    Some(json!({"file": file, "bytes": bytes, "state": state, "created_at": manifest.created_at,
        "version": manifest.version, "schema": manifest.database.schema,
        "database": manifest.database.kind, "rows": manifest.rows(),
        "events": manifest.rows_of("events"), "runs": manifest.rows_of("runs"),
        "artifacts": manifest.artifacts.count, "artifact_bytes": manifest.artifacts.bytes,
        "problem": null}))
}

fn row(item: &Value) -> Vec<String> {
    let text = |key: &str| item[key].as_str().unwrap_or("-").to_owned();
    let number = |key: &str| item[key].as_i64().map_or_else(|| "-".to_owned(), |n| n.to_string());
    vec![
        times::short(&text("created_at")),
        size(item["bytes"].as_u64().unwrap_or(0)),
        text("state"),
        number("schema"),
        text("database"),
        number("events"),
        number("runs"),
        number("artifacts"),
        text("file"),
    ]
}
