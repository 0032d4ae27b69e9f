//! `greenroom artifacts put`: uploads a file.

use crate::client::{Client, HostArgs};
use crate::failure::{Exit, Failure, Outcome};
use crate::output;
use reqwest::Body;
use std::path::{Path, PathBuf};
use tokio::io::AsyncReadExt;

/// Upload a file as an artifact and print its id
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  greenroom artifacts put report.pdf
  tar cz logs | greenroom artifacts put - --name logs.tar.gz --conversation c1")]
pub struct Args {
    /// The file; `-` reads standard input
    file: PathBuf,
    /// Name of the artifact [default: the name of the file]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// MIME type [default: detected from the bytes]
    #[arg(long = "type", value_name = "MIME")]
    mime_type: Option<String>,
    /// Conversation of the artifact [default: that of the first event that refers to it]
    #[arg(long, value_name = "CONVERSATION")]
    conversation: Option<String>,
    /// Delete it after this many seconds
    #[arg(long, value_name = "SECONDS")]
    expires_in: Option<u32>,
    /// Print JSON on one line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    host: HostArgs,
}

pub async fn run(args: Args) -> Outcome {
    let client = Client::new(&args.host)?;
    let mut query = Vec::new();
    query.extend(args.name.clone().or_else(|| name_of(&args.file)).map(|name| ("name", name)));
    query.extend(args.conversation.map(|conversation| ("conversation_id", conversation)));
    query.extend(args.expires_in.map(|seconds| ("expires_in_s", seconds.to_string())));
    let body = body_of(&args.file).await?;
    let artifact = client.upload(&query, args.mime_type.as_deref(), body).await?;
    match args.json {
        true => output::print_json(&artifact)?,
        false => output::print(&format!("{}\n", artifact.artifact_id))?,
    }
    Ok(Exit::Ok)
}

/// Whether the path means standard input.
pub(super) fn is_stdin(file: &Path) -> bool {
    file.as_os_str() == "-"
}

pub(super) fn name_of(file: &Path) -> Option<String> {
    let name = file.file_name().filter(|_| !is_stdin(file))?;
    Some(name.to_string_lossy().into_owned())
}

pub(super) async fn body_of(file: &Path) -> Result<Body, Failure> {
    if is_stdin(file) {
        let pieces = futures_util::stream::try_unfold(tokio::io::stdin(), async |mut stdin| {
            let mut piece = vec![0; 64 * 1024];
            let length = stdin.read(&mut piece).await?;
            piece.truncate(length);
            Ok::<_, std::io::Error>((length > 0).then_some((piece, stdin)))
        });
        return Ok(Body::wrap_stream(pieces));
    }
    if file.is_dir() {
        let message = format!("`{}` is a folder", file.display());
        return Err(Failure::new(message).exit(Exit::Usage).hint("upload its files one by one"));
    }
    let opened = tokio::fs::File::open(file).await.map_err(|error| {
        let context = format!("cannot read `{}`", file.display());
        Failure::from(anyhow::Error::new(error).context(context)).exit(Exit::NotFound)
    });
    Ok(Body::from(opened?))
}
