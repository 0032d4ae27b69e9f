//! Typed payloads of the nine stable result types (CONTRACT §3).
//!
//! Invariant: everything that the host acts on is checked here first. Unknown fields are stored with the result but
//! never acted on.

mod check;
mod delta;

pub use check::check_state_key;
pub(crate) use check::is_base64;
pub use delta::DeltaRef;

use crate::nesting::{self, NESTING_MAX};
use crate::result::kind;
use crate::{ContentElement, MessageContent, Object, Role, object};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Longest state key.
pub const STATE_KEY_BYTES_MAX: usize = 256;
/// Longest result type.
pub const KIND_BYTES_MAX: usize = 128;
/// Longest code of a failed run.
pub const RUN_CODE_BYTES_MAX: usize = 128;
/// Largest state value, as JSON text.
pub const STATE_VALUE_BYTES_MAX: usize = 256 * 1024;

/// A result's data, parsed by its type.
#[derive(Debug, Clone, PartialEq)]
pub enum Payload {
    MessageDelta(MessageDelta),
    MessageCompleted(MessageCompleted),
    ToolCallStarted(ToolCallStarted),
    ToolCallCompleted(ToolCallCompleted),
    ArtifactCreated(ArtifactCreated),
    StateUpdated(StateUpdated),
    ActionRequested(ActionRequested),
    RunCompleted(RunCompleted),
    RunFailed(RunFailed),
    /// Stored with a warning, not acted on: unknown types, and `tool.call.*` of another shape, which are
    /// telemetry.
    Unknown,
}

#[derive(Debug, thiserror::Error)]
pub enum InvalidPayload {
    #[error("data of `{kind}` is not valid: {reason}")]
    Shape { kind: String, reason: serde_json::Error },
    #[error("data of `{kind}` is not valid: {reason}")]
    Value { kind: String, reason: String },
}

impl Payload {
    /// Parses and checks the data of a result. `data` is JSON text; missing data is an empty object.
    pub fn parse(result_kind: &str, data: Option<&str>) -> Result<Payload, InvalidPayload> {
        let data = data.unwrap_or("{}");
        if result_kind != kind::MESSAGE_DELTA {
            check_kind(result_kind)?;
            check_readable(result_kind, data)?;
        }
        let payload = match result_kind {
            kind::MESSAGE_DELTA => return DeltaRef::parse(data).map(Payload::from),
            kind::MESSAGE_COMPLETED => Payload::MessageCompleted(read(result_kind, data)?),
            kind::TOOL_CALL_STARTED => match read(result_kind, data) {
                Ok(call) => Payload::ToolCallStarted(call),
                Err(_) => Payload::Unknown,
            },
            kind::TOOL_CALL_COMPLETED => match read(result_kind, data) {
                Ok(call) => Payload::ToolCallCompleted(call),
                Err(_) => Payload::Unknown,
            },
            kind::ARTIFACT_CREATED => Payload::ArtifactCreated(read(result_kind, data)?),
            kind::STATE_UPDATED => Payload::StateUpdated(read(result_kind, data)?),
            kind::ACTION_REQUESTED => Payload::ActionRequested(read(result_kind, data)?),
            kind::RUN_COMPLETED => Payload::RunCompleted(read(result_kind, data)?),
            kind::RUN_FAILED => Payload::RunFailed(read(result_kind, data)?),
            _ => Payload::Unknown,
        };
        match payload.problem() {
            Some(reason) => Err(InvalidPayload::Value { kind: result_kind.to_owned(), reason }),
            None => Ok(payload),
        }
    }
}

fn read<'a, T: Deserialize<'a>>(result_kind: &str, data: &'a str) -> Result<T, InvalidPayload> {
    object::from_str(data)
        .map_err(|reason| InvalidPayload::Shape { kind: result_kind.to_owned(), reason })
}

