//! The facts as the host writes and reads them.

pub use crate::approvals::{ApprovalKind, ApprovalRow, ApprovalStatus, Delivered, NewApproval};
pub use crate::audit::{AuditBatch, AuditRecord, OpenCall};
pub use greenroom_protocol::{OnInterrupt, Queue};
use greenroom_protocol::{RunError, RunStatus};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// A frozen grant as the host wrote it: opaque here, stored once per content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrantDoc {
    pub hash: String,
    pub body: String,
}

/// A run as stored, also as JSON in a row of `steering`: a field that is added has a default (decision 015).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunRow {
    pub workspace_id: String,
    pub run_id: String,
    pub event_seq: i64,
    pub event_id: String,
    pub agent: String,
    pub runner_id: String,
    pub conversation_id: Option<String>,
    pub conversation_seq: Option<i64>,
    pub transcript_seq: Option<i64>,
    pub queue: Queue,
    pub status: RunStatus,
    pub attempt: i64,
    pub epoch: i64,
    pub grant_hash: Option<String>,
    pub on_interrupt: OnInterrupt,
    pub deadline_ms: i64,
    pub surface: Option<String>,
    pub last_seq: i64,
    pub reserved_seq: i64,
    pub effects: bool,
    pub cancel_requested: bool,
    /// It takes messages that arrive while it runs.
    pub steers: bool,
    pub created_at: i64,
    pub started_at: Option<i64>,
    pub finished_at: Option<i64>,
    pub error: Option<RunError>,
    pub usage: Option<Box<str>>,
    pub isolation: Option<String>,
    /// Its bot and thread (`session_key`).
    #[serde(default)]
    pub session: String,
}

/// An event as stored; `body` is the envelope as JSON text, removed by retention.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventRow {
    pub seq: i64,
    pub source: String,
    /// The limited token that sent it.
    pub sender: Option<String>,
    pub event_id: String,
    pub event_type: String,
    pub conversation_id: Option<String>,
    pub conversation_seq: Option<i64>,
    pub run_id: Option<String>,
    pub body: Option<String>,
    pub created_at: i64,
    pub session: String,
}

/// A conversation's counters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConversationRow {
    pub conversation_id: String,
    pub event_seq: i64,
    pub transcript_seq: i64,
    pub created_at: i64,
    pub updated_at: i64,
    /// The token that sent its first event.
    pub begun_by: Option<String>,
}

/// A transcript item to be appended; the store gives it its `seq`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewItem {
    pub item_id: String,
    pub thread_id: Option<String>,
    pub session: String,
    pub role: &'static str,
    pub event_id: Option<String>,
    pub run_id: Option<String>,
    /// The author, if it is a person or a program outside.
    pub actor_id: Option<String>,
    pub text: Option<String>,
    /// The rest of the item (`actor, segments, artifacts, metadata`) as a JSON object.
    pub body: String,
}

/// A transcript item as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ItemRow {
    /// The item's number in the whole store.
    pub id: i64,
    pub conversation_id: String,
    /// The conversation's event that the item belongs to.
    pub event_seq: i64,
    pub seq: i64,
    pub item_id: String,
    pub thread_id: Option<String>,
    pub role: String,
    /// What kind of event brought the item in; none for answers.
    pub event_type: Option<String>,
    pub actor_id: Option<String>,
    pub event_id: Option<String>,
    pub run_id: Option<String>,
    pub text: Option<String>,
    pub body: String,
    pub created_at: i64,
}

/// A result with its sequence number, as published and stored.
#[derive(Debug, Clone)]
pub struct ResultRecord {
    pub sequence: i64,
    pub kind: std::borrow::Cow<'static, str>,
    pub data: Box<RawValue>,
    pub at_ms: i64,
    pub runner_sequence: Option<i64>,
    /// The runner's own time, in Unix seconds.
    pub runner_timestamp: Option<i64>,
    pub usage: Option<Box<RawValue>>,
}

/// Stored results of one span of numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    pub first_seq: i64,
    pub last_seq: i64,
    pub body: String,
}

/// One write to host-kept state; `value` is JSON text, `None` removes the key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateWrite {
    pub owner: String,
    pub name: String,
    pub value: Option<String>,
    /// Limit for the owner's names and values together.
    pub owner_bytes_max: Option<i64>,
}

/// One state value as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateRow {
    pub owner: String,
    pub name: String,
    pub value: String,
    pub version: i64,
}

