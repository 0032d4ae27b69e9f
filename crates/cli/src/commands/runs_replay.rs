//! `greenroom runs replay`: sends the event of a run again, marked as a replay and without delivery.

use crate::client::{Client, HostArgs};
use crate::failure::Outcome;
use crate::reading::{Reading, language_of};
use greenroom_protocol::EventAnswer;
use serde_json::json;

/// Send the event of a run again, to the same agent, without delivering the answer
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The new event carries `replay_of` in its metadata.

Examples:
  greenroom runs replay RUN --follow")]
pub struct Args {
    /// Id of the run
    run: String,
    /// Agent for the event [default: the agent of the run]
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    #[command(flatten)]
    watch: super::send::WatchArgs,
    #[command(flatten)]
    host: HostArgs,
}

pub async fn run(args: Args) -> Outcome {
    let client = Client::new(&args.host)?;
    let run = client.named_run(&args.run).await?;
    let path = ["v1", "runs", &run.run_id, "replay"];
    let answer: EventAnswer = client.post(&path, &json!({ "agent": args.agent })).await?;
    let reading = Reading::new(args.watch.json, language_of(""));
    super::send::finish(&client, &answer, &args.watch, reading).await
}
