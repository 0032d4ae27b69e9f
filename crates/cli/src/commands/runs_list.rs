//! `greenroom runs list`: runs, newest first.

use crate::client::{Client, HostArgs, Page};
use crate::failure::{Exit, Outcome};
use crate::{output, times};
use greenroom_protocol::{RunStatus, RunView};

/// List runs, newest first
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  greenroom runs list
  greenroom runs list --status failed --limit 100 --json")]
pub struct Args {
    /// Only runs of this conversation
    #[arg(long, value_name = "ID")]
    conversation: Option<String>,
    /// Only runs of this agent
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// Only runs with this status
    #[arg(long, value_parser = RunStatus::ALL.map(RunStatus::as_str))]
    status: Option<String>,
    #[command(flatten)]
    page: super::PageArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    host: HostArgs,
}

pub async fn run(args: Args) -> Outcome {
    let filters =
        [("conversation_id", &args.conversation), ("agent", &args.agent), ("status", &args.status)];
    let filters = filters.into_iter().filter_map(|(key, value)| Some((key, value.clone()?)));
    let client = Client::new(&args.host)?;
    let page: Page<RunView> = args.page.read(&client, &["v1", "runs"], filters.collect()).await?;
    if args.json {
        output::print_json(&page)?;
        return Ok(Exit::Ok);
    }
    let head = ["RUN", "STATUS", "AGENT", "CONVERSATION", "CREATED", "TOOK"].map(str::to_owned);
    let rows: Vec<Vec<String>> = page.items.iter().map(row).collect();
    super::print_page(head.to_vec(), rows, &page.next_cursor)
}

fn row(run: &RunView) -> Vec<String> {
    vec![
        run.run_id.clone(),
        run.status.as_str().to_owned(),
        run.agent.clone(),
        run.conversation_id.clone().unwrap_or_default(),
        times::short(&run.created_at),
        run.finished_at
            .as_deref()
            .and_then(|end| times::between(&run.created_at, end))
            .map(times::duration)
            .unwrap_or_default(),
    ]
}
