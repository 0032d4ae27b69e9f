//! The schemas of the runner API: methods, parameters, items, results.
//!
//! Invariant: every top-level structure of `crate::api` is listed.

use crate::api::artifacts::{
    ArtifactAppendParams, ArtifactAppended, ArtifactBeginParams, ArtifactCommitParams,
    ArtifactCreateParams, ArtifactIdParams, ArtifactRange, ArtifactStreamEnd, ArtifactStreamItem,
    ArtifactUpload, ArtifactView, OpenStreamParams, ReadRangeParams,
};
use crate::api::audit::AuditView;
use crate::api::events::{EventGetParams, EventPage, EventPageParams, EventView};
use crate::api::harness::{HarnessPermission, HarnessPermissionParams};
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
use crate::{Method, ToolResource};
use schemars::Schema;

pub(super) fn all() -> Vec<(&'static str, Schema)> {
    schemas![
        ActionOutcome,
        ApprovalView,
        ArtifactCreateParams,
        ArtifactBeginParams,
        ArtifactUpload,
        ArtifactAppendParams,
        ArtifactAppended,
        ArtifactCommitParams,
        ArtifactIdParams,
        ArtifactRange,
        ArtifactStreamEnd,
        ArtifactStreamItem,
        ArtifactView,
        AuditView,
        CountTokensParams,
        Deleted,
        EmbedResult,
        EventGetParams,
        EventPage,
        EventPageParams,
        EventView,
        HarnessPermission,
        HarnessPermissionParams,
        HistoryPage,
        HistoryPageParams,
        HistorySearchParams,
        HistorySearchResult,
        KnowledgeBases,
        KnowledgeListParams,
        KnowledgePassages,
        KnowledgeRetrieveParams,
        Method,
        ModelEmbedParams,
        ModelInvokeParams,
        ModelRerankParams,
        ModelStreamItem,
        OpenStreamParams,
        ProviderResponse,
        ReadRangeParams,
        RequestActionParams,
        RerankResult,
        StateDeleteParams,
        StateGetParams,
        StateListParams,
        StatePage,
        StateSetParams,
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
        TokenCount,
        ToolCallParams,
        ToolCallResult,
        ToolDetailParams,
        ToolResource,
        ToolSearchParams,
        ToolSearchResult,
    ]
}
