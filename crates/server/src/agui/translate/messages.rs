//! Text and reasoning of a run, and the messages that the client has so far.
//!
//! Invariant: at most one text message is open. The client ends up with the text of `message.completed`: a missing
//! rest is sent as a delta, and text that differs is replaced by a snapshot.

use super::parts::{Part, Parts};
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
    /// Texts that no `message.completed` covers yet.
    parts: Parts,
    /// The sub-agent whose result is taken now.
    pub(super) author: Option<String>,
    /// The sub-agent of the last complete message.
    pub(super) completed_by: Option<String>,
    pub(super) client_has_own: bool,
    pub(super) saw_complete: bool,
}

#[derive(Debug)]
struct Open {
    id: String,
    /// Its index in `sent`.
    index: usize,
}

impl Messages {
    pub(super) fn new(messages: Vec<Value>, run_id: &str) -> Self {
        let prefix = format!("{run_id}.");
        let is_own =
            |message: &Value| message["id"].as_str().is_some_and(|id| id.starts_with(&prefix));
        let (own, before): (Vec<Value>, Vec<Value>) = messages.into_iter().partition(is_own);
        let reasoning = Reasoning::new(&own);
        // Clients keep their reasoning and activities through a snapshot that has none.
        let is_kept =
            |message: &Value| message["role"] == "reasoning" || message["role"] == "activity";
        let before = before.into_iter().filter(|message| !is_kept(message)).collect();
        Self {
            prefix,
            before,
            sent: Vec::new(),
            reasoning,
            open: None,
            parts: Parts::default(),
            author: None,
            completed_by: None,
            client_has_own: !own.is_empty(),
            saw_complete: false,
        }
    }

    pub(super) fn id(&self, number: i64) -> String {
        format!("{}{number}", self.prefix)
    }

    /// Adds a message of the author of this result.
    pub(super) fn push(&mut self, mut message: Value) {
        if let Some(author) = &self.author {
            message["subagentRunId"] = author.as_str().into();
        }
        self.sent.push(message);
    }

    pub(super) fn snapshot(&self) -> Event {
        let messages = self.before.iter().chain(&self.sent).cloned().collect();
        Event::MessagesSnapshot { messages, metadata: Map::new() }
    }

    /// Drops everything of this run; returns whether there was anything.
    pub(super) fn clear(&mut self) -> bool {
        self.parts = Parts::default();
        self.saw_complete = false;
        self.reasoning.forget();
        !std::mem::take(&mut self.sent).is_empty()
    }

    pub(super) fn delta(&mut self, chunk: MessageChunk, number: i64, out: &mut Vec<Event>) {
        let message = self.parts.message(chunk.message_id, self.author.clone());
        if chunk.replace {
            self.retract(&message, out);
        }
        if chunk.content.is_empty() {
            return;
        }
        self.reasoning.close(out);
        let current = self.open.as_ref().map(|open| open.index);
        let index = match current.filter(|index| self.parts.is_of(*index, &message)) {
            Some(index) => index,
            None => {
                self.close(out);
                self.start(number, chunk.role, message, out)
            }
        };
        self.append(index, &chunk.content, out);
    }

    pub(super) fn completed(&mut self, message: &Message, number: i64, out: &mut Vec<Event>) {
        self.reasoning.close(out);
        let text = message.content.text();
        let parts = self.parts.complete(message.message_id.as_deref(), self.author.as_deref());
        let texts: Vec<&str> = parts.iter().map(|index| self.text_of(*index)).collect();
        let (all, last) = (texts.concat(), texts.last().copied().unwrap_or_default().to_owned());
        let streamed = parts.first().and_then(|index| self.sent[*index]["subagentRunId"].as_str());
        self.completed_by = self.author.clone().or_else(|| streamed.map(str::to_owned));
        self.saw_complete = true;
        if parts.is_empty() {
            self.thoughts(message, number, out);
            if !text.is_empty() {
                self.send(number, message, &text, out);
            }
        } else if let Some(rest) = text.strip_prefix(&all) {
            self.add(number, message, (&parts, rest), out);
            self.thoughts(message, number, out);
        } else {
            self.close(out);
            if last != text {
                self.replace(parts, &text);
                out.push(self.snapshot());
            }
            self.thoughts(message, number, out);
        }
        self.reasoning.forget();
        self.media(message, number, out);
    }

