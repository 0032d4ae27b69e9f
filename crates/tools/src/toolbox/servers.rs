//! The MCP servers among the sources of tools: calls and sign-ins.
//!
//! Invariant: a sign-in is completed at the server with its state, or at none.

use super::{Invocation, Toolbox};
use crate::mcp::{Ask, McpCall, McpServer, OAuthError, Redirected};
use crate::{ToolFailure, ToolOutput};
use std::sync::Arc;

impl Toolbox {
    pub fn server(&self, name: &str) -> Option<&Arc<McpServer>> {
        self.servers.iter().find(|server| server.name() == name)
    }

    /// Completes the sign-in with this state; returns its server.
    pub async fn finish_sign_in(
        &self,
        redirected: &Redirected,
        is_at: &(dyn Fn(&str) -> bool + Sync),
    ) -> Result<String, OAuthError> {
        for server in &self.servers {
            match server.finish_sign_in(redirected, is_at).await {
                Err(OAuthError::UnknownState) => {}
                done => return done.map(|()| server.name().to_owned()),
            }
        }
        Err(OAuthError::UnknownState)
    }

    pub(super) async fn call_server(&self, name: &str, call: &Invocation<'_>) -> ToolOutput {
        let Some(server) = self.server(name) else {
            let message = format!("the server `{name}` is no longer configured");
            return ToolOutput::failure(ToolFailure::new("UNAVAILABLE", message));
        };
        let (cancel, progress) = (call.cancel.clone(), call.progress.clone());
        let run_id = call.run_id.to_owned();
        let ask = call.ask.clone().map(|ask| Ask { run_id, ask });
        let limits = McpCall { deadline: call.deadline, cancel, progress, ask };
        server.call(&call.entry.tool.name, call.args.clone(), limits).await
    }
}
