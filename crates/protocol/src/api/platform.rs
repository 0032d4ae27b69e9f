//! `platform.request_action` and its approvals (DESIGN §4).
//!
//! Invariant: an approval leaves `pending` once; an action that was not allowed has no outcome.

use super::fields::or_default;
use super::{Method, Params};
use crate::{ActorContext, Object};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The action of an approval for a tool call.
pub const TOOL_CALL: &str = "tool.call";
/// The action of a question that a tool's server asks during a call: its answer has values.
pub const TOOL_INPUT: &str = "tool.input";
/// Longest name of an action.
pub const ACTION_BYTES_MAX: usize = 128;

/// The parameters of `platform.request_action`. A denial is `unauthorized` with `details.reason` `denied`,
/// `expired` or `not_granted`; an action that failed is `runtime_error`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RequestActionParams {
    /// Such as `message.send`: one word of at most 128 bytes.
    pub action: String,
    #[serde(default, deserialize_with = "or_default")]
    #[schemars(with = "Option<Object>")]
    pub target: Object,
    #[serde(default, deserialize_with = "or_default")]
    #[schemars(with = "Option<Object>")]
    pub payload: Object,
}

impl Params for RequestActionParams {
    const METHOD: Method = Method::PlatformRequestAction;

    fn check(&self) -> Result<(), String> {
        let is_odd = |c: char| c.is_control() || c.is_whitespace();
        let is_word = (1..=ACTION_BYTES_MAX).contains(&self.action.len());
        match is_word && !self.action.contains(is_odd) {
            true => Ok(()),
            false => Err(format!("`action` must be one word of 1 to {ACTION_BYTES_MAX} bytes")),
        }
    }
}

/// The result of `platform.request_action`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ActionOutcome {
    pub status: ActionStatus,
    pub action: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivery_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval_id: Option<String>,
    /// The platform's response, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Object>,
}

/// The status of an allowed action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ActionStatus {
    Done,
    /// It will be executed later.
    Queued,
    /// It was sent, but delivery is unconfirmed.
    Unknown,
}

/// An approval as the API shows it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalView {
    pub approval_id: String,
    /// To be sent back with the decision.
    pub nonce: String,
    pub status: ApprovalStatus,
    pub action: String,
    #[serde(default)]
    pub target: Object,
    #[serde(default)]
    pub payload: Object,
    /// What would be changed, in readable form. Missing for actions and in approvals of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<ApprovalSubject>,
    pub agent: String,
    pub runner_id: String,
    pub run_id: String,
    #[serde(default)]
    pub conversation_id: Option<String>,
    /// The actor that the run acts for.
    #[serde(default)]
    pub actor: Option<ActorContext>,
    /// RFC 3339, as are the next two.
    pub created_at: String,
    pub expires_at: String,
    #[serde(default)]
    pub answered_at: Option<String>,
    #[serde(default)]
    pub answered_by: Option<String>,
    #[serde(default)]
    pub outcome: Option<ApprovalOutcome>,
}

/// What a call would change or send, looked up by the host when it asked for approval, with the permissions of
/// the run's actor.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalSubject {
    /// The records that the call refers to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub records: Vec<SubjectRecord>,
    /// The other inputs, each as one line of text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<SubjectField>,
    /// The number of omitted records and inputs.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub left_out: u64,
}

/// A record that a call refers to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SubjectRecord {
    pub id: String,
    /// Missing if the actor has no such record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// RFC 3339 with the record's own offset, like `end_at`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_at: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_at: Option<String>,
}

/// One input of a call.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SubjectField {
    pub name: String,
    pub value: String,
    /// The current value, if the call would overwrite one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalStatus {
    Pending,
    Allowed,
    Denied,
    Expired,
    /// Its run ended first.
    Cancelled,
}

impl ApprovalStatus {
    pub const ALL: [ApprovalStatus; 5] = [
        ApprovalStatus::Pending,
        ApprovalStatus::Allowed,
        ApprovalStatus::Denied,
        ApprovalStatus::Expired,
        ApprovalStatus::Cancelled,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            ApprovalStatus::Pending => "pending",
            ApprovalStatus::Allowed => "allowed",
            ApprovalStatus::Denied => "denied",
            ApprovalStatus::Expired => "expired",
            ApprovalStatus::Cancelled => "cancelled",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == text)
    }
}

/// The outcome of an allowed action.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalOutcome {
    pub status: OutcomeStatus,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivery_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OutcomeStatus {
    Done,
    Failed,
    Unknown,
    Queued,
}
