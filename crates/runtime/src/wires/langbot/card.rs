//! What LangBot would show of a run's messages, and the results that bring our readers there.
//!
//! LangBot shows one card at a time: a chunk replaces what the card shows unless it is empty, a final chunk or a
//! complete message closes it. Chunks are snapshots, not pieces.
//! Invariant: after the results of every step a reader holds the text of the card; media are sent with the message
//! that closes it.

use super::content::{message_content, text_of};
use super::results::{message_of, role};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::borrow::Cow;

/// The card of one run.
#[derive(Debug, Default)]
pub(crate) struct Card {
    /// What it shows: text, or elements of ours.
    content: Content,
    /// The text that readers hold of it.
    held: String,
    /// The last text of the open round, which a chunk without text repeats.
    snapshot: String,
    role: Option<String>,
    message_id: Option<String>,
    /// The final chunk, which the complete message may still add to.
    last: Option<FinalChunk>,
    /// The last complete message.
    completed: Option<Value>,
    /// The last sequence number that the runner gave.
    sequence: Option<i64>,
}

#[derive(Debug, Clone, PartialEq)]
enum Content {
    Text(String),
    Elements(Value),
}

impl Default for Content {
    fn default() -> Self {
        Self::Text(String::new())
    }
}

#[derive(Debug)]
struct FinalChunk {
    /// What it asked for; the card keeps showing its own content if this is empty.
    content: Content,
    role: String,
    tool_calls: Value,
}

/// A chunk as LangBot's SDK writes it.
#[derive(Deserialize)]
pub(crate) struct Chunk<'a> {
    #[serde(default, borrow)]
    role: Option<Cow<'a, str>>,
    #[serde(default)]
    content: Value,
    #[serde(default, borrow)]
    all_content: Option<Cow<'a, str>>,
    #[serde(default)]
    tool_calls: Value,
    #[serde(default)]
    is_final: bool,
    #[serde(default, borrow)]
    resp_message_id: Option<Cow<'a, str>>,
}

/// One result for our readers.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Step {
    /// The data of a `message.delta`.
    Delta(Value),
    /// The data of a `message.completed`.
    Completed(Value),
}

impl Card {
    /// Whether the runner has sent this number before; the host drops such a result.
    pub(crate) fn is_repeated(&mut self, sequence: Option<i64>) -> bool {
        let Some(sequence) = sequence else { return false };
        let repeated = self.sequence.is_some_and(|last| sequence <= last);
        if !repeated {
            self.sequence = Some(sequence);
        }
        repeated
    }

    /// A chunk; nothing if it is malformed.
    pub(crate) fn chunk(&mut self, chunk: &Chunk<'_>) -> Option<Vec<Step>> {
        let content = match &chunk.content {
            Value::Null | Value::String(_) | Value::Array(_) => &chunk.content,
            _ => return None,
        };
        let mut steps = Vec::new();
        self.settle(&mut steps);
        self.role.get_or_insert_with(|| role(chunk.role.as_deref()).to_owned());
        if self.message_id.is_none() {
            self.message_id = chunk.resp_message_id.as_deref().map(str::to_owned);
        }
        let given = chunk.all_content.as_deref();
        let shown = match (content, given) {
            (Value::Array(_), Some(text)) => Content::Text(text.to_owned()),
            (Value::Array(_), None) => Content::of(content),
            (_, given) => {
                let given = given.or(content.as_str().filter(|text| !text.is_empty()));
                if let Some(text) = given {
                    text.clone_into(&mut self.snapshot);
                }
                Content::Text(self.snapshot.clone())
            }
        };
        if chunk.is_final {
            let role = chunk.role.as_deref().unwrap_or_default().to_owned();
            let tool_calls = calls(&chunk.tool_calls);
            self.last = Some(FinalChunk { content: shown.clone(), role, tool_calls });
        }
        self.show(shown, &mut steps);
        Some(steps)
    }

    /// A complete message, with the files that belong to it.
    pub(crate) fn message(
        &mut self,
        message: &Map<String, Value>,
        files: Option<Value>,
    ) -> Vec<Step> {
        let mut steps = Vec::new();
        let tool_calls = calls(message.get("tool_calls").unwrap_or(&Value::Null));
        let content = Content::of(message.get("content").unwrap_or(&Value::Null));
        let content = match self.last.as_ref().and_then(|last| self.merge(last, message, &content))
        {
            Some(merged) => {
                self.last = None;
                merged
            }
            None => {
                self.settle(&mut steps);
                content
            }
        };
        self.snapshot.clear();
        // A round that ends in tool calls does not end the answer.
        if tool_calls != json!([]) {
            self.show(content, &mut steps);
            return steps;
        }
        // A message without content ends what is shown; if nothing is, LangBot shows nothing.
        let is_empty = content == Content::default();
        if is_empty && files.is_none() && self.shows_nothing() {
            self.clear();
            return steps;
        }
        let mut ours = message_of(message, files);
        ours["content"] = if is_empty { self.content.value() } else { content.value() };
        if let Some(id) = self.message_id.as_ref().filter(|_| ours["message_id"].is_null()) {
            ours["message_id"] = id.as_str().into();
        }
        self.close(ours, &mut steps);
        steps
    }

