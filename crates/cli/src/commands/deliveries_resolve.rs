//! `greenroom deliveries retry` and `discard`: retries or discards undelivered deliveries.
//!
//! Invariant: deliveries are handled oldest first, so a target gets them in order.

use super::PageArgs;
use super::deliveries_list::Delivery;
use crate::client::{Client, Error, HostArgs, Page};
use crate::failure::{Exit, Failure, Outcome};
use crate::output;
use serde_json::json;

#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("which").required(true).multiple(true))]
pub struct Args {
    /// Ids of the deliveries
    #[arg(value_name = "ID", group = "which", conflicts_with_all = ["failed", "unknown"])]
    deliveries: Vec<String>,
    /// All failed deliveries
    #[arg(long, group = "which")]
    failed: bool,
    /// All deliveries with an unknown outcome
    #[arg(long, group = "which")]
    unknown: bool,
    /// With `--failed` or `--unknown`: only deliveries to this surface
    #[arg(long, value_name = "NAME", conflicts_with = "deliveries")]
    surface: Option<String>,
    /// With `--failed` or `--unknown`: only deliveries of this run
    #[arg(long, value_name = "ID", conflicts_with = "deliveries")]
    run: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    host: HostArgs,
}

/// `verb` is the last part of the route; `done` describes the result.
pub async fn run(args: Args, verb: &'static str, done: &'static str) -> Outcome {
    let client = Client::new(&args.host)?;
    let ids = match args.deliveries.is_empty() {
        true => matching(&client, &args).await?,
        false => args.deliveries.clone(),
    };
    if ids.is_empty() {
        output::note("nothing found");
    }
    let (mut items, mut refused) = (Vec::new(), Vec::new());
    for id in ids {
        let answer: Result<Delivery, Error> =
            client.post(&["v1", "deliveries", &id, verb], &json!({})).await;
        match answer {
            Ok(delivery) => {
                if !args.json {
                    let id = output::plain(&delivery.delivery_id);
                    output::print(&format!("delivery {id} {done}\n"))?;
                }
                items.push(delivery);
            }
            Err(Error::Refused(error)) => refused.push((id, error)),
            Err(error) => return Err(error.into()),
        }
    }
    if args.json {
        output::print_json(&json!({ "items": items }))?;
    }
    let Some((id, error)) = refused.pop() else { return Ok(Exit::Ok) };
    for (id, error) in &refused {
        output::note(&format!("error: delivery `{}`: {}", output::plain(id), error.message));
    }
    let hint = "`greenroom deliveries list` shows all deliveries";
    let exit = Failure::from(Error::Refused(error.clone())).exit;
    Err(Failure::new(format!("delivery `{}`: {}", output::plain(&id), error.message))
        .exit(exit)
        .hint(hint))
}

/// The ids of the selected deliveries, oldest first.
async fn matching(client: &Client, args: &Args) -> Result<Vec<String>, Error> {
    let wanted = [("failed", args.failed), ("unknown", args.unknown)];
    let mut found: Vec<Delivery> = Vec::new();
    for (status, _) in wanted.into_iter().filter(|(_, is_wanted)| *is_wanted) {
        let filters = [("surface", &args.surface), ("run_id", &args.run)];
        let filters = filters.into_iter().filter_map(|(key, value)| Some((key, value.clone()?)));
        let filters = filters.chain([("status", status.to_owned())]).collect();
        let all = PageArgs { limit: u32::MAX, cursor: None };
        let page: Page<Delivery> = all.read(client, &["v1", "deliveries"], filters).await?;
        found.extend(page.items);
    }
    // Ids sort by time.
    found.sort_by(|one, other| one.delivery_id.cmp(&other.delivery_id));
    Ok(found.into_iter().map(|delivery| delivery.delivery_id).collect())
}
