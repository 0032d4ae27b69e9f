//! An in-memory host for tests of runners: one run over the real wire.
//!
//! Invariant: the runner gets exactly the messages of a host, through `run_agent` and `run.result`.

mod host;
mod tool;

pub use host::{Host, Ran, Reply, Request};
pub use tool::call_tool;

use crate::{Object, Plugin};
use greenroom_protocol::AgentRunResult;
use serde_json::{Value, json};
use std::io;

/// Runs the plugin's first runner once with a text and a config; returns the results in order. For a run that calls
/// the host, use [`Host`].
///
/// ```no_run
/// # async fn example(plugin: greenroom_sdk::Plugin) -> std::io::Result<()> {
/// let results = greenroom_sdk::testing::run(plugin, "hello", Default::default()).await?;
/// assert_eq!(results.last().map(|result| result.kind.as_str()), Some("run.completed"));
/// # Ok(())
/// # }
/// ```
pub async fn run(plugin: Plugin, text: &str, config: Object) -> io::Result<Vec<AgentRunResult>> {
    let ran = Host::new().config(config).run(plugin, text).await?;
    Ok(ran.results)
}

/// A run context for a message with this text.
pub fn context(run_id: &str, text: &str, config: Object) -> Value {
    json!({
        "run_id": run_id,
        "trigger": { "type": "message.received", "source": "api" },
        "event": {
            "event_id": format!("event-of-{run_id}"),
            "event_type": "message.received",
            "source": "api",
        },
        "conversation": { "conversation_id": "conversation-1", "workspace_id": "default" },
        "actor": { "actor_type": "user", "actor_id": "user-1" },
        "input": { "text": text },
        "delivery": { "surface": "api", "supports_streaming": true },
        "resources": {},
        "context": {
            "conversation_id": "conversation-1",
            "inline_policy": { "mode": "current_event", "delivered_count": 1 },
            "available_apis": {},
        },
        "state": {},
        "runtime": {
            "host": "greenroom",
            "protocol_version": "1",
            "trace_id": format!("trace-of-{run_id}"),
            "metadata": { "remaining_ms": 60_000 },
        },
        "config": config,
        "metadata": { "attempt": 1 },
    })
}