/// An artifact to be stored; its bytes are stored already.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewArtifact {
    pub artifact_id: String,
    /// 64 hexadecimal digits: the key of its bytes.
    pub sha256: String,
    pub size: i64,
    pub name: Option<String>,
    pub mime_type: String,
    pub conversation_id: Option<String>,
    pub session: String,
    pub run_id: Option<String>,
    pub agent: Option<String>,
    /// A JSON object.
    pub metadata: String,
    pub expires_at: Option<i64>,
}

/// An artifact as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArtifactRow {
    pub workspace_id: String,
    pub artifact_id: String,
    pub sha256: String,
    pub size: i64,
    pub name: Option<String>,
    pub mime_type: String,
    pub conversation_id: Option<String>,
    pub session: String,
    pub run_id: Option<String>,
    pub agent: Option<String>,
    pub metadata: String,
    pub created_at: i64,
    pub expires_at: Option<i64>,
}

/// A message for a surface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewDelivery {
    pub delivery_id: String,
    pub surface: String,
    /// The FIFO lane: deliveries of one target never overtake each other.
    pub target: String,
    pub sequence: i64,
    pub payload: String,
}

/// A delivery as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryRow {
    pub id: i64,
    pub workspace_id: String,
    pub delivery_id: String,
    pub surface: String,
    pub target: String,
    pub run_id: String,
    pub sequence: i64,
    pub payload: String,
    pub status: DeliveryStatus,
    pub attempts: i64,
    pub error: Option<String>,
    pub created_at: i64,
    pub updated_at: i64,
    /// Time spent on attempts and the pauses between them, since the first attempt or the last retry.
    pub waited_ms: i64,
    /// When it is tried again.
    pub next_attempt_at: Option<i64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliveryStatus {
    Pending,
    /// Being sent.
    Claimed,
    Done,
    /// Refused by the surface, or given up.
    Failed,
    /// It may have arrived or not.
    Unknown,
    /// An operator decided not to send it.
    Discarded,
}

impl DeliveryStatus {
    pub fn as_str(self) -> &'static str {
        match self {
            DeliveryStatus::Pending => "pending",
            DeliveryStatus::Claimed => "claimed",
            DeliveryStatus::Done => "done",
            DeliveryStatus::Failed => "failed",
            DeliveryStatus::Unknown => "unknown",
            DeliveryStatus::Discarded => "discarded",
        }
    }

    pub const ALL: [Self; 6] =
        [Self::Pending, Self::Claimed, Self::Done, Self::Failed, Self::Unknown, Self::Discarded];

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == text)
    }
}

/// A refused result, or anything else from a run that has no sequence number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    pub kind: String,
    pub message: String,
    pub created_at: i64,
}

/// An event of the host itself in the log: a tool call, a delivery's outcome, a failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostEvent {
    pub event_id: String,
    pub event_type: String,
    pub body: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As version 0.1.0 wrote it for a message that waits to be pulled.
    const FIRST: &str = r#"{"workspace_id":"default","run_id":"run_1","event_seq":101,"event_id":"e1",
        "agent":"steered","runner_id":"plugin:recorded/player/main","conversation_id":"c1","conversation_seq":2,
        "transcript_seq":2,"queue":"steer","status":"queued","attempt":1,"epoch":2,"grant_hash":"9957",
        "on_interrupt":"fail","deadline_ms":3600000,"surface":null,"last_seq":0,"reserved_seq":1024,
        "effects":false,"cancel_requested":false,"steers":true,"created_at":1794889047186,"started_at":null,
        "finished_at":null,"error":null,"usage":null,"isolation":null}"#;

    #[test]
    fn a_run_row_of_the_first_version_is_read() {
        let run: RunRow = serde_json::from_str(FIRST).unwrap();
        assert_eq!(
            (run.run_id.as_str(), run.status, run.queue),
            ("run_1", RunStatus::Queued, Queue::Steer)
        );
        assert_eq!((run.conversation_seq, run.reserved_seq, run.steers), (Some(2), 1024, true));
    }

    #[test]
    fn a_run_row_with_a_field_that_is_no_more_is_read() {
        let text = FIRST.replace("\"agent\"", "\"a_field_of_old\": [1], \"agent\"");
        let run: RunRow = serde_json::from_str(&text).unwrap();
        assert_eq!(run.agent, "steered");
    }
}
