//! `greenroom runner list`: the runners of the host.

use super::runner_add::asks_for;
use crate::client::{Client, HostArgs, Page};
use crate::failure::{Exit, Outcome};
use crate::output;
use greenroom_protocol::Object;
use serde_json::Value;

/// Characters of an error that a table shows; `--json` has all of it.
const ERROR_SHOWN: usize = 240;

/// List the runners of the host
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
    let rows: Vec<Vec<String>> = page.items.iter().flat_map(rows_of).collect();
    page.items.iter().flat_map(warnings).for_each(|warning| output::note(&warning));
    super::print_page(head, rows, &page.next_cursor)
}

/// Ignored parts of the offer of a process.
fn warnings(runner: &Object) -> Vec<String> {
    let name = runner.get("name").and_then(Value::as_str).unwrap_or_default();
    let warnings = runner.get("warnings").and_then(Value::as_array).into_iter().flatten();
    let texts = warnings.filter_map(Value::as_str);
    texts.map(|text| output::plain(&format!("note: runner `{name}`: {text}"))).collect()
}

/// A row for each runner of the process; the first row has the state of the process.
fn rows_of(runner: &Object) -> Vec<Vec<String>> {
    let word = |key| runner.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let offered = runner.get("runners").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let error = Some(word("last_error")).filter(|error| !error.is_empty());
    let error = error.unwrap_or_else(|| failures(runner));
    let error: String = error.chars().take(ERROR_SHOWN).collect();
    let row = |manifest: &Value| {
        let id = manifest["id"].as_str().unwrap_or_default().to_owned();
        (id, asks_for(&manifest["permissions"]))
    };
    let mut offers: Vec<(String, String)> = offered.iter().map(row).collect();
    if offers.is_empty() {
        offers.push((String::new(), String::new()));
    }
    let (mut about, mut error) =
        (vec![word("name"), word("status"), wire(offered), word("plugin")], error);
    let row = |(id, asked)| {
        let empty = vec![String::new(); about.len()];
        let mut row = std::mem::replace(&mut about, empty);
        row.extend([id, asked, std::mem::take(&mut error)]);
        row
    };
    offers.into_iter().map(row).collect()
}

/// How often a running process was restarted, and the last reason.
fn failures(runner: &Object) -> String {
    let last = runner.get("last_failure").unwrap_or(&Value::Null);
    let (Some(at), Some(message)) = (last["at"].as_str(), last["message"].as_str()) else {
        return String::new();
    };
    let restarts = runner.get("restarts").and_then(Value::as_u64).unwrap_or_default();
    format!("restarted {restarts}x, last {at}: {message}")
}

/// The wire; for a LangBot plugin also its dialect and SDK, once known.
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
