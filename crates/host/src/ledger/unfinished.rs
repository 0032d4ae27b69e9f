//! Texts of deltas whose `message.completed` has not come, one per message.
//!
//! Invariant: pure. Messages keep the order in which they were first seen; completing one leaves the others. A delta
//! without an id continues the message of the delta before it, and the first id that follows such deltas is theirs:
//! some runners learn the id of a message late.

use greenroom_protocol::Role;
use greenroom_protocol::payload::{DeltaRef, Message};

#[derive(Debug, Default)]
pub(crate) struct Unfinished {
    messages: Vec<Open>,
    /// The message of the last delta; none once a message is completed.
    recent: Option<usize>,
    bytes: usize,
}

#[derive(Debug)]
struct Open {
    message_id: Option<String>,
    role: Role,
    text: String,
}

impl Unfinished {
    /// Bytes of all texts.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn push(&mut self, delta: &DeltaRef<'_>) {
        let index = self.find_or_open(delta);
        let open = &mut self.messages[index];
        if delta.replace {
            self.bytes -= open.text.len();
            open.text.clear();
        }
        self.bytes += delta.content.len();
        open.text.push_str(&delta.content);
        self.recent = Some(index);
    }

    fn find_or_open(&mut self, delta: &DeltaRef<'_>) -> usize {
        let id = delta.message_id.as_deref();
        let is_its =
            |index: &usize| id.is_none() || self.messages[*index].message_id.as_deref() == id;
        if let Some(index) = self.recent.filter(is_its).or_else(|| self.position(id)) {
            return index;
        }
        if let Some(index) = self.recent.filter(|index| self.messages[*index].message_id.is_none())
        {
            self.messages[index].message_id = id.map(str::to_owned);
            return index;
        }
        let message_id = id.map(str::to_owned);
        self.messages.push(Open { message_id, role: delta.role, text: String::new() });
        self.messages.len() - 1
    }

    fn position(&self, id: Option<&str>) -> Option<usize> {
        self.messages.iter().position(|open| open.message_id.as_deref() == id)
    }

    /// Removes the text that a complete message stands for: that of its id, else that without an id; for a message
    /// without an id, that of the last delta.
    pub(crate) fn complete(&mut self, message_id: Option<&str>) {
        if let Some(index) = self.index_of(message_id) {
            self.bytes -= self.messages.remove(index).text.len();
        }
        self.recent = None;
    }

    fn index_of(&self, message_id: Option<&str>) -> Option<usize> {
        let of_no_id = self.position(None);
        match message_id {
            Some(_) => self.position(message_id).or(of_no_id),
            None => of_no_id.or(self.recent),
        }
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// All texts as messages, in order. `last` is the message that the end of the run carries: it takes the place of
    /// the text that it stands for, or comes last.
    pub(crate) fn finish(&mut self, last: Option<Message>) -> Vec<Message> {
        let place = last.as_ref().and_then(|last| self.index_of(last.message_id.as_deref()));
        let mut last = last;
        let mut messages = Vec::with_capacity(self.messages.len() + 1);
        for (index, open) in std::mem::take(self).messages.into_iter().enumerate() {
            match last.take_if(|_| place == Some(index)) {
                Some(last) => messages.push(last),
                None if open.text.is_empty() => {}
                None => {
                    let (role, message_id) = (open.role, open.message_id);
                    messages.push(Message { role, message_id, ..Message::assistant(open.text) });
                }
            }
        }
        messages.extend(last);
        messages
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn push(open: &mut Unfinished, id: Option<&str>, text: &str) {
        open.push(&delta(id, text, false));
    }

    fn delta<'a>(id: Option<&'a str>, text: &'a str, replace: bool) -> DeltaRef<'a> {
        DeltaRef {
            role: Role::Assistant,
            content: text.into(),
            message_id: id.map(Into::into),
            replace,
            has_more: false,
        }
    }

    fn texts(open: &mut Unfinished, last: Option<Message>) -> Vec<(Option<String>, String)> {
        let messages = open.finish(last).into_iter();
        messages.map(|message| (message.message_id.clone(), message.content.text())).collect()
    }

    fn told(id: &str, text: &str) -> (Option<String>, String) {
        (Some(id.to_owned()), text.to_owned())
    }

    #[test]
    fn interleaved_messages_are_kept_apart_in_the_order_of_first_sight() {
        let mut open = Unfinished::default();
        for (id, text) in [("a", "one "), ("b", "eins "), ("a", "two"), ("b", "zwei")] {
            push(&mut open, Some(id), text);
        }
        assert_eq!(open.bytes(), 16);
        assert_eq!(texts(&mut open, None), [told("a", "one two"), told("b", "eins zwei")]);
        assert_eq!(open.bytes(), 0);
    }

    #[test]
    fn a_complete_message_leaves_the_text_of_others() {
        let mut open = Unfinished::default();
        push(&mut open, Some("a"), "lost?");
        push(&mut open, Some("b"), "half");
        open.complete(Some("b"));
        open.complete(Some("c"));
        push(&mut open, None, " no");
        assert_eq!(texts(&mut open, None), [told("a", "lost?"), (None, " no".to_owned())]);
    }

    #[test]
    fn deltas_without_an_id_are_one_message_and_take_an_id_that_comes_late() {
        let mut open = Unfinished::default();
        push(&mut open, None, "hel");
        push(&mut open, Some("m"), "lo");
        assert_eq!(texts(&mut open, None), [told("m", "hello")]);
        push(&mut open, None, "partial");
        open.complete(Some("x"));
        assert_eq!(texts(&mut open, None), []);
        push(&mut open, Some("m"), "partial");
        open.complete(None);
        assert_eq!(texts(&mut open, None), []);
    }

    #[test]
    fn the_message_of_the_end_takes_the_place_of_its_text_or_comes_last() {
        let last =
            |id: &str| Message { message_id: Some(id.to_owned()), ..Message::assistant("whole") };
        let mut open = Unfinished::default();
        push(&mut open, Some("a"), "pa");
        push(&mut open, Some("b"), "other");
        assert_eq!(texts(&mut open, Some(last("a"))), [told("a", "whole"), told("b", "other")]);
        push(&mut open, Some("a"), "pa");
        assert_eq!(texts(&mut open, Some(last("c"))), [told("a", "pa"), told("c", "whole")]);
    }

    #[test]
    fn a_replacing_delta_replaces_its_own_message() {
        let mut open = Unfinished::default();
        push(&mut open, Some("a"), "first");
        push(&mut open, Some("b"), "second");
        open.push(&delta(Some("a"), "again", true));
        assert_eq!(texts(&mut open, None), [told("a", "again"), told("b", "second")]);
    }
}
