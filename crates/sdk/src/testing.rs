//! A host in a box, for the tests of runners: one run over the real wire, in memory.
//!
//! Invariant: the runner is spoken to exactly as a host does, through `run_agent` and `run.result`.

use crate::plugin::CheckedPlugin;
use crate::{Object, Plugin, lines};
use greenroom_protocol::AgentRunResult;
use serde_json::{Value, json};
use std::io;
use std::sync::Arc;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

const PIPE_BYTES: usize = 64 * 1024;

/// Runs the plugin's first runner once with a text and a config; returns the results in order.
///
/// ```no_run
/// # async fn example(plugin: greenroom_sdk::Plugin) -> std::io::Result<()> {
/// let results = greenroom_sdk::testing::run(plugin, "hello", Default::default()).await?;
/// assert_eq!(results.last().map(|result| result.kind.as_str()), Some("run.completed"));
/// # Ok(())
/// # }
/// ```
pub async fn run(plugin: Plugin, text: &str, config: Object) -> io::Result<Vec<AgentRunResult>> {
    let plugin = Arc::new(plugin.checked().map_err(io::Error::other)?);
    let request = request(&plugin, text, config);
    let (host, runner) = tokio::io::duplex(PIPE_BYTES);
    let (reader, writer) = tokio::io::split(runner);
    let serving = lines::serve(plugin, BufReader::new(reader), writer);
    let (_, results) = tokio::try_join!(serving, talk(host, request))?;
    Ok(results)
}

async fn talk(host: tokio::io::DuplexStream, request: Value) -> io::Result<Vec<AgentRunResult>> {
    let (reader, mut writer) = tokio::io::split(host);
    writer.write_all(format!("{request}\n").as_bytes()).await?;
    let mut lines = BufReader::new(reader).lines();
    let mut results = Vec::new();
    while let Some(line) = lines.next_line().await? {
        let mut message: Value = serde_json::from_str(&line)?;
        if message["method"] == "run.result" {
            results.push(serde_json::from_value(message["params"].take())?);
        } else if message["id"] == request["id"] {
            break;
        }
    }
    writer.shutdown().await?;
    Ok(results)
}

fn request(plugin: &CheckedPlugin, text: &str, config: Object) -> Value {
    let runner = plugin.manifests()[0];
    json!({
        "jsonrpc": "2.0",
        "id": 1,
        "method": "run_agent",
        "params": {
            "runner_id": runner.id,
            "runner_name": runner.name,
            "context": context("run-1", text, config),
        },
    })
}

/// A run context as a host would build it for a message with this text.
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
