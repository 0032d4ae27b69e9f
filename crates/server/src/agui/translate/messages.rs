//! Text and reasoning of a run, and the messages that the client has so far.
//!
//! Invariant: at most one text message is open. The client ends up with the text of `message.completed`: a missing
//! rest is sent as a delta, and text that differs is replaced by a snapshot.

use super::reasoning::Reasoning;
use crate::agui::event::Event;
use greenroom_protocol::payload::{Message, MessageChunk};
use greenroom_protocol::{ContentElement, Role};
use serde_json::{Map, Value, json};

/// Text per event; clients reject frames over 10 MiB.
const DELTA_BYTES_MAX: usize = 1 << 20;

#[derive(Debug)]
pub(super) struct Messages {
    prefix: String,
    before: Vec<Value>,
    /// Messages of this run that were sent.
    sent: Vec<Value>,
    reasoning: Reasoning,
    open: Option<Open>,
    /// Indexes in `sent` of texts that no `message.completed` covers yet.
    parts: Vec<usize>,
    pub(super) client_has_own: bool,
    pub(super) saw_complete: bool,
}

#[derive(Debug)]
struct Open {
    id: String,
    /// The runner's id.
    message_id: Option<String>,
}

impl Messages {
    pub(super) fn new(messages: Vec<Value>, run_id: &str) -> Self {
        let prefix = format!("{run_id}.");
        let is_own =
            |message: &Value| message["id"].as_str().is_some_and(|id| id.starts_with(&prefix));
        let (own, before): (Vec<Value>, Vec<Value>) = messages.into_iter().partition(is_own);
        let reasoning = Reasoning::new(&own);
        Self {
            prefix,
            before,
            sent: Vec::new(),
            reasoning,
            open: None,
            parts: Vec::new(),
            client_has_own: !own.is_empty(),
            saw_complete: false,
        }
    }

    pub(super) fn id(&self, number: i64) -> String {
        format!("{}{number}", self.prefix)
    }

    pub(super) fn push(&mut self, message: Value) {
        self.sent.push(message);
    }

    pub(super) fn snapshot(&self) -> Event {
        let messages = self.before.iter().chain(&self.sent).cloned().collect();
        Event::MessagesSnapshot { messages, metadata: Map::new() }
    }

    /// Drops everything of this run; returns whether there was anything.
    pub(super) fn clear(&mut self) -> bool {
        self.parts.clear();
        self.saw_complete = false;
        self.reasoning.forget();
        !std::mem::take(&mut self.sent).is_empty()
    }

    pub(super) fn delta(&mut self, chunk: MessageChunk, number: i64, out: &mut Vec<Event>) {
        if chunk.replace {
            self.retract(out);
        }
        if chunk.content.is_empty() {
            return;
        }
        self.reasoning.close(out);
        if self.open.as_ref().is_some_and(|open| open.message_id != chunk.message_id) {
            self.close(out);
        }
        let id = match &self.open {
            Some(open) => open.id.clone(),
            None => self.start(number, chunk.role, chunk.message_id, out),
        };
        self.append(id, &chunk.content, out);
    }

    pub(super) fn completed(&mut self, message: &Message, number: i64, out: &mut Vec<Event>) {
        self.reasoning.close(out);
        let text = message.content.text();
        let texts: Vec<&str> = self.parts.iter().map(|index| self.text_of(*index)).collect();
        let (all, last) = (texts.concat(), texts.last().copied().unwrap_or_default().to_owned());
        self.saw_complete = true;
        if self.parts.is_empty() {
            self.thoughts(message, number, out);
            if !text.is_empty() {
                self.send(number, message.role, &text, out);
            }
        } else if let Some(rest) = text.strip_prefix(&all) {
            self.add(number, message.role, rest, out);
            self.thoughts(message, number, out);
        } else {
            self.close(out);
            if last != text {
                self.replace(&text);
                out.push(self.snapshot());
            }
            self.thoughts(message, number, out);
        }
        self.parts.clear();
        self.reasoning.forget();
        self.media(message, number, out);
    }

    /// Removes the text that no `message.completed` covers: AG-UI can only append, so a snapshot removes it.
    fn retract(&mut self, out: &mut Vec<Event>) {
        self.close(out);
        let parts = std::mem::take(&mut self.parts);
        if parts.is_empty() {
            return;
        }
        for index in parts.into_iter().rev() {
            self.sent.remove(index);
        }
        out.push(self.snapshot());
    }

    /// A piece of reasoning: before the text that it leads to.
    pub(super) fn thought(&mut self, text: &str, number: i64, out: &mut Vec<Event>) {
        if let Some(open) = self.open.take() {
            out.push(Event::TextMessageEnd { message_id: open.id });
        }
        let id = self.id(number);
        self.reasoning.piece(&id, text, out);
    }

