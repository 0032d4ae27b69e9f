//! An event as senders hand it in, and the answer they get (CONTRACT §2).
//!
//! Invariant: unknown keys are refused, so that a misspelt field is noticed by its sender and not by a user.

use crate::{ActorContext, AgentInput, Object, SubjectContext};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewEvent {
    pub event_type: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event_id: Option<String>,
    #[serde(default = "api", skip_serializing_if = "String::is_empty")]
    pub source: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event_time: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bot_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<ActorContext>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<SubjectContext>,
    #[serde(default)]
    pub input: AgentInput,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivery: Option<EventDelivery>,
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    pub data: Object,
    /// The agent that shall take the event; without it the bindings decide.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    pub metadata: Object,
}

fn api() -> String {
    "api".to_owned()
}

/// Where the answer goes: the name of a configured surface, never an address.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EventDelivery {
    pub surface: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EventAnswer {
    pub event_id: String,
    pub run_id: Option<String>,
    /// `queued`, `running`, `steered`, `unbound`; later also the run's end.
    pub status: String,
}
