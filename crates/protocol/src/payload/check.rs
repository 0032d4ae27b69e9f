//! Checks of payloads beyond their shape.
//!
//! Invariant: a check returns the reason in one sentence, or `None`.

use super::{
    ActionRequested, ArtifactCreated, Message, Payload, RUN_CODE_BYTES_MAX, RunFailed,
    STATE_KEY_BYTES_MAX, STATE_VALUE_BYTES_MAX, StateUpdated,
};
use crate::MessageContent;

impl Payload {
    pub(super) fn problem(&self) -> Option<String> {
        match self {
            Payload::MessageCompleted(completed) => completed.message.problem(),
            Payload::ArtifactCreated(artifact) => artifact.problem(),
            Payload::StateUpdated(update) => update.problem(),
            Payload::ActionRequested(request) => request.problem(),
            Payload::RunCompleted(completed) => completed.message.as_ref()?.problem(),
            Payload::RunFailed(failed) => failed.problem(),
            Payload::MessageDelta(_)
            | Payload::ToolCallStarted(_)
            | Payload::ToolCallCompleted(_)
            | Payload::Unknown => None,
        }
    }
}

impl Message {
    fn problem(&self) -> Option<String> {
        match &self.content {
            MessageContent::Text(_) => None,
            MessageContent::Parts(parts) => {
                parts.iter().find_map(|part| part.problem()).map(str::to_owned)
            }
        }
    }
}

impl ArtifactCreated {
    fn problem(&self) -> Option<String> {
        let is_sha256 =
            |hash: &str| hash.len() == 64 && hash.bytes().all(|b| b.is_ascii_hexdigit());
        if self.artifact_id.as_deref() == Some("") {
            return Some("`artifact_id` is empty".to_owned());
        }
        if self.sha256.as_deref().is_some_and(|hash| !is_sha256(hash)) {
            return Some("`sha256` must have 64 hexadecimal digits".to_owned());
        }
        if self.content_base64.as_deref().is_some_and(|text| !is_base64(text)) {
            return Some("`content_base64` must be base64".to_owned());
        }
        None
    }
}

/// The standard alphabet with padding (RFC 4648 §4).
pub(crate) fn is_base64(text: &str) -> bool {
    let digits = text.strip_suffix("==").or_else(|| text.strip_suffix('=')).unwrap_or(text);
    text.len().is_multiple_of(4)
        && digits.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'+' || b == b'/')
}

impl StateUpdated {
    fn problem(&self) -> Option<String> {
        check_state_key(&self.key).err().or_else(|| {
            let bytes = self.value.to_string().len();
            (bytes > STATE_VALUE_BYTES_MAX).then(|| {
                format!("`value` has {bytes} bytes, at most {STATE_VALUE_BYTES_MAX} are allowed")
            })
        })
    }
}

/// A state key: 1 to 256 bytes, no control characters.
pub fn check_state_key(key: &str) -> Result<(), String> {
    if key.is_empty() || key.len() > STATE_KEY_BYTES_MAX {
        return Err(format!("`key` must have 1 to {STATE_KEY_BYTES_MAX} bytes"));
    }
    if key.chars().any(char::is_control) {
        return Err("`key` must not contain control characters".to_owned());
    }
    Ok(())
}

impl ActionRequested {
    fn problem(&self) -> Option<String> {
        self.action.is_empty().then(|| "`action` is empty".to_owned())
    }
}

impl RunFailed {
    fn problem(&self) -> Option<String> {
        let code = &self.code;
        if code.is_empty() || code.len() > RUN_CODE_BYTES_MAX {
            return Some(format!("`code` must have 1 to {RUN_CODE_BYTES_MAX} bytes"));
        }
        let is_odd = |c: char| c.is_control() || c.is_whitespace();
        code.contains(is_odd)
            .then(|| "`code` must not contain spaces or control characters".to_owned())
    }
}
