//! Approvals as stored: the request, its status and its outcome.
//!
//! Invariant: what `allow` sends is fixed with the request; an answer does not change it.

use crate::types::{DeliveryStatus, NewDelivery};
pub use greenroom_protocol::api::platform::ApprovalStatus;

/// Who made the request, which decides how long it stays open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApprovalKind {
    /// A call that waits for the answer: it ends with its run.
    Call,
    /// A result, which does not wait: open until it expires, even after its run has ended.
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

/// An action that needs approval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewApproval {
    pub approval_id: String,
    /// Proof that the answer is for this request.
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
    /// What is sent once it is allowed; none for a tool, which the waiting call invokes.
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
    pub request: NewApproval,
    pub status: ApprovalStatus,
    pub created_at: i64,
    pub answered_at: Option<i64>,
    pub answered_by: Option<String>,
    /// Status of the delivery; none before it is allowed.
    pub delivered: Option<Delivered>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivered {
    pub status: DeliveryStatus,
    pub error: Option<String>,
}