    /// Replaces the arguments of a call that were sent.
    pub(super) fn set_arguments(&mut self, call_id: &str, arguments: &str) {
        let mut newest_first = self.sent.iter_mut().rev();
        let call = newest_first.find_map(|message| {
            message["toolCalls"].get_mut(0).filter(|call| call["id"] == call_id)
        });
        if let Some(call) = call {
            call["function"]["arguments"] = arguments.into();
        }
    }

    pub(super) fn remove_call(&mut self, call_id: &str) {
        let is_its = |message: &Value| message["toolCalls"][0]["id"] == call_id;
        let Some(index) = self.sent.iter().position(is_its) else { return };
        self.sent.remove(index);
        self.parts.iter_mut().filter(|part| **part > index).for_each(|part| *part -= 1);
    }

    pub(super) fn close(&mut self, out: &mut Vec<Event>) {
        self.reasoning.close(out);
        if let Some(open) = self.open.take() {
            out.push(Event::TextMessageEnd { message_id: open.id });
        }
    }

    fn text_of(&self, index: usize) -> &str {
        self.sent.get(index).and_then(|message| message["content"].as_str()).unwrap_or_default()
    }

    fn start(
        &mut self,
        number: i64,
        role: Role,
        message_id: Option<String>,
        out: &mut Vec<Event>,
    ) -> String {
        let id = self.id(number);
        // Tools report through call results, not text messages.
        let role = if role == Role::Tool { Role::Assistant.as_str() } else { role.as_str() };
        self.parts.push(self.sent.len());
        self.sent.push(json!({"id": id, "role": role, "content": ""}));
        self.open = Some(Open { id: id.clone(), message_id });
        out.push(Event::TextMessageStart { message_id: id.clone(), role });
        id
    }

    fn append(&mut self, id: String, text: &str, out: &mut Vec<Event>) {
        let sent = self.parts.last().and_then(|index| self.sent.get_mut(*index));
        if let Some(Value::String(content)) = sent.and_then(|message| message.get_mut("content")) {
            content.push_str(text);
        }
        let mut rest = text;
        while !rest.is_empty() {
            let (delta, after) = rest.split_at(rest.floor_char_boundary(DELTA_BYTES_MAX));
            out.push(Event::TextMessageContent { message_id: id.clone(), delta: delta.to_owned() });
            rest = after;
        }
    }

    fn send(&mut self, number: i64, role: Role, text: &str, out: &mut Vec<Event>) {
        let id = self.start(number, role, None, out);
        self.append(id, text, out);
        self.close(out);
    }

    /// Sends the part of a message that deltas did not contain.
    fn add(&mut self, number: i64, role: Role, rest: &str, out: &mut Vec<Event>) {
        match self.open.as_ref().map(|open| open.id.clone()) {
            _ if rest.is_empty() => {}
            Some(id) => self.append(id, rest, out),
            None => self.send(number, role, rest, out),
        }
        self.close(out);
    }

    /// Replaces the last part by the text and removes the others.
    fn replace(&mut self, text: &str) {
        let mut parts = std::mem::take(&mut self.parts);
        let last = parts.pop();
        if let Some(message) = last.and_then(|index| self.sent.get_mut(index)) {
            message["content"] = text.into();
        }
        let removed = parts.into_iter().chain(last.filter(|_| text.is_empty()));
        for index in removed.collect::<Vec<_>>().into_iter().rev() {
            self.sent.remove(index);
        }
    }

    /// Reasoning of a complete message, as far as it was not sent in pieces.
    fn thoughts(&mut self, message: &Message, number: i64, out: &mut Vec<Event>) {
        let segments = message.segments.as_deref().unwrap_or_default().iter().enumerate();
        for (index, segment) in segments.filter(|(_, segment)| segment["type"] == "reasoning") {
            let Some(text) = segment["text"].as_str().filter(|text| !text.is_empty()) else {
                continue;
            };
            let id = format!("{}.{index}", self.id(number));
            self.reasoning.whole(&id, text, out);
        }
    }

    /// AG-UI messages are text; media are sent as a custom event.
    fn media(&self, message: &Message, number: i64, out: &mut Vec<Event>) {
        let elements = message.media().map(|element| {
            let mut shown = json!(element);
            if let Some(id) = element.media().and_then(|media| media.artifact_id.as_ref()) {
                shown["url"] = format!("/v1/artifacts/{id}").into();
            }
            shown
        });
        let in_segments = message.segments.iter().flatten().filter(|segment| {
            matches!(segment["type"].as_str(), Some("image" | "audio" | "video" | "file"))
        });
        let media: Vec<Value> = match message.media().next() {
            Some(ContentElement::Text { .. }) | None => in_segments.cloned().collect(),
            Some(_) => elements.collect(),
        };
        if !media.is_empty() {
            let value = json!({"message_id": self.id(number), "media": media});
            out.push(Event::Custom { name: "message.media".to_owned(), value });
        }
    }
}
