//! `greenroom runner list`: the runners the host knows.

use super::runner_add::asks_for;
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
    let head = ["NAME", "STATUS", "WIRE", "PLUGIN", "RUNNERS", "ASKS FOR", "LAST ERROR"];
    let head = head.map(str::to_owned).to_vec();
    let rows: Vec<Vec<String>> = page.items.iter().map(row).collect();
    super::print_page(head, rows, &page.next_cursor)
}

fn row(runner: &Object) -> Vec<String> {
    let word = |key| runner.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let offered = runner.get("runners").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let ids: Vec<&str> = offered.iter().filter_map(|manifest| manifest["id"].as_str()).collect();
    let mut asked: Vec<String> =
        offered.iter().map(|manifest| asks_for(&manifest["permissions"])).collect();
    asked.dedup();
    let error = match word("status").as_str() {
        "ready" => String::new(),
        _ => word("last_error").chars().take(ERROR_SHOWN).collect(),
    };
    let (wire, asked) = (wire(offered), asked.join(" | "));
    vec![word("name"), word("status"), wire, word("plugin"), ids.join(" "), asked, error]
}

/// The wire, and of a LangBot plugin its dialect and its SDK; nothing while it is not known.
fn wire(offered: &[Value]) -> String {
    let Some(manifest) = offered.first() else { return String::new() };
    let about = |key: &str| manifest["metadata"][key].as_str();
    match about("wire") {
        Some(wire) => {
            let words = [Some(wire), about("dialect"), about("sdk_version")];
            words.into_iter().flatten().collect::<Vec<_>>().join(" ")
        }
        None => "native".to_owned(),
    }
}