    /// The end of the run, with the message that it carries: LangBot shows that as any other.
    pub(crate) fn end(&mut self) -> Vec<Step> {
        let mut steps = Vec::new();
        match &self.content {
            Content::Elements(_) => self.close_as_shown(&mut steps),
            Content::Text(_) => self.show(self.content.clone(), &mut steps),
        }
        steps
    }

    /// Ends what is shown, before something of another kind.
    pub(crate) fn finish(&mut self) -> Vec<Step> {
        let mut steps = Vec::new();
        self.close_as_shown(&mut steps);
        steps
    }

    /// Whether the message that the terminal carries can stay there.
    pub(crate) fn is_untouched(&self) -> bool {
        self.is_empty() && self.completed.is_none()
    }

    /// Whether this was the last complete message already.
    pub(crate) fn has_completed(&self, message: &Map<String, Value>) -> bool {
        let content = Content::of(message.get("content").unwrap_or(&Value::Null)).value();
        self.is_empty() && self.completed.as_ref() == Some(&content)
    }

    fn is_empty(&self) -> bool {
        self.shows_nothing() && self.last.is_none()
    }

    fn shows_nothing(&self) -> bool {
        self.held.is_empty() && self.content == Content::default()
    }

    /// Starts the next card.
    fn clear(&mut self) {
        let (completed, sequence) = (self.completed.take(), self.sequence);
        *self = Self { completed, sequence, ..Self::default() };
    }

    /// A message of another kind was sent, which ended what readers hold.
    pub(crate) fn interrupt(&mut self) {
        self.held.clear();
    }

    /// The content of a message that completes the final chunk, if it does.
    fn merge(
        &self,
        last: &FinalChunk,
        message: &Map<String, Value>,
        content: &Content,
    ) -> Option<Content> {
        let text = |key: &str| message.get(key).and_then(Value::as_str).unwrap_or_default();
        let is_last_round = match (&last.content, content) {
            (Content::Text(shown), Content::Text(text)) => {
                !text.is_empty() && shown.ends_with(text)
            }
            _ => false,
        };
        let is_same = text("role") == last.role
            && calls(message.get("tool_calls").unwrap_or(&Value::Null)) == last.tool_calls
            && (last.content == Content::default() || last.content == *content || is_last_round);
        let merged = if is_last_round { &last.content } else { content };
        is_same.then(|| merged.clone())
    }

    /// Closes the card if its last chunk was final.
    fn settle(&mut self, steps: &mut Vec<Step>) {
        let Some(last) = self.last.take() else { return };
        self.snapshot.clear();
        if last.tool_calls == json!([]) {
            self.close_as_shown(steps);
        }
    }

    fn close_as_shown(&mut self, steps: &mut Vec<Step>) {
        let mut message =
            json!({"role": role(self.role.as_deref()), "content": self.content.value()});
        if let Some(id) = &self.message_id {
            message["message_id"] = id.as_str().into();
        }
        if self.shows_nothing() {
            self.clear();
        } else {
            self.close(message, steps);
        }
    }

    fn close(&mut self, message: Value, steps: &mut Vec<Step>) {
        let completed = Some(message["content"].clone());
        *self = Self { completed, sequence: self.sequence, ..Self::default() };
        steps.push(Step::Completed(json!({ "message": message })));
    }

    /// Brings readers to this content, as far as it is text. LangBot sends nothing for an empty one.
    fn show(&mut self, content: Content, steps: &mut Vec<Step>) {
        if content == Content::default() {
            return;
        }
        let text = content.text();
        let chunk = match text.strip_prefix(self.held.as_str()) {
            Some("") => None,
            Some(rest) => Some(json!({"role": role(self.role.as_deref()), "content": rest})),
            None => {
                Some(json!({"role": role(self.role.as_deref()), "content": text, "replace": true}))
            }
        };
        if let Some(mut chunk) = chunk {
            if let Some(id) = &self.message_id {
                chunk["message_id"] = id.as_str().into();
            }
            steps.push(Step::Delta(json!({ "chunk": chunk })));
            self.held = text.into_owned();
        }
        self.content = content;
    }
}

impl Content {
    fn of(content: &Value) -> Self {
        match content {
            Value::Array(elements) if elements.iter().any(|element| element["type"] != "text") => {
                Self::Elements(message_content(content))
            }
            content => Self::Text(text_of(content).unwrap_or_default()),
        }
    }

    fn text(&self) -> Cow<'_, str> {
        match self {
            Self::Text(text) => Cow::Borrowed(text),
            Self::Elements(elements) => Cow::Owned(text_of(elements).unwrap_or_default()),
        }
    }

    fn value(&self) -> Value {
        match self {
            Self::Text(text) => text.as_str().into(),
            Self::Elements(elements) => elements.clone(),
        }
    }
}

/// Tool calls as a list.
fn calls(calls: &Value) -> Value {
    if calls.is_array() { calls.clone() } else { json!([]) }
}

#[cfg(test)]
mod tests;
