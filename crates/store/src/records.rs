//! Records of the project modules, as they are read back, and the people they belong to.

use greenroom_protocol::records::RecordLinkStatus;

/// Between a source and the token whose actors or event ids it has. No source contains control characters.
pub const TOKEN_MARK: char = '\u{1f}';

/// An actor of one source: equal ids of two sources are two people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Person {
    pub workspace_id: String,
    /// The namespace of the id: a source, followed by `TOKEN_MARK` and a token that has actors of its own.
    pub source: String,
    pub actor: String,
}

impl Person {
    /// The second namespace that is searched: records of schema 4 name no source. A token with actors of its own does
    /// not reach them, because another token may have stored them.
    pub(crate) fn older_source(&self) -> &str {
        if self.source.contains(TOKEN_MARK) { &self.source } else { "" }
    }
}

/// What an actor keeps: an event of a calendar, a contact, a fact to remember.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    pub record_id: String,
    /// The namespace of its owner; empty for a record of schema 4.
    pub source: String,
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
