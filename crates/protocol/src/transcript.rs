//! The transcript of a conversation, projected from the event log (decision 001).
//!
//! Invariant: only `seq` orders the items of a conversation, never a time.

use crate::{ActorContext, ArtifactRef, Object};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TranscriptRole {
    User,
    Assistant,
    Tool,
    System,
    Event,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TranscriptItem {
    pub item_id: String,
    pub conversation_id: String,
    #[serde(default)]
    pub thread_id: Option<String>,
    /// Position in the conversation.
    pub seq: i64,
    pub role: TranscriptRole,
    #[serde(default)]
    pub event_id: Option<String>,
    #[serde(default)]
    pub run_id: Option<String>,
    #[serde(default)]
    pub actor: Option<ActorContext>,
    #[serde(default)]
    pub text: Option<String>,
    /// Tool items only: the tool's result as text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    #[serde(default)]
    pub segments: Vec<Value>,
    #[serde(default)]
    pub artifacts: Vec<ArtifactRef>,
    #[serde(default)]
    pub metadata: Object,
    /// RFC 3339.
    pub created_at: String,
}
