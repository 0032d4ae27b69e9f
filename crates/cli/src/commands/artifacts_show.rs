//! `greenroom artifacts show`: the metadata of an artifact.

use crate::client::{Client, HostArgs};
use crate::failure::{Exit, Outcome};
use crate::output;
use greenroom_protocol::api::artifacts::ArtifactView;

/// Show the metadata of an artifact
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Id of the artifact
    artifact: String,
    /// Print JSON on one line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    host: HostArgs,
}

pub async fn run(args: Args) -> Outcome {
    let client = Client::new(&args.host)?;
    let path = ["v1", "artifacts", &args.artifact, "metadata"];
    let artifact: ArtifactView = client.get(&path, &[]).await?;
    match args.json {
        true => output::print_json(&artifact)?,
        false => output::print(&output::table(&rows(&artifact)))?,
    }
    Ok(Exit::Ok)
}

fn rows(artifact: &ArtifactView) -> Vec<Vec<String>> {
    let or_none = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
    [
        ("id", artifact.artifact_id.clone()),
        ("name", or_none(&artifact.name)),
        ("type", artifact.mime_type.clone()),
        ("bytes", artifact.size_bytes.to_string()),
        ("sha256", artifact.sha256.clone()),
        ("conversation", or_none(&artifact.conversation_id)),
        ("run", or_none(&artifact.run_id)),
        ("agent", or_none(&artifact.agent)),
        ("created", artifact.created_at.clone()),
        ("expires", or_none(&artifact.expires_at)),
    ]
    .map(|(name, value)| vec![name.to_owned(), output::plain(&value)])
    .to_vec()
}
