//! The output of a call: from its source, and as it is stored (seed 004 §7, §8).
//!
//! Invariant: what the model reads and what people see is derived from `result`.

use greenroom_protocol::Object;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The output of a source.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolOutput {
    pub status: Status,
    /// Null when there is none.
    pub result: Value,
    pub error: Option<ToolFailure>,
    /// Bytes that belong to it; `result` refers to each by its index: `{"attachment": 0}`.
    pub attachments: Vec<Attachment>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    Success,
    Failure,
    Partial,
}

/// What went wrong, in a form that lets the caller correct it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolFailure {
    pub code: String,
    pub message: String,
    /// `module`, `method`, `input_schema`, `field`, `hint` and the like.
    #[serde(flatten)]
    pub details: Object,
}

#[derive(Clone, PartialEq, Eq)]
pub struct Attachment {
    pub name: Option<String>,
    pub mime_type: String,
    pub bytes: Vec<u8>,
}

impl std::fmt::Debug for Attachment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Attachment({}, {} bytes)", self.mime_type, self.bytes.len())
    }
}

/// The canonical record of a call; `ui_hints` never leave the host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolAgentOutput {
    pub tool_name: String,
    pub tool_call_id: String,
    pub tool_call_args: Object,
    pub status: Status,
    pub result: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ToolFailure>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ui_hints: Option<Value>,
}

impl ToolFailure {
    pub fn new(code: &str, message: impl Into<String>) -> Self {
        Self { code: code.to_owned(), message: message.into(), details: Object::new() }
    }

    #[must_use]
    pub fn detail(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.details.insert(key.to_owned(), value.into());
        self
    }
}

impl ToolOutput {
    pub fn success(result: Value) -> Self {
        Self { status: Status::Success, result, error: None, attachments: Vec::new() }
    }

    pub fn failure(error: ToolFailure) -> Self {
        Self {
            status: Status::Failure,
            result: Value::Null,
            error: Some(error),
            attachments: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_of_the_first_version_are_read() {
        let done = r#"{"tool_name":"shed.note","tool_call_id":"note-1","tool_call_args":{"text":"笔记"},
            "status":"success","result":{"noted":"笔记"}}"#;
        let output: ToolAgentOutput = serde_json::from_str(done).unwrap();
        assert_eq!((output.status, &output.result["noted"]), (Status::Success, &"笔记".into()));
        let failed = r#"{"tool_name":"shed.note","tool_call_id":"note-2","tool_call_args":{},"status":"failure",
            "result":null,"error":{"code":"INVALID_ARGUMENT","message":"no","field":"text"},"a_field_of_old":1}"#;
        let output: ToolAgentOutput = serde_json::from_str(failed).unwrap();
        let error = output.error.unwrap();
        assert_eq!(
            (error.code.as_str(), &error.details["field"]),
            ("INVALID_ARGUMENT", &"text".into())
        );
    }
}