/// Types become names of server-sent events: one word, and none that is reserved for the host.
fn check_kind(result_kind: &str) -> Result<(), InvalidPayload> {
    let is_word = (1..=KIND_BYTES_MAX).contains(&result_kind.len())
        && !result_kind.contains(|c: char| c.is_control() || c.is_whitespace());
    let reason = match result_kind {
        kind::RUN_RESTARTED => "only the host writes this type".to_owned(),
        _ if !is_word => format!("a type must be one word of 1 to {KIND_BYTES_MAX} bytes"),
        _ => return Ok(()),
    };
    let kind = result_kind.chars().take(KIND_BYTES_MAX).collect();
    Err(InvalidPayload::Value { kind, reason })
}

/// Data is stored and passed on as text, including unknown fields. So all of it must be readable: an object, no
/// lone surrogates, no numbers beyond a double, not nested too deep.
fn check_readable(result_kind: &str, data: &str) -> Result<(), InvalidPayload> {
    if nesting::depth(data.as_bytes()) > NESTING_MAX {
        let reason = format!("it is nested deeper than {NESTING_MAX} levels");
        return Err(InvalidPayload::Value { kind: result_kind.to_owned(), reason });
    }
    read::<Object>(result_kind, data).map(drop)
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MessageDelta {
    #[serde(deserialize_with = "object::one")]
    pub chunk: MessageChunk,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MessageChunk {
    #[serde(default = "assistant")]
    pub role: Role,
    pub content: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<String>,
    /// The content replaces all deltas since the last `message.completed`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub replace: bool,
}

fn assistant() -> Role {
    Role::Assistant
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MessageCompleted {
    #[serde(deserialize_with = "object::one")]
    pub message: Message,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Message {
    #[serde(default = "assistant")]
    pub role: Role,
    pub content: MessageContent,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub segments: Option<Vec<Value>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Object>,
}

impl Message {
    pub fn assistant(text: impl Into<String>) -> Self {
        Self {
            role: Role::Assistant,
            content: MessageContent::Text(text.into()),
            message_id: None,
            segments: None,
            metadata: None,
        }
    }

    pub fn media(&self) -> impl Iterator<Item = &ContentElement> {
        let parts: &[ContentElement] = match &self.content {
            MessageContent::Text(_) => &[],
            MessageContent::Parts(parts) => parts,
        };
        parts.iter().filter(|part| !matches!(part, ContentElement::Text { .. }))
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolCallStarted {
    pub tool_call_id: String,
    pub tool_name: String,
    #[serde(default)]
    pub parameters: Value,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolCallCompleted {
    pub tool_call_id: String,
    pub tool_name: String,
    #[serde(default)]
    pub result: Value,
    #[serde(default)]
    pub error: Value,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ArtifactCreated {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    #[serde(
        default,
        deserialize_with = "crate::number::size",
        skip_serializing_if = "Option::is_none"
    )]
    pub size_bytes: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_base64: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Object>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StateUpdated {
    pub scope: StateScope,
    pub key: String,
    /// `null` removes the key.
    pub value: Value,
}

#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum StateScope {
    Conversation,
    Actor,
    Subject,
    Runner,
    Binding,
}

impl StateScope {
    pub const ALL: [StateScope; 5] = [
        StateScope::Conversation,
        StateScope::Actor,
        StateScope::Subject,
        StateScope::Runner,
        StateScope::Binding,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            StateScope::Conversation => "conversation",
            StateScope::Actor => "actor",
            StateScope::Subject => "subject",
            StateScope::Runner => "runner",
            StateScope::Binding => "binding",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ActionRequested {
    pub action: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<Object>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<Object>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RunCompleted {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finish_reason: Option<String>,
    #[serde(deserialize_with = "object::optional", skip_serializing_if = "Option::is_none")]
    pub message: Option<Message>,
}

/// `message` or `error` contains the text; runners use both.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunFailed {
    #[serde(default = "runner_error")]
    pub code: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    #[serde(default)]
    pub retryable: bool,
}

impl RunFailed {
    pub fn text(&self) -> &str {
        self.message.as_deref().or(self.error.as_deref()).unwrap_or("the runner gave no reason")
    }
}

fn runner_error() -> String {
    crate::error::run_code::ERROR.to_owned()
}
