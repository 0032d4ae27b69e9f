//! The records of one actor: the only access of methods to data.
//!
//! Invariant: the host decides from the credential whose records these are; no operation names an owner.

use greenroom_protocol::records::{
    RecordLink as Link, RecordLinkStatus as LinkStatus, RecordView as Record,
};
use greenroom_protocol::{AgentAPIError, Object};
use serde::Deserialize;

/// Most records of one list.
pub const LIST_MAX: u32 = 1000;

/// The kinds of records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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

/// The content of a record; with milliseconds if it has a time.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Put {
    pub id: Option<String>,
    pub if_version: Option<i64>,
    pub starts_at: Option<i64>,
    pub ends_at: Option<i64>,
    pub body: Object,
}

/// The result of `get`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct RecordWithLinks {
    pub record: Option<Record>,
    #[serde(default)]
    pub links: Vec<Link>,
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
    async fn get(&self, module: Module, id: &str) -> Result<RecordWithLinks, RecordsError>;
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
