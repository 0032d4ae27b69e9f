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

    /// The five best matches.
    pub async fn search(
        &self,
        query: impl Into<String>,
    ) -> Result<Vec<ToolResource>, AgentAPIError> {
        self.search_with(ToolSearchParams::new(query)).await
    }

    /// The best matches.
    pub async fn search_with(
        &self,
        params: ToolSearchParams,
    ) -> Result<Vec<ToolResource>, AgentAPIError> {
        let found: ToolSearchResult = self.0.ask(&params).await?;
        Ok(found.items)
    }

    /// Calls a tool. A failing tool returns `error` in its result.
    pub async fn call(
        &self,
        tool_name: impl Into<String>,
        parameters: Object,
    ) -> Result<ToolCallResult, AgentAPIError> {
        self.call_with(ToolCallParams::new(tool_name, parameters)).await
    }

    /// Calls a tool for a model, with the model's call id, or for a user's command. The run's deadline is paused on
    /// this side, because the call may wait for approval; the host enforces it.
    pub async fn call_with(&self, params: ToolCallParams) -> Result<ToolCallResult, AgentAPIError> {
        local::tool_call(self.0, &params.tool_name)?;
        let _pause = self.0.pause_deadline();
        self.0.ask(&params).await
    }
}
