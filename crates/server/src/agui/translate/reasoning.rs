//! Reasoning: in pieces as it comes, or with the complete message.
//!
//! Invariant: at most one is open, and nothing is sent twice: clients keep reasoning through a snapshot, so what an
//! earlier stream of the run brought is left out.

use crate::agui::event::Event;
use serde_json::Value;
use std::collections::HashMap;

#[derive(Debug)]
pub(super) struct Reasoning {
    /// What the client has of this run, by the id of the message.
    known: HashMap<String, String>,
    open: Option<Open>,
    /// All pieces since the last complete message.
    streamed: String,
}

#[derive(Debug)]
struct Open {
    id: String,
    /// The sub-agent that it is of.
    author: Option<String>,
    /// What the client has and was not repeated so far.
    rest: String,
    is_started: bool,
}

impl Reasoning {
    /// `own`: the client's messages of this run.
    pub(super) fn new(own: &[Value]) -> Self {
        let thoughts = own.iter().filter(|message| message["role"] == "reasoning");
        let known = thoughts.filter_map(|message| {
            let text = message["content"].as_str().unwrap_or_default().to_owned();
            Some((message["id"].as_str()?.to_owned(), text))
        });
        Self { known: known.collect(), open: None, streamed: String::new() }
    }

    /// A piece; `id` is that of the message if it is the first one.
    pub(super) fn piece(
        &mut self,
        (id, text): (&str, &str),
        author: Option<&str>,
        out: &mut Vec<Event>,
    ) {
        self.streamed.push_str(text);
        if self.open.as_ref().is_some_and(|open| open.author.as_deref() != author) {
            self.close(out);
        }
        let known = &mut self.known;
        let open = self.open.get_or_insert_with(|| Open {
            id: id.to_owned(),
            author: author.map(str::to_owned),
            rest: known.remove(id).unwrap_or_default(),
            is_started: false,
        });
        // Both begin with the same text, unless the client's is something else.
        let shared = open.rest.bytes().zip(text.bytes()).take_while(|(one, other)| one == other);
        let shared = text.floor_char_boundary(open.rest.floor_char_boundary(shared.count()));
        open.rest.drain(..shared);
        let new = &text[shared..];
        if new.is_empty() {
            return;
        }
        if !std::mem::replace(&mut open.is_started, true) {
            start(&open.id, author, out);
        }
        let (message_id, delta) = (open.id.clone(), new.to_owned());
        out.push(Event::ReasoningMessageContent { message_id, delta });
    }

    pub(super) fn close(&mut self, out: &mut Vec<Event>) {
        if let Some(open) = self.open.take().filter(|open| open.is_started) {
            end(open.id, out);
        }
    }

    /// The reasoning of a complete message, unless it came in pieces.
    pub(super) fn whole(
        &mut self,
        (id, text): (&str, &str),
        author: Option<&str>,
        out: &mut Vec<Event>,
    ) {
        let is_known = self.known.contains_key(id) || self.streamed.contains(text.trim());
        if is_known {
            return;
        }
        start(id, author, out);
        let delta = text.to_owned();
        out.push(Event::ReasoningMessageContent { message_id: id.to_owned(), delta });
        end(id.to_owned(), out);
    }

    /// A complete message was sent, or everything was taken back.
    pub(super) fn forget(&mut self) {
        self.streamed.clear();
    }
}

fn start(id: &str, author: Option<&str>, out: &mut Vec<Event>) {
    let (message_id, subagent_run_id) = (id.to_owned(), author.map(str::to_owned));
    out.push(Event::ReasoningStart {
        message_id: message_id.clone(),
        subagent_run_id: subagent_run_id.clone(),
    });
    out.push(Event::ReasoningMessageStart { message_id, role: "reasoning", subagent_run_id });
}

fn end(id: String, out: &mut Vec<Event>) {
    out.push(Event::ReasoningMessageEnd { message_id: id.clone() });
    out.push(Event::ReasoningEnd { message_id: id });
}
