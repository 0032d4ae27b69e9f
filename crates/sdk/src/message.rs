//! The messages of a runner, serialized directly to the outbox.
//!
//! Invariant: one message is one line; JSON escapes line breaks.

use greenroom_protocol::wire::{RequestId, RpcError};
use serde::Serialize;
use serde_json::value::RawValue;

#[derive(Serialize)]
pub(crate) struct Response<T> {
    jsonrpc: &'static str,
    id: Option<RequestId>,
    result: T,
}

impl<T> Response<T> {
    pub(crate) fn new(id: RequestId, result: T) -> Self {
        Self { jsonrpc: "2.0", id: Some(id), result }
    }
}

#[derive(Serialize)]
pub(crate) struct ErrorResponse {
    jsonrpc: &'static str,
    id: Option<RequestId>,
    error: RpcError,
}

impl ErrorResponse {
    pub(crate) fn new(id: Option<RequestId>, code: i64, message: impl Into<String>) -> Self {
        Self { jsonrpc: "2.0", id, error: RpcError { code, message: message.into(), data: None } }
    }
}

#[derive(Serialize)]
pub(crate) struct Request<'a, T> {
    jsonrpc: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<u64>,
    method: &'a str,
    params: T,
}

impl<'a, T> Request<'a, T> {
    pub(crate) fn call(id: u64, method: &'a str, params: T) -> Self {
        Self { jsonrpc: "2.0", id: Some(id), method, params }
    }

    pub(crate) fn notification(method: &'a str, params: T) -> Self {
        Self { jsonrpc: "2.0", id: None, method, params }
    }
}

/// The parameters of `run.result`.
#[derive(Serialize)]
pub(crate) struct ResultParams<'a, D> {
    pub(crate) run_id: &'a str,
    #[serde(rename = "type")]
    pub(crate) kind: &'a str,
    pub(crate) data: D,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sequence: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) usage: Option<&'a greenroom_protocol::Object>,
}

/// The data of `message.delta`, borrowed: the one message that must be cheap.
#[derive(Serialize)]
pub(crate) struct DeltaData<'a> {
    pub(crate) chunk: DeltaChunk<'a>,
}

#[derive(Serialize)]
pub(crate) struct DeltaChunk<'a> {
    pub(crate) role: &'static str,
    pub(crate) content: &'a str,
}

/// Appends a message. Returns false, without a change, if it cannot be serialized.
pub(crate) fn write(buffer: &mut Vec<u8>, message: &impl Serialize) -> bool {
    let start = buffer.len();
    let written = serde_json::to_writer(&mut *buffer, message).is_ok();
    if !written {
        buffer.truncate(start);
    }
    written
}

/// An unparsed response of the host.
pub(crate) type Answer = Result<Box<RawValue>, RpcError>;
