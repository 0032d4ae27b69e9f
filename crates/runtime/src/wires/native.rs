//! Frames of the native wire: JSON-RPC 2.0, one message per line (CONTRACT §3).
//!
//! Invariant: a frame is one line and ends with a newline.

pub(super) mod decoder;
pub(super) mod handshake;

use crate::tools::PluginToolCall;
use bytes::Bytes;
use greenroom_protocol::AgentAPIError;
use greenroom_protocol::wire::{CallToolParams, RpcError, method};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use tokio::time::Instant;

pub(super) fn request(number: i64, method: &str, params: &impl Serialize) -> Bytes {
    let mut frame =
        format!(r#"{{"jsonrpc":"2.0","id":{number},"method":"{method}","params":"#).into_bytes();
    // Protocol types have string keys only and no failing serialisers.
    serde_json::to_writer(&mut frame, params).expect("protocol types are JSON");
    frame.extend_from_slice(b"}\n");
    frame.into()
}

pub(super) fn tool_params(call: &PluginToolCall) -> Box<RawValue> {
    let left = call.deadline.saturating_duration_since(Instant::now()).as_millis();
    to_raw_value(&CallToolParams {
        tool_name: call.tool_name.clone(),
        parameters: call.parameters.clone(),
        tool_call_id: call.tool_call_id.clone(),
        run_id: call.run_id.clone(),
        deadline_ms: Some(u64::try_from(left).unwrap_or(u64::MAX)),
    })
    .expect("protocol types are JSON")
}

/// A message without an answer.
pub(super) fn notification(method: &str, params: &serde_json::Value) -> Bytes {
    let message = serde_json::json!({ "jsonrpc": "2.0", "method": method, "params": params });
    format!("{message}\n").into()
}

pub(super) fn answer(id: &str, answer: Result<Box<RawValue>, AgentAPIError>) -> Bytes {
    let frame = match answer {
        Ok(result) => format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}\n"),
        Err(error) => {
            let error = serde_json::to_string(&RpcError::from(error)).unwrap_or_default();
            format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{error}}}\n")
        }
    };
    frame.into()
}

pub(super) fn item(request_id: &str, item: &RawValue) -> Bytes {
    let name = method::STREAM_ITEM;
    format!(
        "{{\"jsonrpc\":\"2.0\",\"method\":\"{name}\",\"params\":{{\"request_id\":{request_id},\"item\":{item}}}}}\n"
    )
    .into()
}
