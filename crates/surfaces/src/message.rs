//! The neutral outgoing message: what a run has for its surface, in no platform's form.
//!
//! Invariant: the outbox stores it as JSON, and every later version reads it (decision 015): a field may be
//! added with a default, none is renamed or removed.

use greenroom_protocol::{Object, Role, RunError};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The actions that a surface may carry out.
pub mod action {
    pub const MESSAGE_SEND: &str = "message.send";
    pub const MESSAGE_EDIT: &str = "message.edit";
    pub const MESSAGE_DELETE: &str = "message.delete";
    pub const MESSAGE_REACT: &str = "message.react";

    pub const ALL: [&str; 4] = [MESSAGE_SEND, MESSAGE_EDIT, MESSAGE_DELETE, MESSAGE_REACT];
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OutboundMessage {
    #[serde(flatten)]
    pub content: Content,
    pub run_id: String,
    pub event_id: String,
    pub agent: String,
    pub conversation_id: Option<String>,
    /// The number of the run's result that it comes from; 0 for an action that a call asked for.
    pub sequence: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bot_id: Option<String>,
    /// The message, thread, conversation and actor to answer.
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    pub reply_target: Object,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type")]
pub enum Content {
    #[serde(rename = "message.completed")]
    Message {
        message: MessagePart,
        /// From 1 to `parts`.
        part: usize,
        parts: usize,
    },
    #[serde(rename = "run.failed")]
    Failure { error: RunError },
    /// A file that the run made.
    #[serde(rename = "artifact.created")]
    File { artifact: File },
    #[serde(untagged)]
    Action {
        #[serde(rename = "type")]
        action: String,
        target: Object,
        payload: Object,
    },
}

/// A message, or that part of it which fits the surface's limit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MessagePart {
    pub role: Role,
    pub content: String,
    /// What is not text, with the first part only.
    pub segments: Value,
    pub metadata: Option<Object>,
    /// The files that the message refers to, with the first part only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<File>,
}

/// A stored file, with an address where a receiver without a token reads it for a while.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct File {
    pub artifact_id: String,
    #[serde(default)]
    pub name: Option<String>,
    #[serde(default)]
    pub mime_type: Option<String>,
    #[serde(default)]
    pub size_bytes: Option<u64>,
    #[serde(default)]
    pub sha256: Option<String>,
    pub url: String,
    /// RFC 3339.
    pub expires_at: String,
}

impl OutboundMessage {
    /// As it is stored: one line, keys sorted.
    pub fn to_json(&self) -> String {
        json!(self).to_string()
    }

    /// Reads what this or an earlier version stored.
    pub fn from_json(stored: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(stored)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The forms that version 0.1.0 wrote, byte for byte: what webhooks receive.
    const FIRST: [&str; 3] = [
        r#"{"agent":"a","conversation_id":"c","event_id":"e","message":{"content":"half","metadata":{"k":1.5},"role":"assistant","segments":[{"type":"image"}]},"part":1,"parts":2,"run_id":"r","sequence":9,"type":"message.completed"}"#,
        r#"{"agent":"a","conversation_id":null,"error":{"code":"runner.crashed","message":"exited","retryable":true},"event_id":"e","run_id":"r","sequence":2,"type":"run.failed"}"#,
        r#"{"agent":"a","conversation_id":"c","event_id":"e","payload":{"text":"hi"},"run_id":"r","sequence":0,"target":{"conversation_id":"c","surface":"hook"},"type":"message.send"}"#,
    ];

    #[test]
    fn a_message_of_the_first_version_is_read_and_written_unchanged() {
        for stored in FIRST {
            assert_eq!(OutboundMessage::from_json(stored).unwrap().to_json(), stored);
        }
        let action = OutboundMessage::from_json(FIRST[2]).unwrap().content;
        assert!(matches!(action, Content::Action { action, .. } if action == "message.send"));
    }
}
