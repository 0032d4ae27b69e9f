//! `greenroom approvals list`: approvals, newest first.

use crate::client::{Client, HostArgs, Page};
use crate::failure::{Exit, Outcome};
use crate::reading::language_of;
use crate::{calls, output, times};
use greenroom_protocol::api::platform::{ApprovalStatus, ApprovalView};
use greenroom_tools::ui::Language;

/// List pending approvals, newest first
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  greenroom approvals list
  greenroom approvals list --status all --run run_0197… --json")]
pub struct Args {
    /// Only approvals with this status
    #[arg(long, default_value = "pending",
        value_parser = ["pending", "allowed", "denied", "expired", "cancelled", "all"])]
    status: String,
    /// Only approvals of this run
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
    let language = language_of("");
    let rows = page.items.iter().map(|approval| row(approval, language)).collect();
    let is_open = |approval: &&ApprovalView| approval.status == ApprovalStatus::Pending;
    super::print_page(head.map(str::to_owned).to_vec(), rows, &page.next_cursor)?;
    if let Some(first) = page.items.iter().find(is_open) {
        let (id, option) = (output::plain(&first.approval_id), client.option());
        let answers = calls::answers(first, language, &option);
        output::note(&format!("{id}:\n{answers}"));
        output::note(&format!("hint: `greenroom approvals show {id}{option}` shows the details"));
    }
    Ok(Exit::Ok)
}

fn row(approval: &ApprovalView, language: Language) -> Vec<String> {
    let (request, with) = calls::request(approval, language);
    vec![
        approval.approval_id.clone(),
        approval.status.as_str().to_owned(),
        request,
        with,
        approval.agent.clone(),
        calls::actor(approval).unwrap_or_default(),
        approval.conversation_id.clone().unwrap_or_default(),
        times::short(&approval.expires_at),
    ]
}
