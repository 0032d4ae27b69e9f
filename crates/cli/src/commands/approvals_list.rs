//! `greenroom approvals list`: actions that wait for approval, newest first.

use crate::client::{Client, HostArgs, Page};
use crate::failure::{Exit, Outcome};
use crate::{calls, output, times};
use greenroom_protocol::api::platform::{ApprovalStatus, ApprovalView};

/// List actions that wait for approval, newest first
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  greenroom approvals list
  greenroom approvals list --status all --run run_0197… --json")]
pub struct Args {
    /// Only those with this status
    #[arg(long, default_value = "pending",
        value_parser = ["pending", "allowed", "denied", "expired", "cancelled", "all"])]
    status: String,
    /// Only those of this run
    #[arg(long, value_name = "ID")]
    run: Option<String>,
    #[command(flatten)]
    page: super::PageArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    host: HostArgs,
}

pub async fn run(args: Args) -> Outcome {
    let status = Some(args.status).filter(|status| status != "all");
    let filters = [("status", status), ("run_id", args.run)];
    let filters = filters.into_iter().filter_map(|(key, value)| Some((key, value?)));
    let client = Client::new(&args.host)?;
    let page: Page<ApprovalView> =
        args.page.read(&client, &["v1", "approvals"], filters.collect()).await?;
    if args.json {
        output::print_json(&page)?;
        return Ok(Exit::Ok);
    }
    let head = ["APPROVAL", "STATUS", "ASKED", "WITH", "AGENT", "FOR", "CONVERSATION", "EXPIRES"];
    let rows: Vec<Vec<String>> = page.items.iter().map(row).collect();
    let is_open = |approval: &&ApprovalView| approval.status == ApprovalStatus::Pending;
    let first = page.items.iter().find(is_open).map(|approval| approval.approval_id.clone());
    super::print_page(head.map(str::to_owned).to_vec(), rows, &page.next_cursor)?;
    if let Some(id) = first {
        let option = client.option();
        output::note(&format!(
            "hint: `greenroom approvals allow {id}{option}` or `deny {id}{option}` answers; `show {id}{option}` tells all of it"
        ));
    }
    Ok(Exit::Ok)
}

fn row(approval: &ApprovalView) -> Vec<String> {
    let (asked, with) = calls::asked(approval);
    vec![
        approval.approval_id.clone(),
        approval.status.as_str().to_owned(),
        asked,
        with,
        approval.agent.clone(),
        calls::actor(approval).unwrap_or_default(),
        approval.conversation_id.clone().unwrap_or_default(),
        times::short(&approval.expires_at),
    ]
}
