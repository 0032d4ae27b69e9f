//! What a silent run waits for.
//!
//! Invariant: only reads; omits what the token may not read.

use super::{Client, Error, Page};
use greenroom_protocol::api::platform::ApprovalView;
use greenroom_protocol::{Object, RunStatus, RunView, RunnerId};
use serde_json::Value;

/// A reason for silence.
#[derive(Debug, Clone, PartialEq)]
pub enum Wait {
    /// An approval is pending.
    Approval(Box<ApprovalView>),
    /// A tool server is starting for the first time.
    Server(String),
    /// The runner is starting, or restarting after an error.
    Runner { name: String, error: Option<String> },
    /// A remote runner is not connected.
    Remote(String),
    /// An earlier run of the conversation is active; its id, if the token may read it.
    Lane(Option<String>),
}

/// Looks up what a run waits for; a run that has produced output waits for no server and no runner.
pub(super) async fn look(
    client: &Client,
    run_id: &str,
    has_results: bool,
) -> Result<Vec<Wait>, Error> {
    let run = client.run(run_id).await?;
    if run.status == RunStatus::Queued {
        let ahead = ahead_of(client, &run).await;
        let mut waits = vec![Wait::Lane(ahead.as_ref().map(|ahead| ahead.run_id.clone()))];
        if let Some(ahead) = ahead {
            waits.extend(approvals(client, &ahead.run_id).await.unwrap_or_default());
        }
        return Ok(waits);
    }
    let mut waits = approvals_of(client, &run).await?;
    if !has_results && waits.is_empty() {
        let servers: Page<Object> = client.get(&["v1", "tool-servers"], &[]).await?;
        let starting = servers.items.iter().filter(|server| word(server, "status") == "starting");
        waits.extend(starting.map(|server| Wait::Server(word(server, "name").to_owned())));
    }
    let is_with_runner = run.extra.get("with_runner") == Some(&Value::Bool(true));
    if !has_results && !is_with_runner && waits.is_empty() {
        let runners: Page<Object> = client.get(&["v1", "runners"], &[]).await?;
        let is_its = |runner: &&Object| {
            let id = RunnerId::parse(&run.runner_id);
            id.is_ok_and(|id| id.plugin() == word(runner, "plugin"))
        };
        // The plugin of a runner that never connected is unknown.
        let may_be_its = |runner: &&Object| word(runner, "plugin").is_empty();
        let runner = runners.items.iter().find(is_its);
        let runner = runner.or_else(|| runners.items.iter().find(may_be_its));
        waits.extend(runner.and_then(of_runner));
    }
    Ok(waits)
}

/// The run that a queued run waits for.
async fn ahead_of(client: &Client, run: &RunView) -> Option<RunView> {
    let conversation = run.conversation_id.clone()?;
    let query = [
        ("conversation_id", conversation),
        ("agent", run.agent.clone()),
        ("status", RunStatus::Running.as_str().to_owned()),
    ];
    let running: Result<Page<RunView>, Error> = client.get(&["v1", "runs"], &query).await;
    running.ok()?.items.into_iter().next()
}

async fn approvals(client: &Client, run_id: &str) -> Result<Vec<Wait>, Error> {
    approvals_of(client, &client.run(run_id).await?).await
}

async fn approvals_of(client: &Client, run: &RunView) -> Result<Vec<Wait>, Error> {
    let mut waits = Vec::new();
    let approvals = run.extra.get("approvals").and_then(Value::as_array);
    for approval in approvals.into_iter().flatten() {
        let word = |key: &str| approval.get(key).and_then(Value::as_str);
        let (Some("pending"), Some(id)) = (word("status"), word("approval_id")) else { continue };
        let approval: ApprovalView = client.get(&["v1", "approvals", id], &[]).await?;
        waits.push(Wait::Approval(Box::new(approval)));
    }
    Ok(waits)
}

fn of_runner(runner: &Object) -> Option<Wait> {
    let name = word(runner, "name").to_owned();
    let error = Some(word(runner, "last_error").to_owned()).filter(|error| !error.is_empty());
    match word(runner, "status") {
        "ready" => None,
        "disconnected" => Some(Wait::Remote(name)),
        _ => Some(Wait::Runner { name, error }),
    }
}

fn word<'a>(object: &'a Object, key: &str) -> &'a str {
    object.get(key).and_then(Value::as_str).unwrap_or_default()
}
