//! Local checks: an immediate error instead of an error response.
//!
//! Invariant: these checks use only the run context. They never replace the host's, and
//! [`RunCtx::call`](crate::RunCtx::call) skips them.

use greenroom_protocol::api::Method;
use greenroom_protocol::manifest::{
    KnowledgePermission, ModelPermission, StorageArea, ToolPermission,
};
use greenroom_protocol::{AgentAPIError, AgentRunContext, ContextAPICapabilities, ErrorCode};

/// Rejects a method whose flag is off.
pub(crate) fn available(ctx: &AgentRunContext, method: Method) -> Result<(), AgentAPIError> {
    match flag(&ctx.context.available_apis, method) {
        Some((name, false)) => {
            let text = format!("this run may not use `{method}`: `available_apis.{name}` is off");
            Err(AgentAPIError::new(ErrorCode::Unauthorized, text))
        }
        Some((_, true)) | None => Ok(()),
    }
}

/// The flag in `ctx.context.available_apis` for a method; `None` if `ctx.resources` or the host decides.
pub(crate) fn flag(apis: &ContextAPICapabilities, method: Method) -> Option<(&'static str, bool)> {
    Some(match method {
        Method::HistoryPage => ("history_page", apis.history_page),
        Method::HistorySearch => ("history_search", apis.history_search),
        Method::EventsGet => ("event_get", apis.event_get),
        Method::EventsPage => ("event_page", apis.event_page),
        Method::ArtifactsMetadata => ("artifact_metadata", apis.artifact_metadata),
        Method::ArtifactsReadRange | Method::ArtifactsOpenStream => {
            ("artifact_read", apis.artifact_read)
        }
        Method::ArtifactsCreate
        | Method::ArtifactsBegin
        | Method::ArtifactsAppend
        | Method::ArtifactsCommit => ("artifact_create", apis.artifact_create),
        Method::StateGet | Method::StateSet | Method::StateDelete | Method::StateList => {
            ("state", apis.state)
        }
        Method::StorageGet | Method::StorageSet | Method::StorageDelete | Method::StorageList => {
            ("storage", apis.storage)
        }
        Method::SteeringPull => ("steering_pull", apis.steering_pull),
        Method::ModelsInvoke
        | Method::ModelsStream
        | Method::ModelsRerank
        | Method::ModelsEmbed
        | Method::ModelsCountTokens
        | Method::ToolsGetDetail
        | Method::ToolsSearch
        | Method::ToolsCall
        | Method::KnowledgeList
        | Method::KnowledgeRetrieve
        | Method::PlatformRequestAction
        | Method::HarnessPermission => return None,
    })
}

pub(crate) fn area(ctx: &AgentRunContext, area: StorageArea) -> Result<(), AgentAPIError> {
    let storage = &ctx.resources.storage;
    let (name, is_on) = match area {
        StorageArea::Plugin => ("plugin", storage.plugin),
        StorageArea::Workspace => ("workspace", storage.workspace),
        StorageArea::Binding => ("binding", storage.binding),
    };
    match is_on {
        true => Ok(()),
        false => {
            let text = format!("the storage area `{name}` is not granted to this run");
            Err(AgentAPIError::new(ErrorCode::Unauthorized, text))
        }
    }
}

pub(crate) fn model(
    ctx: &AgentRunContext,
    id: &str,
    operation: ModelPermission,
) -> Result<(), AgentAPIError> {
    let resource = ctx.resources.models.iter().find(|model| model.model_id == id);
    granted("model", id, operation, resource.map(|model| &model.operations))
}

pub(crate) fn tool(
    ctx: &AgentRunContext,
    name: &str,
    operation: ToolPermission,
) -> Result<(), AgentAPIError> {
    let resource = ctx.resources.tools.iter().find(|tool| tool.tool_name == name);
    granted("tool", name, operation, resource.map(|tool| &tool.operations))
}

/// A call of an unlisted tool goes to the host: it returns `not_found`, and tells its operator if only a grant is
/// missing.
pub(crate) fn tool_call(ctx: &AgentRunContext, name: &str) -> Result<(), AgentAPIError> {
    match ctx.resources.tools.iter().any(|tool| tool.tool_name == name) {
        true => tool(ctx, name, ToolPermission::Call),
        false => Ok(()),
    }
}

pub(crate) fn knowledge_base(
    ctx: &AgentRunContext,
    id: &str,
    operation: KnowledgePermission,
) -> Result<(), AgentAPIError> {
    let resource = ctx.resources.knowledge_bases.iter().find(|base| base.kb_id == id);
    granted("knowledge base", id, operation, resource.map(|base| &base.operations))
}

/// A resource without operations allows all of them locally.
fn granted<T: PartialEq + std::fmt::Debug>(
    what: &str,
    name: &str,
    operation: T,
    operations: Option<&Vec<T>>,
) -> Result<(), AgentAPIError> {
    let Some(operations) = operations else {
        let text = format!("`ctx.resources` contains no {what} `{name}`");
        return Err(AgentAPIError::new(ErrorCode::NotFound, text));
    };
    if operations.is_empty() || operations.contains(&operation) {
        return Ok(());
    }
    let operation = format!("{operation:?}").to_lowercase();
    let text = format!("the {what} `{name}` is not granted for `{operation}`");
    Err(AgentAPIError::new(ErrorCode::Unauthorized, text))
}
