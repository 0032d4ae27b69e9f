//! `steering.pull`: messages that came while the run was going on (DESIGN §4).
//!
//! Invariant: what was pulled is the run's to answer and is never given a run of its own.

use super::fields::optional_limit;
use super::{Method, PAGE_LIMIT_MAX, Params};
use crate::{ActorContext, AgentInput, Object};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The parameters of `steering.pull`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SteeringPullParams {
    /// From 1 on; more than 200 is taken as 200; all that wait when absent.
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

/// The answer to `steering.pull`, in the order in which the messages came.
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
