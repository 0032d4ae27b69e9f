//! A complete response, collected from its items.
//!
//! Invariant: parts are in the order in which they started; adjacent text of one kind is one part.

use greenroom_protocol::Object;
use greenroom_protocol::api::models::ModelStreamItem;
use serde_json::Value;

#[derive(Debug, Default)]
pub(super) struct Completion {
    pub parts: Vec<Part>,
    pub usage: Option<Object>,
    pub reason: String,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Part {
    Text(String),
    Reasoning { text: String, signature: Option<String> },
    Call { id: String, name: String, args: String },
    Media { mime_type: String, data: String },
}

impl Completion {
    pub(super) fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    pub(super) fn push(&mut self, item: &ModelStreamItem) {
        match item {
            ModelStreamItem::TextDelta { text } => match self.parts.last_mut() {
                Some(Part::Text(existing)) => existing.push_str(text),
                _ => self.parts.push(Part::Text(text.clone())),
            },
            ModelStreamItem::ReasoningDelta { text } => match self.parts.last_mut() {
                Some(Part::Reasoning { text: existing, signature: None }) => {
                    existing.push_str(text)
                }
                _ => self.parts.push(Part::Reasoning { text: text.clone(), signature: None }),
            },
            ModelStreamItem::ToolCallStart { id, name } => {
                let (id, name) = (id.clone(), name.clone());
                self.parts.push(Part::Call { id, name, args: String::new() });
            }
            ModelStreamItem::ToolCallDelta { id: delta_id, args_text } => {
                for part in &mut self.parts {
                    if let Part::Call { id, args, .. } = part
                        && id == delta_id
                    {
                        args.push_str(args_text);
                    }
                }
            }
            ModelStreamItem::ToolCallEnd(_) => {}
            ModelStreamItem::Media { segment } => self.media(segment),
            ModelStreamItem::Usage(usage) => self.usage = Some(usage.clone()),
            ModelStreamItem::Finish { reason } => self.reason.clone_from(reason),
        }
    }

    fn media(&mut self, segment: &Object) {
        match media(segment) {
            Media::Signature(data) => match self.parts.last_mut() {
                Some(Part::Reasoning { signature, .. }) => *signature = Some(data),
                _ => {
                    self.parts.push(Part::Reasoning { text: String::new(), signature: Some(data) });
                }
            },
            Media::Bytes { mime_type, data } => self.parts.push(Part::Media { mime_type, data }),
        }
    }
}

/// A media item: opaque reasoning data or bytes.
pub(super) enum Media {
    Signature(String),
    Bytes { mime_type: String, data: String },
}

pub(super) fn media(segment: &Object) -> Media {
    let word = |key: &str| segment.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    match word("type").as_str() {
        "reasoning" => Media::Signature(word("data")),
        kind => {
            let mime_type = match word("mime_type") {
                given if !given.is_empty() => given,
                _ if kind == "image" => "image/png".to_owned(),
                _ => format!("{kind}/mpeg"),
            };
            Media::Bytes { mime_type, data: word("data") }
        }
    }
}

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Counts {
    pub input: Option<u64>,
    pub output: Option<u64>,
    pub total: Option<u64>,
    pub cached: Option<u64>,
    pub cache_write: Option<u64>,
    pub reasoning: Option<u64>,
}

impl Counts {
    pub(super) fn new(usage: &Object) -> Self {
        let count = |key: &str| usage.get(key).and_then(Value::as_u64);
        Self {
            input: count("input_tokens"),
            output: count("output_tokens"),
            total: count("total_tokens"),
            cached: count("cached_input_tokens"),
            cache_write: count("cache_write_input_tokens"),
            reasoning: count("reasoning_tokens"),
        }
    }
}
