//! Tools: `tools.*` (CONTRACT §4).
//!
//! Invariant: a tool is one of `ctx.resources.tools`; its credentials stay with the host.

use crate::{RunCtx, local};
use greenroom_protocol::api::tools::{
    ToolCallParams, ToolCallResult, ToolDetailParams, ToolSearchParams, ToolSearchResult,
};
use greenroom_protocol::manifest::ToolPermission;
use greenroom_protocol::{AgentAPIError, Object, ToolResource};

/// The methods `tools.*`, for one run.
pub struct ToolsApi<'a>(pub(crate) &'a RunCtx);

impl ToolsApi<'_> {
    /// A tool with the schema of its parameters.
    pub async fn get_detail(
        &self,
        tool_name: impl Into<String>,
    ) -> Result<ToolResource, AgentAPIError> {
        let params = ToolDetailParams { tool_name: tool_name.into() };
        local::tool(self.0, &params.tool_name, ToolPermission::Detail)?;
        self.0.ask(&params).await
    }

    /// The five tools that fit best.
    pub async fn search(
        &self,
        query: impl Into<String>,
    ) -> Result<Vec<ToolResource>, AgentAPIError> {
        self.search_with(ToolSearchParams::new(query)).await
    }

    /// As many tools as wanted that fit.
    pub async fn search_with(
        &self,
        params: ToolSearchParams,
    ) -> Result<Vec<ToolResource>, AgentAPIError> {
        let found: ToolSearchResult = self.0.ask(&params).await?;
        Ok(found.items)
    }

    /// Calls a tool. What the tool itself finds wrong stands in `error` of the result.
    pub async fn call(
        &self,
        tool_name: impl Into<String>,
        parameters: Object,
    ) -> Result<ToolCallResult, AgentAPIError> {
        self.call_with(ToolCallParams::new(tool_name, parameters)).await
    }

    /// Calls a tool on behalf of a model, with the model's own id of the call, or on the word of a user.
    /// The run's clock stands still on this side meanwhile, as the call may wait for a person; the host ends
    /// it in time.
    pub async fn call_with(&self, params: ToolCallParams) -> Result<ToolCallResult, AgentAPIError> {
        local::tool_call(self.0, &params.tool_name)?;
        let _pause = self.0.pause_deadline();
        self.0.ask(&params).await
    }
}
