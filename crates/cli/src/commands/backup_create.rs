//! `greenroom backup create`: everything a host stores, in one file.
//!
//! Invariant: only reads from the host; the archive has everything that was acknowledged before the command began.

use crate::backup::archive::{ArchiveWriter, part_of};
use crate::backup::manifest::{FORMAT, Manifest};
use crate::backup::places::Setup;
use crate::backup::progress::{Progress, count, size};
use crate::backup::{bytes, files, tables};
use crate::failure::{Exit, Failure, Outcome};
use crate::{output, wiring};
use anyhow::Context;
use rustix::fs::Mode;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use time::macros::format_description;
use tokio::runtime::Handle;

/// Back up everything a host stores into one file; the host may be running
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The archive holds the database, the bytes of artifacts, the admin token, what runners keep in the data
folder, the configuration and the files it names. It holds secrets: keep it as you keep those.
It does not contain values of environment variables or programs of runners.

Examples:
  greenroom backup create
  greenroom backup create --data /var/lib/greenroom --to /var/backups/greenroom/")]
pub struct Args {
    /// Data folder of the host [default: ./greenroom-data]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Configuration file [default: that of the running host, else as for `serve`]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// File to write, or folder for a file named after the time [default: .]
    #[arg(long, value_name = "PATH", default_value = ".", hide_default_value = true)]
    to: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub async fn run(args: Args) -> Outcome {
    let runtime = Handle::current();
    let created = tokio::task::spawn_blocking(move || create(&args, &runtime)).await;
    created.map_err(anyhow::Error::new)?
}

fn create(args: &Args, runtime: &Handle) -> Outcome {
    rustix::process::umask(Mode::RWXG | Mode::RWXO);
    let at = SystemTime::now();
    let setup = Setup::of_host(args.data.as_deref(), args.config.as_deref())?;
    let target = target(&args.to, at)?;
    let mut progress = Progress::new();
    let mut archive =
        ArchiveWriter::create(&target, at).map_err(|error| not_begun(&target, error))?;
    let dumped = tables::dump(&setup.location, &mut archive, &mut progress)
        .with_context(|| format!("cannot copy {}", setup.location))?;
    let backend = wiring::artifacts(&setup.config, &setup.data);
    let source =
        bytes::Source { backend: &backend, location: &setup.location, owner: dumped.owner };
    let artifacts =
        bytes::collect(&source, &dumped.referred, &mut archive, (&mut progress, runtime))?;
    let left_out = files::add_data(&setup.data, &mut archive, &mut progress)?;
    let config = files::add_config(&setup, &mut archive)?;
    let manifest = Manifest {
        format: FORMAT,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        created_at: OffsetDateTime::from(at).format(&Rfc3339).map_err(anyhow::Error::new)?,
        database: dumped.database,
        artifacts,
        config,
        members: Vec::new(),
    };
    let (contents, environment) = (summary(&manifest), environment(&manifest));
    let bytes = archive
        .finish(manifest.clone())
        .with_context(|| format!("cannot write `{}`", target.display()))?;
    for file in &left_out {
        output::note(&format!("note: skipped {file}"));
    }
    if !environment.is_empty() {
        output::note(&format!("note: not included: the values of {}", environment.join(", ")));
    }
    output::note(&format!("backup of {contents}, {}", size(bytes)));
    output::note("note: it contains secrets; store it where only you can read it");
    if args.json {
        output::print_json(
            &json!({"file": target, "bytes": bytes, "created_at": manifest.created_at,
            "schema": manifest.database.schema, "database": manifest.database.kind,
            "rows": manifest.rows(), "artifacts": manifest.artifacts.count,
            "artifact_bytes": manifest.artifacts.bytes, "environment": environment,
            "left_out": left_out}),
        )?;
    } else {
        output::print(&format!("{}\n", target.display()))?;
    }
    Ok(Exit::Ok)
}

fn not_begun(target: &Path, error: std::io::Error) -> Failure {
    let part = part_of(target);
    let exists = error.kind() == std::io::ErrorKind::AlreadyExists;
    let failure = anyhow::Error::new(error).context(format!("cannot write `{}`", part.display()));
    match exists {
        true => Failure::from(failure)
            .hint("another backup is being written to it; if that was killed, remove the file"),
        false => failure.into(),
    }
}

fn summary(manifest: &Manifest) -> String {
    let artifacts = count(manifest.artifacts.count, "artifact");
    format!("{}, {artifacts}", count(manifest.rows(), "row"))
}

fn environment(manifest: &Manifest) -> Vec<String> {
    manifest.config.as_ref().map(|config| config.environment.clone()).unwrap_or_default()
}

/// The file to write: the given one, or one named after the time in the given folder.
fn target(to: &Path, at: SystemTime) -> Result<PathBuf, Failure> {
    let is_folder = to.is_dir() || to.as_os_str().as_encoded_bytes().ends_with(b"/");
    if !is_folder {
        return match to.exists() {
            true => Err(Failure::new(format!("`{}` already exists", to.display()))
                .hint("choose another file or a folder with `--to`")),
            false => Ok(to.to_owned()),
        };
    }
    let format = format_description!("[year][month][day]-[hour][minute][second]");
    let moment = OffsetDateTime::from(at).format(format).map_err(anyhow::Error::new)?;
    let name = |suffix: &str| to.join(format!("greenroom-backup-{moment}{suffix}.tar"));
    let others = (2..1_000).map(|n| name(&format!("-{n}")));
    let is_free = |path: &PathBuf| !path.exists() && !part_of(path).exists();
    let mut names = std::iter::once(name("")).chain(others);
    names.find(is_free).ok_or_else(|| Failure::new("too many backups within this second"))
}
