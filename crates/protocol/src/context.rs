//! The run context: everything a runner gets about one event (seed 000 §5), without history.
//!
//! Invariant: field names, defaults and value sets are the seed's; fields that a newer host adds survive a
//! round trip through an older SDK. Fields of the seed are written even if null.

use crate::interaction::INTERACTION;
use crate::version::default_version;
use crate::{
    AgentResources, ArtifactRef, ContentElement, Object, RawEventRef, RunnerId, StaticContextRef,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The parameters of `run_agent`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AgentRunRequest {
    pub runner_id: RunnerId,
    pub runner_name: String,
    pub context: AgentRunContext,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AgentRunContext {
    pub run_id: String,
    pub trigger: AgentTrigger,
    pub event: AgentEventContext,
    #[serde(default)]
    pub conversation: Option<ConversationContext>,
    #[serde(default)]
    pub actor: Option<ActorContext>,
    #[serde(default)]
    pub subject: Option<SubjectContext>,
    pub input: AgentInput,
    pub delivery: DeliveryContext,
    pub resources: AgentResources,
    pub context: ContextAccess,
    pub state: AgentRunState,
    pub runtime: AgentRuntimeContext,
    #[serde(default)]
    pub config: Object,
    #[serde(default)]
    pub adapter: Option<AdapterContext>,
    #[serde(default)]
    pub metadata: Object,
    #[serde(flatten)]
    pub extra: Object,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AgentTrigger {
    #[serde(rename = "type")]
    pub kind: String,
    pub source: TriggerSource,
    #[serde(default, deserialize_with = "crate::number::whole")]
    pub timestamp: Option<i64>,
    /// Unknown fields, preserved.
    #[serde(flatten)]
    pub extra: Object,
}

/// Where the event came from. `pipeline_adapter` is the older name of `host_adapter`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TriggerSource {
    Platform,
    Webui,
    Api,
    Scheduler,
    System,
    #[serde(alias = "pipeline_adapter")]
    HostAdapter,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AgentEventContext {
    pub event_id: String,
    pub event_type: String,
    #[serde(default, deserialize_with = "crate::number::whole")]
    pub event_time: Option<i64>,
    pub source: String,
    #[serde(default)]
    pub source_event_type: Option<String>,
    #[serde(default)]
    pub raw_ref: Option<RawEventRef>,
    #[serde(default)]
    pub data: Object,
    /// Unknown fields, preserved.
    #[serde(flatten)]
    pub extra: Object,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ConversationContext {
    pub conversation_id: Option<String>,
    pub thread_id: Option<String>,
    pub launcher_type: Option<String>,
    pub launcher_id: Option<String>,
    pub bot_id: Option<String>,
    pub workspace_id: Option<String>,
    /// Unknown fields, preserved.
    #[serde(flatten)]
    pub extra: Object,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ActorContext {
    pub actor_type: String,
    #[serde(default)]
    pub actor_id: Option<String>,
    #[serde(default)]
    pub actor_name: Option<String>,
    #[serde(default)]
    pub metadata: Object,
    /// Unknown fields, preserved.
    #[serde(flatten)]
    pub extra: Object,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SubjectContext {
    pub subject_type: String,
    #[serde(default)]
    pub subject_id: Option<String>,
    #[serde(default)]
    pub data: Object,
    /// Unknown fields, preserved.
    #[serde(flatten)]
    pub extra: Object,
}

/// Subjects that are a group of people.
const GROUPS: [&str; 4] = ["group", "channel", "room", "guild"];
/// The key in the data of an answer's subject: the group that was asked.
pub const ASKED_GROUP: &str = "group";

/// A group of people that an event is about.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GroupRef<'a> {
    pub id: Option<&'a str>,
    pub data: Option<&'a Object>,
}

impl SubjectContext {
    /// The group that the subject is. The answer to a question is about the group that was asked.
    pub fn group(&self) -> Option<GroupRef<'_>> {
        if GROUPS.contains(&self.subject_type.as_str()) {
            return Some(GroupRef { id: self.subject_id.as_deref(), data: Some(&self.data) });
        }
        let group = self.data.get(ASKED_GROUP).filter(|_| self.subject_type == INTERACTION)?;
        Some(GroupRef { id: group["subject_id"].as_str(), data: group["data"].as_object() })
    }
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct AgentInput {
    pub text: Option<String>,
    #[serde(deserialize_with = "crate::object::list")]
    pub contents: Vec<ContentElement>,
    pub attachments: Vec<ArtifactRef>,
    pub message_chain: Option<Object>,
    /// Unknown fields, preserved.
    #[serde(flatten)]
    pub extra: Object,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DeliveryContext {
    pub surface: String,
    #[serde(default)]
    pub reply_target: Option<Object>,
    #[serde(default)]
    pub supports_streaming: bool,
    #[serde(default)]
    pub supports_edit: bool,
    #[serde(default)]
    pub supports_reaction: bool,
    #[serde(default)]
    pub max_message_size: Option<u64>,
    #[serde(default)]
    pub platform_capabilities: Object,
    /// Unknown fields, preserved.
    #[serde(flatten)]
    pub extra: Object,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ContextAccess {
    #[serde(default)]
    pub conversation_id: Option<String>,
    #[serde(default)]
    pub thread_id: Option<String>,
    #[serde(default)]
    pub latest_cursor: Option<String>,
    #[serde(default)]
    pub event_seq: Option<i64>,
    #[serde(default)]
    pub transcript_seq: Option<i64>,
    #[serde(default)]
    pub has_history_before: bool,
    /// Our addition: ranges of `event_seq`, first and last, that the client of this event has replaced by editing an
    /// earlier message; `history.*` leaves them out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub superseded: Vec<[i64; 2]>,
    /// Our addition: the same in every run of a session (workspace, bot, binding, runner, conversation, thread), for
    /// provider caches. Absent without a conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_key: Option<String>,
    pub inline_policy: InlineContextPolicy,
    pub available_apis: ContextAPICapabilities,
    /// Unknown fields, preserved.
    #[serde(flatten)]
    pub extra: Object,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InlineContextPolicy {
    pub mode: InlineMode,
    #[serde(default)]
    pub delivered_count: u32,
    #[serde(default)]
    pub source_total_count: Option<u64>,
    #[serde(default)]
    pub messages_complete: bool,
    #[serde(default)]
    pub reason: Option<String>,
    /// Unknown fields, preserved.
    #[serde(flatten)]
    pub extra: Object,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum InlineMode {
    None,
    CurrentEvent,
    RecentTail,
    SummaryTail,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ContextAPICapabilities {
    pub history_page: bool,
    pub history_search: bool,
    pub event_get: bool,
    pub event_page: bool,
    pub artifact_metadata: bool,
    pub artifact_read: bool,
    pub state: bool,
    pub storage: bool,
    /// Our addition.
    pub artifact_create: bool,
    /// Our addition.
    pub steering_pull: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AgentRuntimeContext {
    #[serde(default = "langbot")]
    pub host: String,
    #[serde(default = "default_version")]
    pub protocol_version: String,
    #[serde(default)]
    pub langbot_version: Option<String>,
    pub trace_id: String,
    #[serde(default)]
    pub deadline_at: Option<f64>,
    #[serde(default)]
    pub locale: Option<String>,
    #[serde(default)]
    pub timezone: Option<String>,
    #[serde(default)]
    pub static_refs: BTreeMap<String, StaticContextRef>,
    #[serde(default)]
    pub metadata: Object,
    /// Unknown fields, preserved.
    #[serde(flatten)]
    pub extra: Object,
}

fn langbot() -> String {
    "langbot".to_owned()
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct AgentRunState {
    pub conversation: Object,
    pub actor: Object,
    pub subject: Object,
    pub runner: Object,
    /// Our addition: the fifth scope (DESIGN §4).
    pub binding: Object,
    /// Our addition: the keys that had no room here, by scope; `state.get` and `state.list` return them.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub left_out: BTreeMap<String, StateLeftOut>,
    /// Unknown fields, preserved.
    #[serde(flatten)]
    pub extra: Object,
}

/// Keys of one scope that a snapshot leaves out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct StateLeftOut {
    pub keys: Vec<String>,
    /// There are more than these.
    pub has_more: bool,
}

impl Default for AgentRuntimeContext {
    fn default() -> Self {
        Self {
            host: langbot(),
            protocol_version: default_version(),
            langbot_version: None,
            trace_id: String::new(),
            deadline_at: None,
            locale: None,
            timezone: None,
            static_refs: BTreeMap::new(),
            metadata: Object::new(),
            extra: Object::new(),
        }
    }
}

/// Additional data of the adapter; not for long-term use by runners.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct AdapterContext {
    pub name: Option<String>,
    pub extra: Object,
}
