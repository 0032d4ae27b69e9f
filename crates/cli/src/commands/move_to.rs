//! `greenroom move`: copies the database of a stopped host into another one.
//!
//! Invariant: the old database is marked only after the copy was verified; then no host opens the old one, so two
//! copies are never in use unless requested.

use crate::backup::places::{Setup, location};
use crate::backup::progress::{Progress, count};
use crate::data_folder::DataFolder;
use crate::failure::{Exit, Failure, Outcome};
use crate::output;
use anyhow::Context;
use greenroom_store::copy::{CopyError, Loading, Snapshot, clear_moved, mark_moved};
use greenroom_store::{Location, StoreError};
use serde_json::json;
use std::path::PathBuf;

/// Move the data of a stopped host to another database, SQLite or PostgreSQL
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The new database must be empty. When the copy was read back and verified, the old one is marked:
no host opens it any more. Then change `store.url` in the configuration as the command says.
Artifacts and the data folder stay where they are.

Examples:
  greenroom move --to postgres://greenroom@db.example.com/greenroom
  greenroom move --to env:DATABASE_URL --data /var/lib/greenroom
  greenroom move --to sqlite:/var/lib/greenroom/greenroom.db
  greenroom move --undo")]
#[command(group = clap::ArgGroup::new("what").required(true))]
pub struct Args {
    /// Database to fill: `sqlite:PATH`, `postgres://…`, or `env:NAME` for an environment variable
    #[arg(long, value_name = "URL", group = "what")]
    to: Option<String>,
    /// Let hosts open the old database again; it lacks everything stored since the move
    #[arg(long, group = "what")]
    undo: bool,
    /// Leave the old database unmarked: a copy for a trial
    #[arg(long, requires = "to", conflicts_with = "undo")]
    keep: bool,
    /// Data folder of the host [default: ./greenroom-data]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Configuration file [default: as for `serve`]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub async fn run(args: Args) -> Outcome {
    let moved = tokio::task::spawn_blocking(move || match &args.to {
        Some(to) => copy(&args, to),
        None => undo(&args),
    });
    moved.await.map_err(anyhow::Error::new)?
}

fn copy(args: &Args, to: &str) -> Outcome {
    #[cfg(feature = "faults")]
    if let Some(spec) = greenroom_config::env::get(greenroom_config::env::FAULT) {
        greenroom_store::fault::arm(&spec);
    }
    let to = location(to)?;
    let setup = Setup::of_host(args.data.as_deref(), args.config.as_deref())?;
    let _folder =
        DataFolder::take(&setup.data).map_err(|failure| failure.or_hint("stop the host first"))?;
    let from = &setup.location;
    if *from == to {
        return Err(Failure::new(format!("the data is already in {to}")).exit(Exit::Usage));
    }
    let mut source = Snapshot::open_alone(from).map_err(|error| read_failed(from, error))?;
    let mut target =
        Loading::create(&to, source.schema()).map_err(|error| write_failed(&to, error))?;
    let mut progress = Progress::new();
    let mut rows = 0;
    for table in source.tables() {
        let loaded = target.load(&table, &mut |sink| {
            let each = &mut |cells: &[greenroom_store::sql::Cell], _: &str| {
                rows += 1;
                progress.update(|| format!("{} into `{}`", count(rows, "row"), table.name));
                sink(cells)
            };
            source.read(&table, each).map(drop)
        });
        loaded.map_err(|error| write_failed(&to, error))?;
    }
    let mut tables = 0;
    target
        .finish(source.epoch() + 1, &mut |table, _| {
            tables += 1;
            progress.update(|| format!("comparing `{}`", table.name));
        })
        .map_err(|error| write_failed(&to, error))?;
    progress.done(&format!(
        "{} in {tables} tables copied to {to}, read back and verified",
        count(rows, "row")
    ));
    if args.keep {
        output::note(&format!("note: {from} is unmarked: do not run hosts with both"));
    } else {
        mark_moved(source, &to)
            .with_context(|| format!("all data is in {to}, but {from} could not be marked"))?;
        output::note(&format!("{from} is marked: hosts do not open it any more"));
    }
    let next = setup.change_of_store(&to);
    output::note(&format!("hint: {next}, then start the host"));
    if args.json {
        output::print_json(&json!({"from": from.to_string(), "to": to.to_string(), "rows": rows,
            "tables": tables, "kept": args.keep, "next": next}))?;
    }
    Ok(Exit::Ok)
}

fn undo(args: &Args) -> Outcome {
    let setup = Setup::of_host(args.data.as_deref(), args.config.as_deref())?;
    let _folder =
        DataFolder::take(&setup.data).map_err(|failure| failure.or_hint("stop the host first"))?;
    let from = &setup.location;
    let was = clear_moved(from).map_err(|error| read_failed(from, error))?;
    match &was {
        Some(to) => output::note(&format!(
            "{from} can be opened again\nnote: it lacks what was stored in {to} since; do not use both"
        )),
        None => output::note(&format!("{from} was not marked")),
    }
    if args.json {
        output::print_json(&json!({"store": from.to_string(), "moved_to": was}))?;
    }
    Ok(Exit::Ok)
}

fn read_failed(from: &Location, error: CopyError) -> Failure {
    let hint = match &error {
        CopyError::Store(StoreError::Lost(_)) => "stop the host first",
        CopyError::Store(StoreError::Moved { .. }) => {
            "use that database in the configuration, or allow this one again with `greenroom move --undo`"
        }
        _ => "`--config FILE` and `--data DIR` select the host",
    };
    Failure::from(anyhow::Error::new(error).context(format!("cannot read {from}"))).hint(hint)
}

fn write_failed(to: &Location, error: CopyError) -> Failure {
    let hint = match (&error, to) {
        (CopyError::NotEmpty(_), Location::Sqlite(_)) => "choose a file that does not exist",
        (CopyError::NotEmpty(_), Location::Postgres(_)) => "choose an empty database",
        _ => "nothing was changed; the command can be repeated",
    };
    Failure::from(anyhow::Error::new(error).context(format!("cannot fill {to}"))).hint(hint)
}
