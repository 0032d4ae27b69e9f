//! Discovery: runner manifests (seed 000 §4).
//!
//! Invariant: value sets are closed (an unknown operation is an error), fields are open (an unknown field is
//! preserved), so that a newer manifest loads; unknown fields grant nothing.

mod check;

pub use check::{InvalidManifest, ManifestWarning};

use crate::version::default_version;
use crate::{DynamicFormItemSchema, I18nObject, Object, RunnerId, yes};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ListAgentRunnersResponse {
    pub runners: Vec<AgentRunnerManifest>,
}

/// One runner. Missing `capabilities`, `permissions` and `context` are defaults: no permissions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AgentRunnerManifest {
    pub id: RunnerId,
    pub name: String,
    pub label: I18nObject,
    #[serde(default)]
    pub description: Option<I18nObject>,
    #[serde(default = "default_version")]
    pub protocol_version: String,
    #[serde(default)]
    pub capabilities: AgentRunnerCapabilities,
    #[serde(default)]
    pub permissions: AgentRunnerPermissions,
    #[serde(default)]
    pub context: AgentRunnerContextPolicy,
    #[serde(default)]
    pub config_schema: Vec<DynamicFormItemSchema>,
    #[serde(default)]
    pub metadata: Object,
    #[serde(flatten)]
    pub extra: Object,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct AgentRunnerCapabilities {
    pub streaming: bool,
    pub tool_calling: bool,
    pub knowledge_retrieval: bool,
    pub multimodal_input: bool,
    pub event_context: bool,
    pub platform_api: bool,
    pub interrupt: bool,
    pub stateful_session: bool,
    pub self_managed_context: bool,
    /// Beyond v1: the runner pulls messages that arrive during a run.
    pub steering: bool,
    #[serde(flatten)]
    pub extra: Object,
}

impl Default for AgentRunnerCapabilities {
    fn default() -> Self {
        Self {
            streaming: false,
            tool_calling: false,
            knowledge_retrieval: false,
            multimodal_input: false,
            event_context: true,
            platform_api: false,
            interrupt: false,
            stateful_session: false,
            self_managed_context: true,
            steering: false,
            extra: Object::new(),
        }
    }
}

/// The most that a runner may be granted. An unknown operation is rejected; an unknown field is preserved, causes
/// a warning and grants nothing.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct AgentRunnerPermissions {
    pub models: Vec<ModelPermission>,
    pub tools: Vec<ToolPermission>,
    pub knowledge_bases: Vec<KnowledgePermission>,
    pub history: Vec<HistoryPermission>,
    pub events: Vec<EventPermission>,
    pub artifacts: Vec<ArtifactPermission>,
    pub storage: Vec<StorageArea>,
    pub files: Vec<FilePermission>,
    pub platform_api: Vec<String>,
    /// Our addition: the runner drives a harness, and may ask what that may do.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub harness: Vec<HarnessPermissionKind>,
    #[serde(flatten)]
    pub extra: Object,
}

macro_rules! value_set {
    ($name:ident { $($variant:ident),+ }) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "snake_case")]
        pub enum $name { $($variant),+ }
    };
}

value_set!(ModelPermission { Invoke, Stream, Rerank, Embed });
value_set!(ToolPermission { Detail, Call });
value_set!(KnowledgePermission { List, Retrieve });
value_set!(HistoryPermission { Page, Search });
value_set!(EventPermission { Get, Page });
value_set!(ArtifactPermission { Metadata, Read, Create });
value_set!(StorageArea { Plugin, Workspace, Binding });
value_set!(FilePermission { Config, Knowledge });
value_set!(HarnessPermissionKind { Ask });

/// Informational: it never changes a grant. Fields of older manifests (`ownership`, `bootstrap`, `max_inline_*`)
/// are in `extra` and cause a warning.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AgentRunnerContextPolicy {
    #[serde(default = "yes")]
    pub supports_history_pull: bool,
    #[serde(default)]
    pub supports_history_search: bool,
    #[serde(default = "yes")]
    pub supports_artifact_pull: bool,
    #[serde(default = "yes")]
    pub owns_compaction: bool,
    /// Static parts of the context are described by references. A runner that writes `true` itself and may call
    /// `tools.get_detail` also gets its tools by reference, without their schemas.
    #[serde(default)]
    pub wants_static_context_refs: StaticRefs,
    #[serde(flatten)]
    pub extra: Object,
}

/// Whether a runner wants references. Written as a boolean; one that says nothing has the default, `true`.
#[derive(Debug, Clone, Copy, Default)]
pub enum StaticRefs {
    #[default]
    Unsaid,
    Wanted,
    Unwanted,
}

impl StaticRefs {
    fn value(self) -> bool {
        !matches!(self, StaticRefs::Unwanted)
    }
}

/// By their value: the default, written out, is the same.
impl PartialEq for StaticRefs {
    fn eq(&self, other: &Self) -> bool {
        self.value() == other.value()
    }
}

impl Eq for StaticRefs {}

impl Serialize for StaticRefs {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_bool(self.value())
    }
}

impl<'de> Deserialize<'de> for StaticRefs {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Ok(if bool::deserialize(from)? { StaticRefs::Wanted } else { StaticRefs::Unwanted })
    }
}

impl JsonSchema for StaticRefs {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "StaticRefs".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "boolean", "default": true})
    }
}

impl Default for AgentRunnerContextPolicy {
    fn default() -> Self {
        Self {
            supports_history_pull: true,
            supports_history_search: false,
            supports_artifact_pull: true,
            owns_compaction: true,
            wants_static_context_refs: StaticRefs::Unsaid,
            extra: Object::new(),
        }
    }
}
