//! The record API: the only way in which methods reach data, and its wire.
//!
//! Invariant: whose records these are is decided by the host, from the credential; no operation names an owner.

use greenroom_protocol::{AgentAPIError, Object};
use serde::{Deserialize, Serialize};

/// Most records that one list gives.
pub const LIST_MAX: u32 = 1000;

/// The kinds of records that there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Module {
    Calendar,
    Contacts,
    Memory,
}

impl Module {
    pub fn as_str(self) -> &'static str {
        match self {
            Module::Calendar => "calendar",
            Module::Contacts => "contacts",
            Module::Memory => "memory",
        }
    }
}

/// One operation, the body of `POST /v1/tool-runtime/records`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case", deny_unknown_fields)]
pub enum Op {
    /// Own records and accepted shares that overlap `from..to` (milliseconds), by start.
    List {
        module: Module,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from: Option<i64>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        to: Option<i64>,
        limit: u32,
    },
    /// An own record, or one that was shared with the actor, whatever it answered.
    Get { module: Module, id: String },
    /// Without an id a new record; with one it is replaced, or made under it.
    Put {
        module: Module,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        if_version: Option<i64>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        starts_at: Option<i64>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ends_at: Option<i64>,
        body: Object,
    },
    Delete {
        module: Module,
        id: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        if_version: Option<i64>,
    },
    /// Invites actors; for the owner only.
    Share { module: Module, id: String, with: Vec<String> },
    /// Answers an invitation; for the invited only.
    Answer { module: Module, id: String, status: LinkStatus },
}

/// What a record shall hold; milliseconds where it stands in time.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Put {
    pub id: Option<String>,
    pub if_version: Option<i64>,
    pub starts_at: Option<i64>,
    pub ends_at: Option<i64>,
    pub body: Object,
}

/// What an operation does, as the table of methods names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpKind {
    List,
    Get,
    /// A put without an id.
    Create,
    Put,
    Delete,
    Share,
    Answer,
}

impl Op {
    pub fn module(&self) -> Module {
        match self {
            Op::List { module, .. }
            | Op::Get { module, .. }
            | Op::Put { module, .. }
            | Op::Delete { module, .. }
            | Op::Share { module, .. }
            | Op::Answer { module, .. } => *module,
        }
    }

    pub fn kind(&self) -> OpKind {
        match self {
            Op::List { .. } => OpKind::List,
            Op::Get { .. } => OpKind::Get,
            Op::Put { id: None, .. } => OpKind::Create,
            Op::Put { .. } => OpKind::Put,
            Op::Delete { .. } => OpKind::Delete,
            Op::Share { .. } => OpKind::Share,
            Op::Answer { .. } => OpKind::Answer,
        }
    }
}

/// One record as the actor may see it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    pub id: String,
    /// Actor id of the owner.
    pub owner: String,
    pub version: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub starts_at: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ends_at: Option<i64>,
    pub body: Object,
    pub updated_at: String,
    /// What the actor answered, when the record is another's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link_status: Option<LinkStatus>,
}

/// Somebody who was invited.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    pub actor: String,
    pub status: LinkStatus,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LinkStatus {
    Pending,
    Accepted,
    Rejected,
}

impl LinkStatus {
    pub fn as_str(self) -> &'static str {
        match self {
            LinkStatus::Pending => "pending",
            LinkStatus::Accepted => "accepted",
            LinkStatus::Rejected => "rejected",
        }
    }
}

/// The answer to `list`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Listed {
    pub items: Vec<Record>,
}

/// The answer to `get`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Found {
    pub record: Option<Record>,
    #[serde(default)]
    pub links: Vec<Link>,
}

/// The answer to `put`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Written {
    pub record: Record,
}

/// The answer to `delete`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deleted {
    pub deleted: bool,
}

/// The answer to `share`: everybody who is invited by now.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shared {
    pub links: Vec<Link>,
}

/// The answer to `answer`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answered {
    pub link: Option<Link>,
}

#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum RecordsError {
    #[error("{}", .0.message)]
    Refused(AgentAPIError),
    #[error("the host cannot be reached: {0}")]
    Unreachable(String),
    #[error("the host's answer cannot be understood")]
    Strange,
}

/// The records of one actor.
#[async_trait::async_trait]
pub trait Records: Send + Sync {
    async fn list(
        &self,
        module: Module,
        span: Option<(i64, i64)>,
        limit: u32,
    ) -> Result<Vec<Record>, RecordsError>;
    async fn get(&self, module: Module, id: &str) -> Result<Found, RecordsError>;
    async fn put(&self, module: Module, put: Put) -> Result<Record, RecordsError>;
    async fn delete(
        &self,
        module: Module,
        id: &str,
        if_version: Option<i64>,
    ) -> Result<bool, RecordsError>;
    async fn share(
        &self,
        module: Module,
        id: &str,
        with: Vec<String>,
    ) -> Result<Vec<Link>, RecordsError>;
    async fn answer(
        &self,
        module: Module,
        id: &str,
        status: LinkStatus,
    ) -> Result<Option<Link>, RecordsError>;
}
