//! `greenroom artifacts get`: downloads an artifact.
//!
//! Invariant: the file has exactly the stored bytes, or is not created.

use crate::client::{Client, Download, HostArgs};
use crate::failure::{Exit, Failure, Outcome};
use sha2::{Digest, Sha256};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Download an artifact to standard output or a file
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  greenroom artifacts get art_5f0c… --output report.pdf
  greenroom artifacts get art_5f0c… | tar tz")]
pub struct Args {
    /// Id of the artifact
    artifact: String,
    /// Write to this file; an existing file is not overwritten
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    host: HostArgs,
}

pub async fn run(args: Args) -> Outcome {
    let client = Client::new(&args.host)?;
    let download = client.download(&args.artifact).await?;
    match &args.output {
        Some(path) => write_file(download, path).await?,
        None => copy(download, &mut std::io::stdout().lock()).await?,
    }
    Ok(Exit::Ok)
}

async fn write_file(download: Download, path: &Path) -> Result<(), Failure> {
    let failed = |error: std::io::Error| {
        let context = format!("cannot write `{}`", path.display());
        Failure::from(anyhow::Error::new(error).context(context))
    };
    if path.exists() {
        return Err(Failure::new(format!("`{}` already exists", path.display())));
    }
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".part");
    let part = path.with_file_name(name);
    let mut file = std::fs::File::create(&part).map_err(failed)?;
    let written = match copy(download, &mut file).await {
        Ok(()) => std::fs::hard_link(&part, path).map_err(failed),
        Err(failure) => Err(failure),
    };
    std::fs::remove_file(&part).map_err(failed)?;
    written
}

/// Copies the bytes and verifies their hash.
async fn copy(mut download: Download, to: &mut impl Write) -> Result<(), Failure> {
    let expected = download.sha256().map(str::to_owned);
    let mut hash = Sha256::new();
    while let Some(piece) = download.piece().await? {
        hash.update(piece.as_ref());
        to.write_all(piece.as_ref())?;
    }
    to.flush()?;
    let found: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    match expected {
        Some(expected) if expected != found => {
            Err(Failure::new("the downloaded bytes do not match the stored hash"))
        }
        _ => Ok(()),
    }
}
