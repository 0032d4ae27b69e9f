//! `greenroom runner list`: the runners the host knows.

use crate::client::{Client, HostArgs, Page};
use crate::failure::{Exit, Outcome};
use crate::output;
use greenroom_protocol::Object;
use serde_json::Value;

/// Characters of an error that a table shows; `--json` has all of it.
const ERROR_SHOWN: usize = 120;

/// List the runners the host knows
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    host: HostArgs,
}

pub async fn run(args: Args) -> Outcome {
    let client = Client::new(&args.host)?;
    let page: Page<Object> = client.get(&["v1", "runners"], &[]).await?;
    if args.json {
        output::print_json(&page)?;
        return Ok(Exit::Ok);
    }
    let head = ["NAME", "STATUS", "PLUGIN", "RUNNERS", "LAST ERROR"].map(str::to_owned).to_vec();
    let rows: Vec<Vec<String>> = page.items.iter().map(row).collect();
    super::print_page(head, rows, &page.next_cursor)
}

fn row(runner: &Object) -> Vec<String> {
    let word = |key| runner.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let offered = runner.get("runners").and_then(Value::as_array).into_iter().flatten();
    let ids: Vec<&str> = offered.filter_map(|manifest| manifest.get("id")?.as_str()).collect();
    let error = match word("status").as_str() {
        "ready" => String::new(),
        _ => word("last_error").chars().take(ERROR_SHOWN).collect(),
    };
    vec![word("name"), word("status"), word("plugin"), ids.join(" "), error]
}
