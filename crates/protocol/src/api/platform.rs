//! `platform.request_action` and the approvals behind it (DESIGN §4).
//!
//! Invariant: an approval leaves `pending` once and for all; an action that was not allowed has no outcome.

use super::fields::or_default;
use super::{Method, Params};
use crate::{ActorContext, Object};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Longest name of an action.
pub const ACTION_BYTES_MAX: usize = 128;

/// The parameters of `platform.request_action`. A refusal is `unauthorized` with `details.reason` `denied`,
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

/// The answer to `platform.request_action`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ActionOutcome {
    pub status: ActionStatus,
    pub action: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivery_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval_id: Option<String>,
    /// What the platform answered, if anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Object>,
}

/// How far an allowed action came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ActionStatus {
    Done,
    /// It will be carried out; the call did not wait for it.
    Queued,
    /// It was sent, and whether it arrived is not known.
    Unknown,
}

/// An approval as the API shows it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalView {
    pub approval_id: String,
    /// To be sent back with the answer.
    pub nonce: String,
    pub status: ApprovalStatus,
    pub action: String,
    #[serde(default)]
    pub target: Object,
    #[serde(default)]
    pub payload: Object,
    /// What would be changed, as people call it. Absent for actions and in approvals of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<ApprovalSubject>,
    pub agent: String,
    pub runner_id: String,
    pub run_id: String,
    #[serde(default)]
    pub conversation_id: Option<String>,
    /// On whose behalf the run is.
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

/// What a call would change or hand over, as the host looked it up when it asked: with the reach of the actor
/// of the run and nothing more.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalSubject {
    /// The records that the call names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub records: Vec<SubjectRecord>,
    /// The other inputs, each as one line of text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<SubjectField>,
    /// How many records and inputs are left out because there are too many.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub left_out: u64,
}

/// A record that a call names.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SubjectRecord {
    pub id: String,
    /// Absent when the actor has no such record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// RFC 3339 with the record's own offset, as is the end.
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
    /// The present value, where the call would overwrite one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Where an approval stands.
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

/// What became of an action that was allowed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalOutcome {
    pub status: OutcomeStatus,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivery_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// How an allowed action ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OutcomeStatus {
    Done,
    Failed,
    Unknown,
    Queued,
}
