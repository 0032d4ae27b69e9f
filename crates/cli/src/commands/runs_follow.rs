//! `greenroom runs follow`: the answer of a run while it is produced.

use crate::client::{Client, HostArgs, follow};
use crate::failure::Outcome;
use crate::reading::{Reading, language_of};

/// Print the answer of a run from the beginning, while it is produced
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  greenroom runs follow RUN
  greenroom runs follow RUN --after 120 --json")]
pub struct Args {
    /// Id of the run
    run: String,
    /// Start after this sequence number
    #[arg(long, value_name = "SEQUENCE", default_value_t = 0)]
    after: i64,
    /// Print every result as JSON on a line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    host: HostArgs,
}

pub async fn run(args: Args) -> Outcome {
    let client = Client::new(&args.host)?;
    client.named_run(&args.run).await?;
    let mut reading = Reading::new(args.json, language_of(""));
    let run = follow(&client, &args.run, args.after, &mut reading).await?;
    reading.end(&run)
}
