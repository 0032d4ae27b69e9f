//! `greenroom deliveries list`: deliveries to surfaces, newest first.

use crate::client::{Client, HostArgs, Page};
use crate::failure::{Exit, Outcome};
use crate::{output, times};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// List deliveries to surfaces, newest first
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Status:
  pending    waits to be sent, or to be tried again
  claimed    is being sent
  done       was taken by its surface
  failed     refused by its surface, or given up after `limits.delivery_retry_s`
  unknown    may have arrived or not, and is not sent again by itself
  discarded  somebody decided that it is not sent

Examples:
  greenroom deliveries list
  greenroom deliveries list --status failed --surface helpdesk
  greenroom deliveries list --run run_0197… --json")]
pub struct Args {
    /// Only deliveries with this status
    #[arg(long, value_parser = ["pending", "claimed", "done", "failed", "unknown", "discarded"])]
    status: Option<String>,
    /// Only deliveries to this surface
    #[arg(long, value_name = "NAME")]
    surface: Option<String>,
    /// Only deliveries of this run
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

/// A delivery as the host shows it.
#[derive(Debug, Clone, Deserialize, Serialize)]
pub(super) struct Delivery {
    pub(super) delivery_id: String,
    pub(super) surface: String,
    pub(super) run_id: String,
    pub(super) status: String,
    attempts: i64,
    error: Option<String>,
    updated_at: String,
    next_attempt_at: Option<String>,
    #[serde(flatten)]
    more: Map<String, Value>,
}

pub async fn run(args: Args) -> Outcome {
    let filters = [("status", args.status), ("surface", args.surface), ("run_id", args.run)];
    let filters = filters.into_iter().filter_map(|(key, value)| Some((key, value?)));
    let client = Client::new(&args.host)?;
    let page: Page<Delivery> =
        args.page.read(&client, &["v1", "deliveries"], filters.collect()).await?;
    if args.json {
        output::print_json(&page)?;
        return Ok(Exit::Ok);
    }
    let head = ["DELIVERY", "STATUS", "SURFACE", "RUN", "ATTEMPTS", "UPDATED", "NEXT", "ERROR"];
    let rows: Vec<Vec<String>> = page.items.iter().map(row).collect();
    super::print_page(head.map(str::to_owned).to_vec(), rows, &page.next_cursor)?;
    let is_unsuccessful = |delivery: &&Delivery| is_unsuccessful(&delivery.status);
    if let Some(delivery) = page.items.iter().find(is_unsuccessful) {
        output::note(&retry_hint(&delivery.delivery_id, &client.option()));
    }
    Ok(Exit::Ok)
}

/// Whether a person has to retry or discard deliveries with this status.
pub(super) fn is_unsuccessful(status: &str) -> bool {
    matches!(status, "failed" | "unknown")
}

pub(super) fn retry_hint(delivery_id: &str, option: &str) -> String {
    format!(
        "hint: `greenroom deliveries retry {delivery_id}{option}` sends it again, `discard {delivery_id}{option}` drops it"
    )
}

fn row(delivery: &Delivery) -> Vec<String> {
    let next = delivery.next_attempt_at.as_deref().map(times::short);
    vec![
        delivery.delivery_id.clone(),
        delivery.status.clone(),
        delivery.surface.clone(),
        delivery.run_id.clone(),
        delivery.attempts.to_string(),
        times::short(&delivery.updated_at),
        next.unwrap_or_default(),
        delivery.error.clone().unwrap_or_default(),
    ]
}
