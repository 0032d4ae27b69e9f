//! The parts of an assistant message in their order, for clients that send reasoning back.
//!
//! Invariant: opaque data is a string as the client sent it; a message without reasoning has no segments.

use greenroom_protocol::Object;
use greenroom_protocol::api::models::{ModelMessage, ModelToolCall};
use serde_json::{Value, json};

#[derive(Debug, Default)]
pub(super) struct Segments(Vec<Object>);

impl Segments {
    pub(super) fn text(&mut self, text: &str) {
        if !text.is_empty() {
            self.push(json!({"type": "text", "text": text}));
        }
    }

    pub(super) fn reasoning(&mut self, text: &str, opaque: Option<&str>) {
        let mut segment = json!({"type": "reasoning", "text": text});
        if let Some(opaque) = opaque.filter(|opaque| !opaque.is_empty()) {
            segment["data"] = opaque.into();
        }
        if !text.is_empty() || segment.get("data").is_some() {
            self.push(segment);
        }
    }

    pub(super) fn call(&mut self, call: &ModelToolCall) {
        self.push(json!({"type": "tool_call", "tool_call": call}));
    }

    /// All of them, if reasoning is among them.
    pub(super) fn finish(self) -> Option<Vec<Object>> {
        let is_reasoning = |segment: &Object| segment.get("type") == Some(&"reasoning".into());
        Some(self.0).filter(|segments| segments.iter().any(is_reasoning))
    }

    /// Adds the parts of a message that follows in the same turn.
    pub(super) fn append(message: &mut ModelMessage, more: Option<Vec<Object>>) {
        if let Some(more) = more {
            message.segments.get_or_insert_default().extend(more);
        }
    }

    pub(super) fn into_all(self) -> Vec<Object> {
        self.0
    }

    fn push(&mut self, segment: Value) {
        if let Value::Object(segment) = segment {
            self.0.push(segment);
        }
    }
}

/// Segments repeat what the message has anyway, unless reasoning is among them.
pub(super) fn drop_plain(messages: &mut [ModelMessage]) {
    for message in messages {
        message.segments = message.segments.take().and_then(|list| Segments(list).finish());
    }
}
