//! `models.*`: answers, streams, rankings and vectors of granted models.
//!
//! Segments are open objects here: their kinds are the providers' contract.
//!
//! Invariant: a model is named by its id in `ctx.resources.models`, never by a provider's name.

use super::fields::{check_name, optional_limit, or_default};
use super::{Method, Params};
use crate::{MessageContent, Object, Role};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One message to a model (CONTRACT §3).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ModelMessage {
    pub role: Role,
    /// Null or absent for a message of tool calls alone.
    #[serde(default)]
    pub content: Option<MessageContent>,
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Option<Vec<ModelToolCall>>")]
    pub tool_calls: Vec<ModelToolCall>,
    /// Of `tool` messages: the call that is answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Of `assistant` messages: the segments of an earlier answer as they came, for providers that want
    /// their reasoning back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub segments: Option<Vec<Object>>,
}

impl ModelMessage {
    /// A message of text alone.
    pub fn text(role: Role, text: impl Into<String>) -> Self {
        Self {
            role,
            content: Some(MessageContent::Text(text.into())),
            tool_calls: Vec::new(),
            tool_call_id: None,
            name: None,
            segments: None,
        }
    }
}

/// A call that a model asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ModelToolCall {
    pub id: String,
    pub name: String,
    #[serde(default)]
    pub args: Value,
    /// What the model wrote where it is no JSON; `args` is null then, and the call must not be executed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args_text: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args_error: Option<String>,
}

/// The parameters of `models.invoke`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ModelInvokeParams {
    pub model_id: String,
    pub messages: Vec<ModelMessage>,
    /// Tools the model may ask for, each as in `ctx.resources.tools`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<Object>>,
    /// Handed to the provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extra_args: Option<Object>,
}

impl ModelInvokeParams {
    /// Messages alone, without tools.
    pub fn new(model_id: impl Into<String>, messages: Vec<ModelMessage>) -> Self {
        Self { model_id: model_id.into(), messages, tools: None, extra_args: None }
    }
}

impl Params for ModelInvokeParams {
    const METHOD: Method = Method::ModelsInvoke;

    fn check(&self) -> Result<(), String> {
        check_name("model_id", &self.model_id)?;
        match self.messages.is_empty() {
            true => Err("`messages` is empty".to_owned()),
            false => Ok(()),
        }
    }
}

/// The parameters of `models.stream`: those of `models.invoke`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct ModelStreamParams(pub ModelInvokeParams);

impl Params for ModelStreamParams {
    const METHOD: Method = Method::ModelsStream;

    fn check(&self) -> Result<(), String> {
        self.0.check()
    }
}

/// The answer to `models.invoke`, and to `models.stream` after its items.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProviderResponse {
    #[serde(default)]
    pub segments: Vec<Object>,
    /// `model`, `finish_reason`, `usage`.
    #[serde(default)]
    pub metadata: Object,
}

impl ProviderResponse {
    /// The text segments, joined.
    pub fn text(&self) -> String {
        let texts =
            self.segments.iter().filter(|segment| segment.get("type") == Some(&"text".into()));
        texts.filter_map(|segment| segment.get("text")?.as_str()).collect()
    }
}

/// One `stream.item` of `models.stream`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ModelStreamItem {
    TextDelta { text: String },
    ReasoningDelta { text: String },
    ToolCallStart { id: String, name: String },
    ToolCallDelta { id: String, args_text: String },
    ToolCallEnd(ModelToolCall),
    Media { segment: Object },
    Usage(Object),
    Finish { reason: String },
}

/// The parameters of `models.rerank`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ModelRerankParams {
    pub model_id: String,
    pub query: String,
    pub documents: Vec<String>,
    /// From 1 on; all documents when absent.
    #[serde(
        default,
        deserialize_with = "optional_limit::<_, { u32::MAX }>",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(range(min = 1))]
    pub top_k: Option<u32>,
}

impl Params for ModelRerankParams {
    const METHOD: Method = Method::ModelsRerank;

    fn check(&self) -> Result<(), String> {
        check_name("model_id", &self.model_id)
    }
}

/// The answer to `models.rerank`, best first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RerankResult {
    pub results: Vec<RankedDocument>,
}

/// A document by its place in the request.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RankedDocument {
    pub index: u32,
    pub relevance_score: f64,
}

/// The parameters of `models.embed`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ModelEmbedParams {
    pub model_id: String,
    pub inputs: Vec<String>,
}

impl Params for ModelEmbedParams {
    const METHOD: Method = Method::ModelsEmbed;

    fn check(&self) -> Result<(), String> {
        check_name("model_id", &self.model_id)
    }
}

/// The answer to `models.embed`: one vector per input, in their order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EmbedResult {
    pub vectors: Vec<Vec<f32>>,
}

/// The parameters of `models.count_tokens`: messages, text, or both.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CountTokensParams {
    pub model_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub messages: Option<Vec<ModelMessage>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

impl Params for CountTokensParams {
    const METHOD: Method = Method::ModelsCountTokens;

    fn check(&self) -> Result<(), String> {
        check_name("model_id", &self.model_id)?;
        match self.messages.is_none() && self.text.is_none() {
            true => Err("`messages` or `text` is needed".to_owned()),
            false => Ok(()),
        }
    }
}

/// The answer to `models.count_tokens`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TokenCount {
    pub tokens: u64,
}
