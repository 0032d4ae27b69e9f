//! `greenroom backup restore`: restores a host from an archive.
//!
//! Invariant: the whole archive is verified before anything is written; nothing is overwritten. An unfinished restore
//! leaves a mark in the data folder that keeps hosts from starting. The database is written after the bytes that its
//! rows refer to.

use crate::backup::archive::Archive;
use crate::backup::manifest::Manifest;
use crate::backup::places::{Setup, data_folder, location};
use crate::backup::progress::{Progress, count, size};
use crate::backup::{bytes, files, tables};
use crate::data_folder::DataFolder;
use crate::failure::{Exit, Failure, Outcome};
use crate::{output, wiring};
use anyhow::Context;
use greenroom_store::Location;
use greenroom_store::copy::Loading;
use serde_json::json;
use std::path::{Path, PathBuf};
use tokio::runtime::Handle;

/// Restore a data folder, its database and its artifacts from a backup
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The data folder must not exist or be empty, and so must the database. Without `--store` and `--config`
the database is SQLite in the data folder and artifacts are kept there too, whatever the host had that
the backup is of. Do not let that host and the restored one run at the same time: both would deliver.

Examples:
  greenroom backup restore greenroom-backup-20260102-030405.tar --data /var/lib/greenroom
  greenroom backup restore backup.tar --data new --store env:DATABASE_URL
  greenroom backup restore backup.tar --data new --config greenroom.toml")]
pub struct Args {
    /// Archive written by `greenroom backup create`
    file: PathBuf,
    /// Data folder to create [default: ./greenroom-data]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Database to fill: `sqlite:PATH`, `postgres://…`, or `env:NAME` for an environment variable
    #[arg(long, value_name = "URL")]
    store: Option<String>,
    /// Configuration of the restored host; `[store]` and `[artifacts]` are the targets
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Folder for the configuration in the archive [default: `config` in the data folder]
    #[arg(long, value_name = "DIR")]
    config_to: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub async fn run(args: Args) -> Outcome {
    let runtime = Handle::current();
    let restored = tokio::task::spawn_blocking(move || restore(&args, &runtime)).await;
    restored.map_err(anyhow::Error::new)?
}

fn restore(args: &Args, runtime: &Handle) -> Outcome {
    #[cfg(feature = "faults")]
    if let Some(spec) = greenroom_config::env::get(greenroom_config::env::FAULT) {
        greenroom_store::fault::arm(&spec);
    }
    let mut progress = Progress::new();
    let archive = open(&args.file, &mut progress)?;
    let manifest = &archive.manifest;
    let data = data_folder(args.data.as_deref());
    files::refuse_foreign(&archive)?;
    let mut setup = Setup::of_new_host(&data, args.config.as_deref())?;
    if let Some(text) = &args.store {
        setup.location = location(text)?;
    }
    DataFolder::refuse_filled(&data)?;
    let folder = DataFolder::take(&data)?;
    if args.store.is_none() && setup.config.store.url.is_none() {
        setup.location = Location::Sqlite(folder.path().join("greenroom.db"));
    }
    let mut loading = Loading::create(&setup.location, manifest.database.schema)
        .with_context(|| format!("cannot restore into {}", setup.location))?;
    let incomplete = folder.mark_incomplete()?;
    files::restore(&archive, files::DATA, folder.path())?;
    let config_to = args.config_to.clone().unwrap_or_else(|| folder.path().join("config"));
    files::restore(&archive, files::CONFIG, &config_to)?;
    let outside = files::restore(&archive, files::OUTSIDE, &folder.path().join("config-outside"))?;
    let place = wiring::artifacts(&setup.config, folder.path());
    bytes::restore(&archive, &place, (&mut progress, runtime))?;
    tables::load(&archive, &mut loading, &mut progress)?;
    let (mut tables, mut rows) = (0, 0);
    loading
        .finish(manifest.database.epoch.saturating_add(1), &mut |table, sum| {
            tables += 1;
            rows += sum.rows;
            progress.update(|| format!("comparing `{}`", table.name));
        })
        .with_context(|| format!("cannot restore into {}", setup.location))?;
    progress.done(&format!(
        "database: {} in {tables} tables of {}, read back and verified",
        count(rows, "row"),
        setup.location
    ));
    incomplete.remove()?;
    let notes = notes(manifest, args, &config_to, &outside);
    notes.iter().for_each(|note| output::note(&format!("note: {note}")));
    output::note(&format!("restored into `{}`", data.display()));
    output::note(&format!("hint: start it with `{}`", start(manifest, args, &data, &config_to)));
    if args.json {
        output::print_json(&json!({"data": folder.path(), "store": setup.location.to_string(),
            "artifacts_in": place.to_string(), "rows": rows, "tables": tables,
            "artifacts": manifest.artifacts.count, "artifact_bytes": manifest.artifacts.bytes,
            "created_at": manifest.created_at, "schema": manifest.database.schema, "notes": notes}))?;
    }
    Ok(Exit::Ok)
}

fn open(file: &Path, progress: &mut Progress) -> Result<Archive, Failure> {
    let hint = "`greenroom backup list --verify` shows which backups are intact";
    let refused = |error| Failure::from(anyhow::Error::new(error)).hint(hint);
    let archive = Archive::open(file).map_err(refused)?;
    archive
        .verify(&mut |read| {
            progress.update(|| format!("checking {} of {}", size(read), size(archive.bytes)));
        })
        .map_err(refused)?;
    progress.done(&format!("archive: {}, all checksums match", size(archive.bytes)));
    Ok(archive)
}

/// What to check before the first start.
fn notes(manifest: &Manifest, args: &Args, config_to: &Path, outside: &[PathBuf]) -> Vec<String> {
    let mut notes = Vec::new();
    if !manifest.artifacts.collected.is_empty() {
        let gone = count(manifest.artifacts.collected.len() as u64, "artifact");
        notes.push(format!("{gone} were deleted by the host while the backup was written"));
    }
    let Some(config) = &manifest.config else { return notes };
    notes.push(format!("the configuration of the backup is in `{}`", config_to.display()));
    for (section, is_named) in [
        ("store", config.names_store || args.store.is_some()),
        ("artifacts", config.names_artifacts),
    ] {
        if is_named && args.config.is_none() {
            notes.push(format!("check `{section}.url` in it: it must refer to what was restored"));
        }
    }
    if !config.environment.is_empty() {
        notes.push(format!(
            "it needs these environment variables: {}",
            config.environment.join(", ")
        ));
    }
    for file in outside {
        notes.push(format!(
            "`{}` was outside the folder: move it to the path in the configuration",
            file.display()
        ));
    }
    notes
}

fn start(manifest: &Manifest, args: &Args, data: &Path, config_to: &Path) -> String {
    let own = manifest.config.as_ref().and_then(|config| config.member.strip_prefix(files::CONFIG));
    let config = args.config.clone().or_else(|| own.map(|name| config_to.join(name)));
    match config {
        Some(config) => {
            format!("greenroom serve --data {} --config {}", data.display(), config.display())
        }
        None => format!("greenroom serve --data {}", data.display()),
    }
}
