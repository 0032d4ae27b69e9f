//! `greenroom events show`: one event as it was stored.

use crate::client::{Client, HostArgs};
use crate::failure::{Exit, Outcome};
use crate::output;
use greenroom_protocol::Object;

/// Show one event of the log
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Id of the event
    event: String,
    /// Print JSON on one line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    host: HostArgs,
}

pub async fn run(args: Args) -> Outcome {
    let client = Client::new(&args.host)?;
    let event: Object = client.get(&["v1", "events", &args.event], &[]).await?;
    match args.json {
        true => output::print_json(&event)?,
        false => output::print_pretty(&event)?,
    }
    Ok(Exit::Ok)
}
