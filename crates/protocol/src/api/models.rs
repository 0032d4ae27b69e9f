//! `models.*`: completions, streams, rankings and embeddings of granted models.
//!
//! Segments are sent back as they came: their fields are described by [`ModelSegment`], and unknown ones survive.
//!
//! Invariant: a model is identified by its id in `ctx.resources.models`, never by a provider's name.

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
    /// Null or missing for a message with tool calls only.
    #[serde(default)]
    pub content: Option<MessageContent>,
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Option<Vec<ModelToolCall>>")]
    pub tool_calls: Vec<ModelToolCall>,
    /// For `tool` messages: the call that is answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// For `assistant` messages: the unchanged segments of an earlier response, for providers that need
    /// their reasoning back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<ModelSegment>>")]
    pub segments: Option<Vec<Object>>,
    /// For `tool` messages: whether the call failed, for providers that are told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_error: Option<bool>,
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
            is_error: None,
        }
    }
}

/// A tool call of a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ModelToolCall {
    pub id: String,
    pub name: String,
    #[serde(default)]
    pub args: Value,
    /// The model's text if it is not JSON; then `args` is null and the call must not be executed.
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
    /// Tools that the model may call, each as in `ctx.resources.tools`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<Object>>,
    /// Passed to the provider.
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

/// The parameters of `models.stream`, the same as of `models.invoke`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct ModelStreamParams(pub ModelInvokeParams);

impl Params for ModelStreamParams {
    const METHOD: Method = Method::ModelsStream;

    fn check(&self) -> Result<(), String> {
        self.0.check()
    }
}

/// The result of `models.invoke`, and of `models.stream` after its items.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProviderResponse {
    #[serde(default)]
    #[schemars(with = "Vec<ModelSegment>")]
    pub segments: Vec<Object>,
    /// `model`, `finish_reason`, `usage`.
    #[serde(default)]
    pub metadata: Object,
}

/// A part of a response of a model (CONTRACT §3): how its fields are published.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ModelSegment {
    #[serde(rename = "type")]
    pub kind: ModelSegmentKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Of media: the bytes in base64. Of reasoning: what the provider needs back.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub data: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call: Option<ModelToolCall>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_result: Option<Object>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ui: Option<Object>,
    /// Unknown fields, preserved.
    #[serde(flatten)]
    pub extra: Object,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ModelSegmentKind {
    Text,
    Reasoning,
    Image,
    Audio,
    Video,
    Ui,
    ToolCall,
    ToolResult,
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
    TextDelta {
        text: String,
    },
    ReasoningDelta {
        text: String,
    },
    ToolCallStart {
        id: String,
        name: String,
    },
    ToolCallDelta {
        id: String,
        args_text: String,
    },
    ToolCallEnd(ModelToolCall),
    Media {
        #[schemars(with = "ModelSegment")]
        segment: Object,
    },
    Usage(Object),
    Finish {
        reason: String,
    },
}

/// The parameters of `models.rerank`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ModelRerankParams {
    pub model_id: String,
    pub query: String,
    pub documents: Vec<String>,
    /// At least 1; default: all documents.
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

/// The result of `models.rerank`, best first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RerankResult {
    pub results: Vec<RankedDocument>,
}

/// A document by its index in the request.
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

/// The result of `models.embed`: one vector per input, in input order.
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
            true => Err("`messages` or `text` is required".to_owned()),
            false => Ok(()),
        }
    }
}

/// The result of `models.count_tokens`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TokenCount {
    pub tokens: u64,
}
