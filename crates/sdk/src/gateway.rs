//! The gateways of the host, for programs that a runner starts: clients of MCP and of models.
//!
//! Invariant: the token is the run's: it is valid while this attempt runs, and widens nothing.

use greenroom_protocol::AgentRunContext;
use serde_json::Value;
use std::fmt;

/// Addresses and token of one run. `Debug` does not print the token.
#[derive(Clone, PartialEq, Eq)]
pub struct Gateway {
    run_id: String,
    host_url: String,
    token: String,
}

impl Gateway {
    /// None if the host gives no token to runs. A runner on another machine has an address of its own for the host.
    pub(crate) fn of(context: &AgentRunContext, host_url: Option<String>) -> Option<Self> {
        let told = |key: &str| context.runtime.metadata.get(key).and_then(Value::as_str);
        let host_url = host_url.or_else(|| told("host_url").map(str::to_owned))?;
        Some(Self {
            run_id: context.run_id.clone(),
            host_url: host_url.trim_end_matches('/').to_owned(),
            token: told("run_token")?.to_owned(),
        })
    }

    /// The secret for the header that the client has for keys. Keep it out of arguments and logs.
    pub fn token(&self) -> &str {
        &self.token
    }

    /// The tools of the run, over streamable HTTP.
    pub fn mcp_url(&self) -> String {
        format!("{}/mcp/runs/{}", self.host_url, self.run_id)
    }

    /// The base URL for clients of OpenAI: `/chat/completions` and `/responses` are below it.
    pub fn openai_url(&self) -> String {
        self.models("openai/v1")
    }

    /// The base URL for clients of Anthropic: `/v1/messages` is below it.
    pub fn anthropic_url(&self) -> String {
        self.models("anthropic")
    }

    /// The base URL for clients of Gemini: `/v1beta/models/…` and `/v1/models/…` are below it.
    pub fn gemini_url(&self) -> String {
        self.models("gemini")
    }

    fn models(&self, wire: &str) -> String {
        format!("{}/models/runs/{}/{wire}", self.host_url, self.run_id)
    }
}

impl fmt::Debug for Gateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gateway").field("mcp_url", &self.mcp_url()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn context(metadata: Value) -> AgentRunContext {
        let mut context = crate::testing::context("run_1", "hi", crate::Object::new());
        context["runtime"]["metadata"] = metadata;
        serde_json::from_value(context).unwrap()
    }

    #[test]
    fn addresses_and_token_are_those_of_the_run() {
        let context = context(json!({"run_token": "grt_1", "host_url": "http://127.0.0.1:8700"}));
        let gateway = Gateway::of(&context, None).unwrap();
        assert_eq!(gateway.mcp_url(), "http://127.0.0.1:8700/mcp/runs/run_1");
        assert_eq!(gateway.openai_url(), "http://127.0.0.1:8700/models/runs/run_1/openai/v1");
        assert_eq!(gateway.anthropic_url(), "http://127.0.0.1:8700/models/runs/run_1/anthropic");
        assert_eq!(gateway.gemini_url(), "http://127.0.0.1:8700/models/runs/run_1/gemini");
        assert_eq!(gateway.token(), "grt_1");
        assert!(!format!("{gateway:?}").contains("grt_1"));
        let remote = Gateway::of(&context, Some("https://host.example/a/".to_owned())).unwrap();
        assert_eq!(remote.mcp_url(), "https://host.example/a/mcp/runs/run_1");
    }

    #[test]
    fn without_a_token_there_is_no_gateway() {
        assert_eq!(Gateway::of(&context(json!({"host_url": "http://h"})), None), None);
        assert_eq!(Gateway::of(&context(json!({"run_token": "grt_1"})), None), None);
    }
}
