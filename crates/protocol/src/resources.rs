//! The resources granted to a run, as its runner sees them (seed 000 §6).
//!
//! The seed names the item types; their fields are decided here.
//!
//! Invariant: a listed resource is granted; ids are opaque to the runner.

use crate::Object;
use crate::manifest::{KnowledgePermission, ModelPermission, ToolPermission};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct AgentResources {
    pub models: Vec<ModelResource>,
    pub tools: Vec<ToolResource>,
    pub knowledge_bases: Vec<KnowledgeBaseResource>,
    pub files: Vec<FileResource>,
    pub storage: StorageResource,
    pub platform_capabilities: Object,
    #[serde(flatten)]
    pub extra: Object,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ModelResource {
    pub model_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_type: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    #[serde(default)]
    pub operations: Vec<ModelPermission>,
    #[serde(default)]
    pub metadata: Object,
    /// Unknown fields, preserved.
    #[serde(flatten)]
    pub extra: Object,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolResource {
    pub tool_name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// JSON Schema of the tool's input.
    #[serde(default)]
    pub parameters: Object,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    #[serde(default)]
    pub operations: Vec<ToolPermission>,
    #[serde(default)]
    pub metadata: Object,
    /// Unknown fields, preserved.
    #[serde(flatten)]
    pub extra: Object,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KnowledgeBaseResource {
    pub kb_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(default)]
    pub operations: Vec<KnowledgePermission>,
    #[serde(default)]
    pub metadata: Object,
    /// Unknown fields, preserved.
    #[serde(flatten)]
    pub extra: Object,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FileResource {
    pub file_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    #[serde(
        default,
        deserialize_with = "crate::number::size",
        skip_serializing_if = "Option::is_none"
    )]
    pub size_bytes: Option<u64>,
    #[serde(default)]
    pub metadata: Object,
    /// Unknown fields, preserved.
    #[serde(flatten)]
    pub extra: Object,
}

/// The storage areas that this run may use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct StorageResource {
    pub plugin: bool,
    pub workspace: bool,
    pub binding: bool,
}
