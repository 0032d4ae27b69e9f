//! Texts that no `message.completed` covers yet, by the message that they are of.
//!
//! Invariant: pure, and by the host's own rule: a delta without an id continues the message of the delta before it, the
//! first id that follows such deltas is theirs, and a complete message stands for the text of its id, else for that
//! without an id. Text of two sub-agents is never one message.

#[derive(Debug, Default)]
pub(super) struct Parts(Vec<(usize, Part)>);

/// The message that a text is of.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Part {
    /// The runner's id.
    message_id: Option<String>,
    /// The sub-agent.
    author: Option<String>,
}

impl Parts {
    /// The message of a delta.
    pub(super) fn message(&mut self, id: Option<String>, author: Option<String>) -> Part {
        let recent = self.0.last().map(|(_, part)| part.clone());
        match (id, recent) {
            (None, Some(recent)) if recent.author == author => recent,
            (Some(id), Some(recent)) if recent.message_id.is_none() && recent.author == author => {
                let named = Part { message_id: Some(id), author };
                let late = self.0.iter_mut().rev().take_while(|(_, part)| *part == recent);
                late.for_each(|(_, part)| *part = named.clone());
                named
            }
            (Some(id), _) => {
                let known = self.0.iter().find(|(_, part)| part.message_id.as_ref() == Some(&id));
                let author = known.map_or(author, |(_, part)| part.author.clone());
                Part { message_id: Some(id), author }
            }
            (None, _) => Part { message_id: None, author },
        }
    }

    pub(super) fn push(&mut self, index: usize, part: Part) {
        self.0.push((index, part));
    }

    pub(super) fn is_of(&self, index: usize, message: &Part) -> bool {
        self.0.iter().any(|(at, part)| *at == index && part == message)
    }

    /// Takes out the texts that a complete message stands for; returns their indexes, in order.
    pub(super) fn complete(&mut self, id: Option<&str>, author: Option<&str>) -> Vec<usize> {
        let has =
            |id: Option<&str>| self.0.iter().any(|(_, part)| part.message_id.as_deref() == id);
        let id = match id {
            Some(_) if has(id) => id,
            Some(_) => None,
            None if has(None) => None,
            None => self.0.last().and_then(|(_, part)| part.message_id.as_deref()),
        };
        let id = id.map(str::to_owned);
        let is_of = |part: &Part| {
            part.message_id == id
                && (id.is_some() || author.is_none() || part.author.as_deref() == author)
        };
        self.take(is_of)
    }

    /// Takes out the texts of a message.
    pub(super) fn remove(&mut self, message: &Part) -> Vec<usize> {
        self.take(|part| part == message)
    }

    /// Takes out one text.
    pub(super) fn forget(&mut self, index: usize) {
        self.0.retain(|(at, _)| *at != index);
    }

    /// The message at this index was removed.
    pub(super) fn shift(&mut self, index: usize) {
        self.forget(index);
        self.0.iter_mut().filter(|(at, _)| *at > index).for_each(|(at, _)| *at -= 1);
    }

    fn take(&mut self, is_of: impl Fn(&Part) -> bool) -> Vec<usize> {
        self.0.extract_if(.., |(_, part)| is_of(part)).map(|(index, _)| index).collect()
    }
}
