//! `greenroom runs show`: the timeline of a run.

mod story;

use crate::client::{Client, HostArgs, Page};
use crate::failure::{Exit, Outcome};
use crate::output;
use greenroom_protocol::api::audit::AuditView;
use greenroom_protocol::api::platform::ApprovalView;
use greenroom_protocol::{AgentRunResult, Object, RunView};
use serde::Deserialize;
use serde_json::{Value, json};

/// Most results that are loaded.
const RESULTS_MAX: usize = 2_000;

/// Show the timeline of a run: accepted, started, answered, ended
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Id of the run
    run: String,
    /// Print JSON: the run, its event and its results
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    host: HostArgs,
}

pub async fn run(args: Args) -> Outcome {
    let client = Client::new(&args.host)?;
    let run = client.named_run(&args.run).await?;
    let event: Object = client.get(&["v1", "events", &run.event_id], &[]).await?;
    let results = results(&client, &run).await?;
    match args.json {
        true => output::print_json(&json!({ "run": run, "event": event, "results": results }))?,
        false => {
            let beside = Beside {
                approvals: approvals(&client, &run).await,
                model_calls: model_calls(&client, &run).await,
            };
            output::print(&story::tell(&run, &event, &results, &beside))?;
            story::retry_hint(&run, &client.option()).iter().for_each(|hint| output::note(hint));
        }
    }
    Ok(Exit::Ok)
}

/// Facts about a run besides its own row.
#[derive(Debug, Default)]
struct Beside {
    approvals: Vec<ApprovalView>,
    /// Newest first.
    model_calls: Vec<AuditView>,
}

/// The model calls; without access only their number is shown.
async fn model_calls(client: &Client, run: &RunView) -> Vec<AuditView> {
    if run.model_calls.as_ref().is_none_or(|calls| calls.calls == 0) {
        return Vec::new();
    }
    let query = [("run_id", run.run_id.clone())];
    let page: Result<Page<AuditView>, _> = client.get(&["v1", "audit"], &query).await;
    let asks = |call: &AuditView| matches!(call.method.as_str(), "models.invoke" | "models.stream");
    page.map(|page| page.items.into_iter().filter(asks).collect()).unwrap_or_default()
}

/// The approvals of the run; without access only its own results are shown.
async fn approvals(client: &Client, run: &RunView) -> Vec<ApprovalView> {
    let has_some = run.extra.get("approvals").and_then(Value::as_array);
    if has_some.is_none_or(Vec::is_empty) {
        return Vec::new();
    }
    let query = [("run_id", run.run_id.clone())];
    let page: Result<Page<ApprovalView>, _> = client.get(&["v1", "approvals"], &query).await;
    page.map(|page| page.items).unwrap_or_default()
}

/// A page of results; the next begins after its last sequence number.
#[derive(Deserialize)]
struct Results {
    items: Vec<AgentRunResult>,
    #[serde(default)]
    has_more: bool,
}

async fn results(
    client: &Client,
    run: &RunView,
) -> Result<Vec<AgentRunResult>, crate::client::Error> {
    let (mut all, mut after) = (Vec::new(), 0);
    loop {
        let query = [("after", after.to_string())];
        let path = ["v1", "runs", &run.run_id, "results"];
        let page: Results = client.get(&path, &query).await?;
        let last = page.items.last().and_then(|result| result.sequence);
        all.extend(page.items);
        match last {
            Some(last) if last > after && page.has_more && all.len() < RESULTS_MAX => after = last,
            _ => return Ok(all),
        }
    }
}
