//! Records of the project modules: what a module's process asks the host for (`POST /v1/tool-runtime/records`).
//!
//! Invariant: whose records these are comes from the caller's credential, never from here.

use crate::Object;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One operation on the records of a module.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "op", rename_all = "snake_case", deny_unknown_fields)]
pub enum RecordOp {
    /// Own records and those that were shared and not rejected, by their beginning.
    List {
        module: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from: Option<i64>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        to: Option<i64>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limit: Option<u32>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cursor: Option<String>,
    },
    Get {
        module: String,
        id: String,
    },
    /// A new record without `id`.
    Put {
        module: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        /// The version that it must have now, 0 for none at all.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        if_version: Option<i64>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        starts_at: Option<i64>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ends_at: Option<i64>,
        body: Object,
    },
    Delete {
        module: String,
        id: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        if_version: Option<i64>,
    },
    /// Only its owner shares a record.
    Share {
        module: String,
        id: String,
        with: Vec<String>,
    },
    /// Only somebody it was shared with answers.
    Answer {
        module: String,
        id: String,
        status: RecordLinkStatus,
    },
}

impl RecordOp {
    pub fn module(&self) -> &str {
        match self {
            RecordOp::List { module, .. }
            | RecordOp::Get { module, .. }
            | RecordOp::Put { module, .. }
            | RecordOp::Delete { module, .. }
            | RecordOp::Share { module, .. }
            | RecordOp::Answer { module, .. } => module,
        }
    }
}

/// A record as the module sees it; `starts_at` and `ends_at` are Unix milliseconds, to be computed with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RecordView {
    pub id: String,
    pub owner: String,
    pub version: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub starts_at: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ends_at: Option<i64>,
    pub body: Object,
    /// RFC 3339.
    pub updated_at: String,
    /// What the reader has answered, where it was shared with them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link_status: Option<RecordLinkStatus>,
}

/// Somebody a record is shared with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RecordLink {
    pub actor: String,
    pub status: RecordLinkStatus,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RecordLinkStatus {
    Pending,
    Accepted,
    Rejected,
}

impl RecordLinkStatus {
    pub fn as_str(self) -> &'static str {
        match self {
            RecordLinkStatus::Pending => "pending",
            RecordLinkStatus::Accepted => "accepted",
            RecordLinkStatus::Rejected => "rejected",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        [Self::Pending, Self::Accepted, Self::Rejected]
            .into_iter()
            .find(|status| status.as_str() == text)
    }
}
