//! Approvals as they are kept: who is asked about what, and what came of it.
//!
//! Invariant: what an answer `allow` sends is decided when it is asked for; an answer changes nothing of it.

use crate::types::{DeliveryStatus, NewDelivery};
pub use greenroom_protocol::api::platform::ApprovalStatus;

/// What asked, and with it how long the question stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApprovalKind {
    /// A call that waits for the answer: over with its run.
    Call,
    /// A result that nobody waits for: stands until it expires, also when its run has ended.
    Result,
}

impl ApprovalKind {
    pub fn as_str(self) -> &'static str {
        match self {
            ApprovalKind::Call => "call",
            ApprovalKind::Result => "result",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        [Self::Call, Self::Result].into_iter().find(|kind| kind.as_str() == text)
    }
}

/// An action that somebody has to be asked about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewApproval {
    pub approval_id: String,
    /// Proof that whoever answers has seen the question.
    pub nonce: String,
    pub kind: ApprovalKind,
    pub agent: String,
    pub runner_id: String,
    /// JSON text.
    pub actor: Option<String>,
    pub action: String,
    /// JSON text.
    pub target: String,
    /// JSON text.
    pub payload: String,
    /// What goes out once it is allowed; a tool is called by whoever waits.
    pub delivery: Option<NewDelivery>,
    pub expires_at: i64,
}

/// An approval as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalRow {
    pub workspace_id: String,
    pub run_id: String,
    pub attempt: i64,
    pub conversation_id: Option<String>,
    pub asked: NewApproval,
    pub status: ApprovalStatus,
    pub created_at: i64,
    pub answered_at: Option<i64>,
    pub answered_by: Option<String>,
    /// What became of the delivery; nothing before it is allowed.
    pub delivered: Option<Delivered>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivered {
    pub status: DeliveryStatus,
    pub error: Option<String>,
}