    /// Removes the text of a message that no `message.completed` covers: AG-UI can only append, so a snapshot
    /// removes it.
    fn retract(&mut self, message: &Part, out: &mut Vec<Event>) {
        self.close(out);
        let parts = self.parts.remove(message);
        if parts.is_empty() {
            return;
        }
        parts.into_iter().rev().for_each(|index| self.remove(index));
        out.push(self.snapshot());
    }

    /// Removes a message that was sent.
    fn remove(&mut self, index: usize) {
        self.sent.remove(index);
        self.parts.shift(index);
        if let Some(open) = self.open.as_mut().filter(|open| open.index > index) {
            open.index -= 1;
        }
    }

    /// A piece of reasoning: before the text that it leads to.
    pub(super) fn thought(&mut self, text: &str, number: i64, out: &mut Vec<Event>) {
        if let Some(open) = self.open.take() {
            out.push(Event::TextMessageEnd { message_id: open.id });
        }
        let id = self.id(number);
        self.reasoning.piece((&id, text), self.author.as_deref(), out);
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
        self.remove(index);
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

    /// Begins a text; returns its index.
    fn start(&mut self, number: i64, role: Role, message: Part, out: &mut Vec<Event>) -> usize {
        let (id, index) = (self.id(number), self.sent.len());
        // Tools report through call results, not text messages.
        let role = if role == Role::Tool { Role::Assistant.as_str() } else { role.as_str() };
        self.parts.push(index, message);
        self.push(json!({"id": id, "role": role, "content": ""}));
        self.open = Some(Open { id: id.clone(), index });
        let subagent_run_id = self.author.clone();
        out.push(Event::TextMessageStart { message_id: id, role, subagent_run_id });
        index
    }

    fn append(&mut self, index: usize, text: &str, out: &mut Vec<Event>) {
        let Some(sent) = self.sent.get_mut(index) else { return };
        let id = sent["id"].as_str().unwrap_or_default().to_owned();
        if let Some(Value::String(content)) = sent.get_mut("content") {
            content.push_str(text);
        }
        let mut rest = text;
        while !rest.is_empty() {
            let (delta, after) = rest.split_at(rest.floor_char_boundary(DELTA_BYTES_MAX));
            out.push(Event::TextMessageContent { message_id: id.clone(), delta: delta.to_owned() });
            rest = after;
        }
    }

    fn send(&mut self, number: i64, message: &Message, text: &str, out: &mut Vec<Event>) {
        self.close(out);
        let index = self.start(number, message.role, Part::default(), out);
        self.parts.forget(index);
        self.append(index, text, out);
        self.close(out);
    }

    /// Sends the part of a message that deltas did not contain.
    fn add(
        &mut self,
        number: i64,
        message: &Message,
        (parts, rest): (&[usize], &str),
        out: &mut Vec<Event>,
    ) {
        let open = self.open.as_ref().map(|open| open.index);
        match open.filter(|index| parts.contains(index)) {
            Some(index) => {
                self.append(index, rest, out);
                self.close(out);
            }
            None if rest.is_empty() => {}
            None => self.send(number, message, rest, out),
        }
    }

    /// Replaces the last part by the text and removes the others.
    fn replace(&mut self, mut parts: Vec<usize>, text: &str) {
        let last = parts.pop();
        if let Some(message) = last.and_then(|index| self.sent.get_mut(index)) {
            message["content"] = text.into();
        }
        let removed = parts.into_iter().chain(last.filter(|_| text.is_empty()));
        removed.collect::<Vec<_>>().into_iter().rev().for_each(|index| self.remove(index));
    }

    /// Reasoning of a complete message, as far as it was not sent in pieces.
    fn thoughts(&mut self, message: &Message, number: i64, out: &mut Vec<Event>) {
        let segments = message.segments.as_deref().unwrap_or_default().iter().enumerate();
        for (index, segment) in segments.filter(|(_, segment)| segment["type"] == "reasoning") {
            let Some(text) = segment["text"].as_str().filter(|text| !text.is_empty()) else {
                continue;
            };
            let id = format!("{}.{index}", self.id(number));
            self.reasoning.whole((&id, text), self.author.as_deref(), out);
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
