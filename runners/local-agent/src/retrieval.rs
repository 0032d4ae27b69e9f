//! Which tools a request offers.

use crate::config::Config;
use greenroom_sdk::{AgentAPIError, Object, RunCtx, ToolResource, Value, json};

pub(crate) const SEARCH_TOOLS: &str = "search_tools";

pub(crate) struct Offer {
    tools: Vec<ToolResource>,
}

impl Offer {
    pub(crate) async fn new(ctx: &RunCtx, _config: &Config, own: Vec<ToolResource>) -> Self {
        let mut tools = ctx.resources.tools.clone();
        tools.extend(own);
        Self { tools }
    }

    pub(crate) fn tools(&self) -> &[ToolResource] {
        &self.tools
    }

    pub(crate) fn used(&mut self, _name: &str) {}

    pub(crate) async fn search(
        &self,
        _ctx: &RunCtx,
        _args: &Object,
    ) -> Result<Value, AgentAPIError> {
        Ok(json!({"tools": []}))
    }
}
