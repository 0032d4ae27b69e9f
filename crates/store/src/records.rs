//! Records of the project modules, as they are read back.

use greenroom_protocol::records::RecordLinkStatus;

/// What an actor keeps: an event of a calendar, a contact, a fact to remember.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    pub record_id: String,
    pub owner: String,
    pub version: i64,
    pub starts_at: Option<i64>,
    pub ends_at: Option<i64>,
    /// JSON text, the module's own.
    pub body: String,
    pub updated_at: i64,
    /// What the reader has answered, where it was shared with them.
    pub link_status: Option<RecordLinkStatus>,
}
