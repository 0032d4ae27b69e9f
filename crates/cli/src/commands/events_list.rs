//! `greenroom events list`: the event log, newest first.

use crate::client::{Client, HostArgs, Page};
use crate::failure::{Exit, Outcome};
use crate::{output, times};
use greenroom_protocol::Object;
use serde_json::Value;

/// List the event log, newest first
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only events of this conversation
    #[arg(long, value_name = "ID")]
    conversation: Option<String>,
    #[command(flatten)]
    page: super::PageArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    host: HostArgs,
}

pub async fn run(args: Args) -> Outcome {
    let filters = args.conversation.clone().map(|id| ("conversation_id", id));
    let client = Client::new(&args.host)?;
    let page: Page<Object> =
        args.page.read(&client, &["v1", "events"], filters.into_iter().collect()).await?;
    if args.json {
        output::print_json(&page)?;
        return Ok(Exit::Ok);
    }
    let head = ["EVENT", "TYPE", "SOURCE", "CONVERSATION", "RUN", "CREATED"].map(str::to_owned);
    let rows: Vec<Vec<String>> = page.items.iter().map(row).collect();
    super::print_page(head.to_vec(), rows, &page.next_cursor)
}

fn row(event: &Object) -> Vec<String> {
    let word = |key| event.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let mut row =
        ["event_id", "event_type", "source", "conversation_id", "run_id"].map(word).to_vec();
    row.push(times::short(&word("created_at")));
    row
}
