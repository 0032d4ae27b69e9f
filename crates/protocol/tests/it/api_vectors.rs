//! Parses and serializes the structures of the runner API, for the vectors.
//!
//! Invariant: parameters are parsed as by the host, with all checks.

use crate::vectors::{reread_as, write};
use greenroom_protocol::api::{self, Params, parse};
use serde_json::Value;

pub(crate) fn reread(name: &str, text: &str) -> Result<Value, String> {
    match name {
        "ArtifactAppendParams" => reread_params::<api::artifacts::ArtifactAppendParams>(text),
        "ArtifactAppended" => reread_as::<api::artifacts::ArtifactAppended>(text),
        "ArtifactBeginParams" => reread_params::<api::artifacts::ArtifactBeginParams>(text),
        "ArtifactCommitParams" => reread_params::<api::artifacts::ArtifactCommitParams>(text),
        "ArtifactUpload" => reread_as::<api::artifacts::ArtifactUpload>(text),
        "ArtifactCreateParams" => reread_params::<api::artifacts::ArtifactCreateParams>(text),
        "ArtifactIdParams" => reread_params::<api::artifacts::ArtifactIdParams>(text),
        "ArtifactRange" => reread_as::<api::artifacts::ArtifactRange>(text),
        "ArtifactStreamEnd" => reread_as::<api::artifacts::ArtifactStreamEnd>(text),
        "ArtifactStreamItem" => reread_as::<api::artifacts::ArtifactStreamItem>(text),
        "ArtifactView" => reread_as::<api::artifacts::ArtifactView>(text),
        "OpenStreamParams" => reread_params::<api::artifacts::OpenStreamParams>(text),
        "ReadRangeParams" => reread_params::<api::artifacts::ReadRangeParams>(text),
        "AuditView" => reread_as::<api::audit::AuditView>(text),
        "EventGetParams" => reread_params::<api::events::EventGetParams>(text),
        "EventPage" => reread_as::<api::events::EventPage>(text),
        "EventPageParams" => reread_params::<api::events::EventPageParams>(text),
        "EventView" => reread_as::<api::events::EventView>(text),
        "HistoryPage" => reread_as::<api::history::HistoryPage>(text),
        "HistoryPageParams" => reread_params::<api::history::HistoryPageParams>(text),
        "HistorySearchParams" => reread_params::<api::history::HistorySearchParams>(text),
        "HistorySearchResult" => reread_as::<api::history::HistorySearchResult>(text),
        "KnowledgeBases" => reread_as::<api::knowledge::KnowledgeBases>(text),
        "KnowledgeListParams" => reread_params::<api::knowledge::KnowledgeListParams>(text),
        "KnowledgePassages" => reread_as::<api::knowledge::KnowledgePassages>(text),
        "KnowledgeRetrieveParams" => reread_params::<api::knowledge::KnowledgeRetrieveParams>(text),
        "CountTokensParams" => reread_params::<api::models::CountTokensParams>(text),
        "EmbedResult" => reread_as::<api::models::EmbedResult>(text),
        "ModelEmbedParams" => reread_params::<api::models::ModelEmbedParams>(text),
        "ModelInvokeParams" => reread_params::<api::models::ModelInvokeParams>(text),
        "ModelRerankParams" => reread_params::<api::models::ModelRerankParams>(text),
        "ModelStreamItem" => reread_as::<api::models::ModelStreamItem>(text),
        "ProviderResponse" => reread_as::<api::models::ProviderResponse>(text),
        "RerankResult" => reread_as::<api::models::RerankResult>(text),
        "TokenCount" => reread_as::<api::models::TokenCount>(text),
        "ActionOutcome" => reread_as::<api::platform::ActionOutcome>(text),
        "ApprovalView" => reread_as::<api::platform::ApprovalView>(text),
        "HarnessPermission" => reread_as::<api::harness::HarnessPermission>(text),
        "HarnessPermissionParams" => reread_params::<api::harness::HarnessPermissionParams>(text),
        "RequestActionParams" => reread_params::<api::platform::RequestActionParams>(text),
        "Deleted" => reread_as::<api::state::Deleted>(text),
        "StateDeleteParams" => reread_params::<api::state::StateDeleteParams>(text),
        "StateGetParams" => reread_params::<api::state::StateGetParams>(text),
        "StateListParams" => reread_params::<api::state::StateListParams>(text),
        "StatePage" => reread_as::<api::state::StatePage>(text),
        "StateSetParams" => reread_params::<api::state::StateSetParams>(text),
        "StateValue" => reread_as::<api::state::StateValue>(text),
        "StateWritten" => reread_as::<api::state::StateWritten>(text),
        "SteeringItems" => reread_as::<api::steering::SteeringItems>(text),
        "SteeringPullParams" => reread_params::<api::steering::SteeringPullParams>(text),
        "StorageDeleteParams" => reread_params::<api::storage::StorageDeleteParams>(text),
        "StorageGetParams" => reread_params::<api::storage::StorageGetParams>(text),
        "StorageListParams" => reread_params::<api::storage::StorageListParams>(text),
        "StoragePage" => reread_as::<api::storage::StoragePage>(text),
        "StorageSetParams" => reread_params::<api::storage::StorageSetParams>(text),
        "StorageValue" => reread_as::<api::storage::StorageValue>(text),
        "StorageWritten" => reread_as::<api::storage::StorageWritten>(text),
        "ToolCallParams" => reread_params::<api::tools::ToolCallParams>(text),
        "ToolCallResult" => reread_as::<api::tools::ToolCallResult>(text),
        "ToolDetailParams" => reread_params::<api::tools::ToolDetailParams>(text),
        "ToolSearchParams" => reread_params::<api::tools::ToolSearchParams>(text),
        "ToolSearchResult" => reread_as::<api::tools::ToolSearchResult>(text),
        "Method" => reread_as::<greenroom_protocol::Method>(text),
        "ToolResource" => reread_as::<greenroom_protocol::ToolResource>(text),
        other => panic!("no structure is called `{other}`"),
    }
}

fn reread_params<P: Params>(text: &str) -> Result<Value, String> {
    parse::<P>(text).map_err(|error| error.to_string()).map(|params| write(&params))
}
