//! JSON Schema (draft 2020-12) of every top-level structure.
//!
//! Invariant: every structure that other programs read or write is listed, and `docs/schema/` contains exactly
//! these schemas.

use crate::payload::{
    ActionRequested, ArtifactCreated, MessageCompleted, MessageDelta, RunCompleted, RunFailed,
    StateUpdated, ToolCallCompleted, ToolCallStarted,
};
use crate::records::{RecordLink, RecordOp, RecordView};
use crate::wire::{
    CallToolParams, CallToolResult, CancelParams, InitializeParams, InitializeResult,
    ListToolsResult, PluginTool, RequestCancelParams, RpcError, StreamItemParams,
};
use crate::{
    AgentAPIError, AgentRunContext, AgentRunRequest, AgentRunResult, AgentRunnerManifest,
    EventAnswer, InteractionRequest, InteractionSubmission, ListAgentRunnersResponse, NewEvent,
    RunView, TranscriptItem,
};
use schemars::Schema;

macro_rules! schemas {
    ($($name:ident),+ $(,)?) => { vec![$((stringify!($name), schemars::schema_for!($name))),+] };
}

mod api;

/// Every schema by the name of its structure, which is also its file name.
pub fn all() -> Vec<(&'static str, Schema)> {
    let mut all = schemas![
        ActionRequested,
        AgentAPIError,
        AgentRunContext,
        AgentRunRequest,
        AgentRunResult,
        AgentRunnerManifest,
        ArtifactCreated,
        CallToolParams,
        CallToolResult,
        CancelParams,
        EventAnswer,
        InitializeParams,
        InitializeResult,
        InteractionRequest,
        InteractionSubmission,
        ListAgentRunnersResponse,
        ListToolsResult,
        MessageCompleted,
        MessageDelta,
        NewEvent,
        PluginTool,
        RecordLink,
        RecordOp,
        RecordView,
        RequestCancelParams,
        RpcError,
        RunCompleted,
        RunFailed,
        RunView,
        StateUpdated,
        StreamItemParams,
        ToolCallCompleted,
        ToolCallStarted,
        TranscriptItem,
    ];
    all.extend(api::all());
    all
}

pub fn file_text(schema: &Schema) -> String {
    format!("{:#}\n", schema.as_value())
}
