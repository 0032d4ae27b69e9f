//! Tools that plugins offer, as the host sees them.
//!
//! Invariant: a list belongs to a runner by its name in the configuration; its version changes when, and only
//! when, the list does.

use greenroom_protocol::Object;
use greenroom_protocol::wire::{CallToolResult, PluginTool, RpcError};
use serde_json::Value;
use std::sync::Arc;
use tokio::time::Instant;

/// The tools of one runner process, also while it is down.
#[derive(Debug, Clone, PartialEq)]
pub struct PluginTools {
    /// The name in the configuration.
    pub runner: String,
    pub tools: Arc<[PluginTool]>,
    pub version: u64,
}

/// One call. The caller has checked that it may be made.
#[derive(Debug, Clone, PartialEq)]
pub struct PluginToolCall {
    /// As the plugin named it.
    pub tool_name: String,
    pub parameters: Object,
    pub tool_call_id: String,
    /// The run that the call is for.
    pub run_id: Option<String>,
    pub caller: ToolCaller,
    /// When it times out.
    pub deadline: Instant,
}

/// For whom a tool is called.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolCaller {
    pub conversation_id: Option<String>,
    pub actor_id: Option<String>,
}

/// The answer of a tool; with an `error`, the tool itself has failed.
pub type PluginToolAnswer = CallToolResult;

/// Why a call has no answer.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum PluginToolError {
    /// It was not made.
    #[error("{message}")]
    Unavailable { message: String },
    /// The process or its connection ended during the call: the tool may have had effects.
    #[error("{message}")]
    Crashed { message: String },
    /// The plugin answered with a JSON-RPC error.
    #[error("the plugin refused the call: {message}")]
    Refused { code: i64, message: String, data: Option<Value> },
    #[error("the call did not end before its deadline")]
    TimedOut,
    #[error("{message}")]
    TooLarge { message: String },
    #[error("the call was cancelled")]
    Cancelled,
    #[error("{message}")]
    Protocol { message: String },
}

impl PluginToolError {
    pub(crate) fn refused(error: RpcError) -> Self {
        Self::Refused { code: error.code, message: error.message, data: error.data }
    }
}
