//! JSON-RPC 2.0 of the native runner wire (CONTRACT §3).
//!
//! Invariant: a message is parsed once and its parameters are not copied; `"result": null` is a response, a
//! missing `result` is not.

use crate::{AgentAPIError, object};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;

mod tools;

pub use tools::{
    CallToolParams, CallToolResult, InvalidTool, ListToolsResult, PluginTool, TOOL_BYTES_MAX,
    TOOL_NAME_BYTES_MAX, TOOL_TIMEOUT_S_MAX, TOOLS_MAX, ToolRisk, is_tool_name,
};

/// The JSON-RPC code of errors that contain an `AgentAPIError`.
pub const API_ERROR: i64 = -32000;
pub const PARSE_ERROR: i64 = -32700;
pub const INVALID_REQUEST: i64 = -32600;
pub const METHOD_NOT_FOUND: i64 = -32601;
pub const INVALID_PARAMS: i64 = -32602;
pub const INTERNAL_ERROR: i64 = -32603;

pub mod method {
    pub const INITIALIZE: &str = "initialize";
    pub const LIST_AGENT_RUNNERS: &str = "list_agent_runners";
    pub const RUN_AGENT: &str = "run_agent";
    pub const RUN_CANCEL: &str = "run.cancel";
    pub const RUN_RESULT: &str = "run.result";
    pub const LIST_TOOLS: &str = "list_tools";
    pub const CALL_TOOL: &str = "call_tool";
    pub const SHUTDOWN: &str = "shutdown";
    pub const REQUEST_CANCEL: &str = "request.cancel";
    pub const STREAM_ITEM: &str = "stream.item";
}

/// A message in either direction, parsed without copying its parameters.
#[derive(Debug, Deserialize)]
pub struct Incoming<'a> {
    #[serde(default)]
    pub id: Option<RequestId>,
    #[serde(default, borrow, deserialize_with = "borrowed_text")]
    pub method: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    pub params: Option<&'a RawValue>,
    #[serde(default, borrow, deserialize_with = "present")]
    pub result: Option<&'a RawValue>,
    #[serde(default, deserialize_with = "object::optional")]
    pub error: Option<RpcError>,
}

impl<'a> Incoming<'a> {
    /// Parses one message; lists, including batches, are invalid.
    pub fn parse(json: &'a str) -> serde_json::Result<Self> {
        object::from_str(json)
    }
}

fn borrowed_text<'de: 'a, 'a, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<Cow<'a, str>>, D::Error> {
    #[derive(Deserialize)]
    struct Text<'a>(#[serde(borrow)] Cow<'a, str>);
    Ok(Option::<Text<'a>>::deserialize(from)?.map(|Text(text)| text))
}

fn present<'de: 'a, 'a, D: Deserializer<'de>>(from: D) -> Result<Option<&'a RawValue>, D::Error> {
    <&RawValue>::deserialize(from).map(Some)
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum RequestId {
    Number(i64),
    Text(String),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RpcError {
    pub code: i64,
    pub message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}

impl From<AgentAPIError> for RpcError {
    fn from(error: AgentAPIError) -> Self {
        let message = error.message.clone();
        RpcError { code: API_ERROR, message, data: serde_json::to_value(error).ok() }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InitializeParams {
    pub protocol_version: String,
    pub host: HostIdentity,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostIdentity {
    pub name: String,
    pub version: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InitializeResult {
    pub protocol_version: String,
    pub plugin: PluginIdentity,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PluginIdentity {
    pub author: String,
    pub name: String,
    #[serde(default)]
    pub version: String,
}

impl PluginIdentity {
    /// `author/name`, as pinned in the configuration.
    pub fn path(&self) -> String {
        format!("{}/{}", self.author, self.name)
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CancelParams {
    pub run_id: String,
    #[serde(default)]
    pub reason: Option<String>,
}

/// The parameters of `request.cancel`: the runner cancels one of its calls, or the host a `call_tool`. A
/// cancelled call needs no response.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RequestCancelParams {
    pub request_id: RequestId,
}

/// The parameters of `stream.item`: one item of a streaming call, before its response.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StreamItemParams {
    pub request_id: RequestId,
    pub item: Value,
}
