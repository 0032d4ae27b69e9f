//! `tools.*`: looking up and calling granted tools.
//!
//! Invariant: a tool is identified as in `ctx.resources.tools`; a failed tool returns `error`, a rejected call is
//! an API error.

use super::fields::{check_name, check_query, fixed, limit, or_default};
use super::{Method, Params, TOP_K_MAX};
use crate::{Object, ToolResource};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The parameters of `tools.get_detail`; the result is a [`ToolResource`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToolDetailParams {
    pub tool_name: String,
}

impl Params for ToolDetailParams {
    const METHOD: Method = Method::ToolsGetDetail;

    fn check(&self) -> Result<(), String> {
        check_name("tool_name", &self.tool_name)
    }
}

/// The parameters of `tools.search`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToolSearchParams {
    pub query: String,
    /// At least 1, capped at 100.
    #[serde(default = "fixed::<5>", deserialize_with = "limit::<_, 5, TOP_K_MAX>")]
    #[schemars(with = "Option<u32>", range(min = 1))]
    pub top_k: u32,
}

impl ToolSearchParams {
    /// The five best hits.
    pub fn new(query: impl Into<String>) -> Self {
        Self { query: query.into(), top_k: 5 }
    }
}

impl Params for ToolSearchParams {
    const METHOD: Method = Method::ToolsSearch;

    fn check(&self) -> Result<(), String> {
        check_query("query", &self.query)
    }
}

/// The result of `tools.search`, best first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolSearchResult {
    pub items: Vec<ToolResource>,
}

/// The parameters of `tools.call`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolCallParams {
    pub tool_name: String,
    #[serde(default, deserialize_with = "or_default")]
    #[schemars(with = "Option<Object>")]
    pub parameters: Object,
    /// The model's id of the call, for the record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    /// Who decided on the call, as reported by the runner; for the record only, it grants nothing.
    #[serde(default, skip_serializing_if = "ToolAuthority::is_agent")]
    pub authority: ToolAuthority,
}

/// Who decided on a call: the agent itself, or a user by command (seed 002 §1).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ToolAuthority {
    #[default]
    Agent,
    User,
}

impl ToolAuthority {
    pub fn as_str(self) -> &'static str {
        match self {
            ToolAuthority::Agent => "agent",
            ToolAuthority::User => "user",
        }
    }

    fn is_agent(&self) -> bool {
        *self == ToolAuthority::Agent
    }
}

impl ToolCallParams {
    /// A call that the agent decided on.
    pub fn new(tool_name: impl Into<String>, parameters: Object) -> Self {
        let authority = ToolAuthority::Agent;
        Self { tool_name: tool_name.into(), parameters, tool_call_id: None, authority }
    }
}

impl Params for ToolCallParams {
    const METHOD: Method = Method::ToolsCall;

    fn check(&self) -> Result<(), String> {
        check_name("tool_name", &self.tool_name)
    }
}

/// The result of `tools.call`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolCallResult {
    #[serde(default)]
    pub result: Value,
    /// The result as text, for the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    /// The tool's error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Object>,
}
