//! One call of a plugin's tool over the real wire, in memory.

use crate::{Plugin, lines};
use greenroom_protocol::wire::{CallToolResult, Incoming, RequestId, method};
use serde_json::{Value, json};
use std::io;
use std::sync::Arc;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

const PIPE_BYTES: usize = 64 * 1024;

/// Calls a tool of a plugin once. A failing tool returns `error`; an unknown tool, or parameters that are not an
/// object, are rejected.
pub async fn call_tool(
    plugin: Plugin,
    tool_name: &str,
    parameters: Value,
) -> io::Result<CallToolResult> {
    let plugin = Arc::new(plugin.checked().map_err(io::Error::other)?);
    let (host, ours) = tokio::io::duplex(PIPE_BYTES);
    let (reader, writer) = tokio::io::split(ours);
    let serving = lines::serve(plugin, BufReader::new(reader), writer);
    let params =
        json!({ "tool_name": tool_name, "parameters": parameters, "tool_call_id": "call-1" });
    let request =
        json!({ "jsonrpc": "2.0", "id": 1, "method": method::CALL_TOOL, "params": params });
    let call = async {
        let (reader, mut writer) = tokio::io::split(host);
        writer.write_all(format!("{request}\n").as_bytes()).await?;
        let mut line = String::new();
        BufReader::new(reader).read_line(&mut line).await?;
        writer.shutdown().await?;
        read(&line)
    };
    let (_, result) = tokio::try_join!(serving, call)?;
    Ok(result)
}

fn read(line: &str) -> io::Result<CallToolResult> {
    let response = Incoming::parse(line)?;
    match (response.id, response.result, response.error) {
        (Some(RequestId::Number(1)), Some(result), None) => {
            Ok(CallToolResult::parse(result.get())?)
        }
        (_, _, Some(error)) => Err(io::Error::other(error.message)),
        _ => Err(io::Error::other("unexpected response from the plugin")),
    }
}
