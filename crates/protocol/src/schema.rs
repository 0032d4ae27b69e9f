//! JSON Schema (draft 2020-12) of every structure that stands alone on a wire.
//!
//! Invariant: a structure that a program outside may have to read or write is in the list, and
//! `docs/schema/` holds exactly what this list gives.

use crate::api::artifacts::{
    ArtifactCreateParams, ArtifactIdParams, ArtifactRange, ArtifactStreamEnd, ArtifactStreamItem,
    ArtifactView, OpenStreamParams, ReadRangeParams,
};
use crate::api::audit::AuditView;
use crate::api::events::{EventGetParams, EventPage, EventPageParams, EventView};
use crate::api::history::{
    HistoryPage, HistoryPageParams, HistorySearchParams, HistorySearchResult,
};
use crate::api::knowledge::{
    KnowledgeBases, KnowledgeListParams, KnowledgePassages, KnowledgeRetrieveParams,
};
use crate::api::models::{
    CountTokensParams, EmbedResult, ModelEmbedParams, ModelInvokeParams, ModelRerankParams,
    ModelStreamItem, ProviderResponse, RerankResult, TokenCount,
};
use crate::api::platform::{ActionOutcome, ApprovalView, RequestActionParams};
use crate::api::state::{
    Deleted, StateDeleteParams, StateGetParams, StateListParams, StatePage, StateSetParams,
    StateValue, StateWritten,
};
use crate::api::steering::{SteeringItems, SteeringPullParams};
use crate::api::storage::{
    StorageDeleteParams, StorageGetParams, StorageListParams, StoragePage, StorageSetParams,
    StorageValue, StorageWritten,
};
use crate::api::tools::{
    ToolCallParams, ToolCallResult, ToolDetailParams, ToolSearchParams, ToolSearchResult,
};
use crate::payload::{
    ActionRequested, ArtifactCreated, MessageCompleted, MessageDelta, RunCompleted, RunFailed,
    StateUpdated, ToolCallCompleted, ToolCallStarted,
};
use crate::wire::{
    CancelParams, InitializeParams, InitializeResult, RequestCancelParams, RpcError,
    StreamItemParams,
};
use crate::{
    AgentAPIError, AgentRunContext, AgentRunRequest, AgentRunResult, AgentRunnerManifest,
    EventAnswer, ListAgentRunnersResponse, Method, NewEvent, RunView, ToolResource, TranscriptItem,
};
use schemars::{Schema, schema_for};

/// Every schema by the name of its structure, which is also the name of its file.
pub fn all() -> Vec<(&'static str, Schema)> {
    macro_rules! schemas {
        ($($name:ident),+ $(,)?) => { vec![$((stringify!($name), schema_for!($name))),+] };
    }
    schemas![
        ActionOutcome,
        ActionRequested,
        AgentAPIError,
        AgentRunContext,
        AgentRunRequest,
        AgentRunResult,
        AgentRunnerManifest,
        ApprovalView,
        ArtifactCreateParams,
        ArtifactCreated,
        ArtifactIdParams,
        ArtifactRange,
        ArtifactStreamEnd,
        ArtifactStreamItem,
        ArtifactView,
        AuditView,
        CancelParams,
        CountTokensParams,
        Deleted,
        EmbedResult,
        EventAnswer,
        EventGetParams,
        EventPage,
        EventPageParams,
        EventView,
        HistoryPage,
        HistoryPageParams,
        HistorySearchParams,
        HistorySearchResult,
        InitializeParams,
        InitializeResult,
        KnowledgeBases,
        KnowledgeListParams,
        KnowledgePassages,
        KnowledgeRetrieveParams,
        ListAgentRunnersResponse,
        MessageCompleted,
        MessageDelta,
        Method,
        ModelEmbedParams,
        ModelInvokeParams,
        ModelRerankParams,
        ModelStreamItem,
        NewEvent,
        OpenStreamParams,
        ProviderResponse,
        ReadRangeParams,
        RequestActionParams,
        RequestCancelParams,
        RerankResult,
        RpcError,
        RunCompleted,
        RunFailed,
        RunView,
        StateDeleteParams,
        StateGetParams,
        StateListParams,
        StatePage,
        StateSetParams,
        StateUpdated,
        StateValue,
        StateWritten,
        SteeringItems,
        SteeringPullParams,
        StorageDeleteParams,
        StorageGetParams,
        StorageListParams,
        StoragePage,
        StorageSetParams,
        StorageValue,
        StorageWritten,
        StreamItemParams,
        TokenCount,
        ToolCallCompleted,
        ToolCallParams,
        ToolCallResult,
        ToolCallStarted,
        ToolDetailParams,
        ToolResource,
        ToolSearchParams,
        ToolSearchResult,
        TranscriptItem,
    ]
}

/// The text of a schema's file.
pub fn file_text(schema: &Schema) -> String {
    format!("{:#}\n", schema.as_value())
}
