//! What a run waits for while nothing comes of it.
//!
//! Invariant: asks and changes nothing; what may not be seen is left out.

use super::{Client, Error, Page};
use greenroom_protocol::api::platform::ApprovalView;
use greenroom_protocol::{Object, RunStatus};
use serde_json::Value;

/// A reason for silence.
#[derive(Debug, Clone, PartialEq)]
pub enum Wait {
    /// Somebody has to say yes.
    Approval(Box<ApprovalView>),
    /// A server of tools is starting for the first time.
    Server(String),
    /// An earlier run of the conversation goes on.
    Lane,
}

/// Looks whom or what a run waits for; a run that has begun to answer waits for no server.
pub(super) async fn look(
    client: &Client,
    run_id: &str,
    has_results: bool,
) -> Result<Vec<Wait>, Error> {
    let run = client.run(run_id).await?;
    if run.status == RunStatus::Queued {
        return Ok(vec![Wait::Lane]);
    }
    let mut waits = Vec::new();
    let asked = run.extra.get("approvals").and_then(Value::as_array);
    for approval in asked.into_iter().flatten() {
        let word = |key: &str| approval.get(key).and_then(Value::as_str);
        let (Some("pending"), Some(id)) = (word("status"), word("approval_id")) else { continue };
        let approval: ApprovalView = client.get(&["v1", "approvals", id], &[]).await?;
        waits.push(Wait::Approval(Box::new(approval)));
    }
    if !has_results && waits.is_empty() {
        let servers: Page<Object> = client.get(&["v1", "tool-servers"], &[]).await?;
        let word = |server: &Object, key: &str| {
            server.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let starting = servers.items.iter().filter(|server| word(server, "status") == "starting");
        waits.extend(starting.map(|server| Wait::Server(word(server, "name"))));
    }
    Ok(waits)
}
