//! `greenroom runs cancel`: cancels a run.

use crate::client::{Client, HostArgs};
use crate::failure::{Exit, Outcome};
use crate::output;
use serde_json::{Value, json};

/// Cancel a run that is queued or running
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Id of the run
    run: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    host: HostArgs,
}

pub async fn run(args: Args) -> Outcome {
    let client = Client::new(&args.host)?;
    let before = client.named_run(&args.run).await?;
    let answer: Value = client.post(&["v1", "runs", &args.run, "cancel"], &json!({})).await?;
    match args.json {
        true => output::print_json(&answer)?,
        false if !before.status.is_open() => {
            let status = before.status.as_str();
            output::note(&format!("run `{}` already ended as {status}", args.run));
        }
        false => {
            let run = client.run(&args.run).await?;
            output::note(&format!("run `{}` is {}", run.run_id, run.status.as_str()));
        }
    }
    Ok(Exit::Ok)
}
