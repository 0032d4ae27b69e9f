//! Folds stream items to the segments of one response.
//!
//! Invariant: segments are in the order in which they started. Opaque provider data (`media` items of type
//! `reasoning`) is attached to the preceding reasoning, or stands alone if there is none.

use greenroom_protocol::Object;
use greenroom_protocol::api::models::{ModelStreamItem, ModelToolCall, ProviderResponse};
use serde_json::{Value, json};
use std::collections::HashMap;

/// Built item by item; see `ProviderResponse`.
#[derive(Debug, Default)]
pub struct Fold {
    segments: Vec<Object>,
    /// Index of a call's segment.
    calls: HashMap<String, usize>,
    usage: Option<Object>,
    finish_reason: Option<String>,
}

impl Fold {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn push(&mut self, item: &ModelStreamItem) {
        match item {
            ModelStreamItem::TextDelta { text } => self.grow("text", text),
            ModelStreamItem::ReasoningDelta { text } => self.grow("reasoning", text),
            ModelStreamItem::ToolCallStart { id, name } => {
                let call = ModelToolCall {
                    id: id.clone(),
                    name: name.clone(),
                    args: Value::Null,
                    args_text: None,
                    args_error: Some("the call is incomplete".to_owned()),
                };
                self.put_call(&call);
            }
            ModelStreamItem::ToolCallDelta { .. } => {}
            ModelStreamItem::ToolCallEnd(call) => self.put_call(call),
            ModelStreamItem::Media { segment } => self.put_media(segment),
            ModelStreamItem::Usage(usage) => self.usage = Some(usage.clone()),
            ModelStreamItem::Finish { reason } => self.finish_reason = Some(reason.clone()),
        }
    }

    /// `metadata`: see `ModelStream::metadata`.
    pub fn finish(self, mut metadata: Object) -> ProviderResponse {
        if let Some(reason) = self.finish_reason {
            metadata.insert("finish_reason".to_owned(), reason.into());
        }
        if let Some(usage) = self.usage {
            metadata.insert("usage".to_owned(), Value::Object(usage));
        }
        ProviderResponse { segments: self.segments, metadata }
    }

    fn grow(&mut self, kind: &str, more: &str) {
        if let Some(last) = self.segments.last_mut()
            && last.get("type") == Some(&kind.into())
            && !last.contains_key("data")
            && let Some(Value::String(text)) = last.get_mut("text")
        {
            text.push_str(more);
            return;
        }
        self.segments.push(segment([("type", kind.into()), ("text", more.into())]));
    }

    fn put_call(&mut self, call: &ModelToolCall) {
        let made = segment([("type", "tool_call".into()), ("tool_call", json!(call))]);
        match self.calls.get(&call.id) {
            Some(at) => self.segments[*at] = made,
            None => {
                self.calls.insert(call.id.clone(), self.segments.len());
                self.segments.push(made);
            }
        }
    }

    fn put_media(&mut self, media: &Object) {
        if media.get("type") == Some(&"reasoning".into())
            && let Some(last) = self.segments.last_mut()
            && last.get("type") == Some(&"reasoning".into())
            && !last.contains_key("data")
            && let Some(data) = media.get("data")
        {
            last.insert("data".to_owned(), data.clone());
            return;
        }
        self.segments.push(media.clone());
    }
}

fn segment<const N: usize>(fields: [(&str, Value); N]) -> Object {
    fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folded(items: Value) -> Value {
        let items: Vec<ModelStreamItem> = serde_json::from_value(items).unwrap();
        let mut fold = Fold::new();
        items.iter().for_each(|item| fold.push(item));
        json!(fold.finish(Object::new()))
    }

    #[test]
    fn deltas_of_one_kind_become_one_segment_and_calls_keep_their_order() {
        let answer = folded(json!([
            {"type": "reasoning_delta", "text": "Let me "},
            {"type": "reasoning_delta", "text": "see."},
            {"type": "media", "segment": {"type": "reasoning", "data": {"wire": "anthropic", "signature": "S"}}},
            {"type": "text_delta", "text": "I "},
            {"type": "text_delta", "text": "look."},
            {"type": "tool_call_start", "id": "a", "name": "read"},
            {"type": "tool_call_start", "id": "b", "name": "list"},
            {"type": "tool_call_delta", "id": "b", "args_text": "{}"},
            {"type": "tool_call_end", "id": "b", "name": "list", "args": {}},
            {"type": "tool_call_end", "id": "a", "name": "read", "args": null, "args_text": "{", "args_error": "EOF"},
            {"type": "text_delta", "text": "Done."},
            {"type": "usage", "input_tokens": 1},
            {"type": "finish", "reason": "tool_calls"},
        ]));
        let expected = json!({
            "segments": [
                {"type": "reasoning", "text": "Let me see.", "data": {"wire": "anthropic", "signature": "S"}},
                {"type": "text", "text": "I look."},
                {"type": "tool_call", "tool_call": {"id": "a", "name": "read", "args": null, "args_text": "{", "args_error": "EOF"}},
                {"type": "tool_call", "tool_call": {"id": "b", "name": "list", "args": {}}},
                {"type": "text", "text": "Done."},
            ],
            "metadata": {"finish_reason": "tool_calls", "usage": {"input_tokens": 1}},
        });
        assert_eq!(answer, expected);
    }

    #[test]
    fn data_is_attached_to_reasoning_or_stands_alone() {
        let answer = folded(json!([
            {"type": "reasoning_delta", "text": "one"},
            {"type": "media", "segment": {"type": "reasoning", "data": "1"}},
            {"type": "reasoning_delta", "text": "two"},
            {"type": "text_delta", "text": "x"},
            {"type": "media", "segment": {"type": "reasoning", "data": "2"}},
            {"type": "media", "segment": {"type": "image", "data": "aWs=", "mime_type": "image/png"}},
        ]));
        let expected = json!([
            {"type": "reasoning", "text": "one", "data": "1"},
            {"type": "reasoning", "text": "two"},
            {"type": "text", "text": "x"},
            {"type": "reasoning", "data": "2"},
            {"type": "image", "data": "aWs=", "mime_type": "image/png"},
        ]);
        assert_eq!(answer["segments"], expected);
        assert_eq!(answer["metadata"], json!({}));
    }

    #[test]
    fn an_incomplete_call_has_an_error() {
        let answer = folded(json!([{"type": "tool_call_start", "id": "a", "name": "rm"}]));
        assert_eq!(
            answer["segments"],
            json!([{"type": "tool_call", "tool_call": {"id": "a", "name": "rm", "args": null, "args_error": "the call is incomplete"}}])
        );
    }
}
