//! `steering.pull`: messages that arrived during the run (DESIGN §4).
//!
//! Invariant: the run that pulls a message must answer it; the message gets no run of its own.

use super::fields::optional_limit;
use super::{Method, PAGE_LIMIT_MAX, Params};
use crate::{ActorContext, AgentInput, Object};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The parameters of `steering.pull`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SteeringPullParams {
    /// At least 1, capped at 200; default: all pending messages.
    #[serde(
        default,
        deserialize_with = "optional_limit::<_, PAGE_LIMIT_MAX>",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(range(min = 1))]
    pub limit: Option<u32>,
}

impl Params for SteeringPullParams {
    const METHOD: Method = Method::SteeringPull;
}

/// The result of `steering.pull`, in order of arrival.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SteeringItems {
    pub items: Vec<SteeringItem>,
}

/// One event that was attached to the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SteeringItem {
    pub event_id: String,
    pub event_type: String,
    pub conversation_id: String,
    #[serde(default)]
    pub thread_id: Option<String>,
    #[serde(default)]
    pub actor: Option<ActorContext>,
    #[serde(default)]
    pub input: AgentInput,
    #[serde(default)]
    pub data: Object,
    /// RFC 3339.
    pub created_at: String,
}
