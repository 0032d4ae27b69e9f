//! Groups transcript items to exchanges: an event, and everything that the agent did about it.
//!
//! Invariant: every provider accepts the messages. Calls of a round are in one message, each is followed by its one
//! result, and nothing is in between. Items without their event are omitted. A run that recorded its rounds is restored
//! exactly as its model saw it. A run without an answer is closed with a note, so that no later answer refers to it.

use crate::client::{self, PendingCall};
use crate::results::Cut;
use crate::{commands, tools};
use greenroom_sdk::protocol::MessageContent;
use greenroom_sdk::{
    ModelMessage, ModelToolCall, Object, Role, TranscriptItem, TranscriptRole, Value,
};
use std::collections::{HashMap, HashSet};

/// The note for a run that ended without an answer.
const UNANSWERED: &str = "(This was not answered.)";

#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Exchange {
    /// The sequence number of its event.
    pub(crate) first_seq: i64,
    pub(crate) messages: Vec<ModelMessage>,
    /// The tools that its run offered, if they were a choice.
    pub(crate) tools: Vec<String>,
    /// Calls of the client's tools that its last message waits for.
    pub(crate) pending: Vec<PendingCall>,
    /// The results that its event brought.
    pub(crate) results: Vec<Value>,
}

impl Exchange {
    /// Whether these are results of its pending calls.
    pub(super) fn is_answered_by(&self, results: &[Value]) -> bool {
        self.pending.iter().any(|call| client::result_of(call, results).is_some())
    }

    /// Adds the results of the pending calls.
    pub(super) fn answer(&mut self, results: &[Value]) {
        for call in std::mem::take(&mut self.pending) {
            let content = client::result_of(&call, results).unwrap_or_else(client::no_result);
            self.messages.push(tools::result(&call.id, &call.name, content));
        }
    }

    /// The client went on without the results.
    pub(super) fn give_up(&mut self) {
        if !self.pending.is_empty() {
            self.answer(&[]);
            self.messages.push(ModelMessage::text(Role::Assistant, UNANSWERED));
        }
    }

    /// Adds the exchange that brought the results of its pending calls.
    fn join(&mut self, mut next: Exchange) {
        self.answer(&next.results);
        self.messages.extend(next.messages.drain(1..));
        self.pending = next.pending;
        if !next.tools.is_empty() {
            self.tools = next.tools;
        }
    }
}

/// An item addressed to the agent.
pub(super) fn is_input(item: &TranscriptItem) -> bool {
    matches!(item.role, TranscriptRole::User | TranscriptRole::Event)
}

/// Oldest first. `event` creates the message of an input item.
pub(super) fn exchanges(
    items: Vec<TranscriptItem>,
    event: &dyn Fn(&TranscriptItem) -> ModelMessage,
    results: &dyn Fn(&TranscriptItem) -> Vec<Value>,
) -> Vec<Exchange> {
    let mut drafts: Vec<(i64, Vec<TranscriptItem>)> = Vec::new();
    let mut by_run: HashMap<String, usize> = HashMap::new();
    for item in items {
        let known = item.run_id.as_ref().map(|run| by_run.get(run).copied());
        match known {
            // Runs of one conversation may be concurrent, and messages may join a run.
            Some(Some(at)) => drafts[at].1.push(item),
            _ if is_input(&item) => {
                by_run.extend(item.run_id.clone().map(|run| (run, drafts.len())));
                drafts.push((item.seq, vec![item]));
            }
            // Without a run: written into the conversation from outside.
            None => drafts.last_mut().into_iter().for_each(|(_, items)| items.push(item.clone())),
            // Its event was not read.
            Some(None) => {}
        }
    }
    drafts.retain(|(_, items)| !items.iter().any(commands::is_aside));
    // By sequence: pages list messages that joined a run after later calls of the run.
    drafts.iter_mut().for_each(|(_, items)| items.sort_by_key(|item| item.seq));
    let mut used = HashSet::new();
    let exchange = |(first_seq, items): (i64, Vec<TranscriptItem>)| {
        let rebuilt = Rebuilt::new(&items);
        let mut pending = Vec::new();
        let mut messages = rebuilt.messages(event, &mut used, &mut pending);
        // Messages without a run were for others.
        let had_run = items.first().is_some_and(|item| item.run_id.is_some());
        let is_open = had_run && pending.is_empty();
        if is_open && messages.last().is_some_and(|last| last.role != Role::Assistant) {
            messages.push(ModelMessage::text(Role::Assistant, UNANSWERED));
        }
        let tools = rebuilt.recorded("tools").and_then(|tools| serde_json::from_value(tools).ok());
        let results = items.first().map(results).unwrap_or_default();
        Exchange { first_seq, messages, tools: tools.unwrap_or_default(), pending, results }
    };
    let mut exchanges: Vec<Exchange> = Vec::new();
    for next in drafts.into_iter().map(exchange) {
        match exchanges.last_mut() {
            Some(last) if last.is_answered_by(&next.results) => last.join(next),
            last => {
                last.into_iter().for_each(Exchange::give_up);
                exchanges.push(next);
            }
        }
    }
    exchanges
}

/// Rebuilds the messages of one run.
struct Rebuilt<'i> {
    items: &'i [TranscriptItem],
    /// Call ids of each turn, as recorded by the run; empty for an answer that others followed.
    rounds: Vec<Vec<String>>,
    /// Index of each call's round, and its item.
    round_of: HashMap<String, usize>,
    item_of: HashMap<&'i str, &'i TranscriptItem>,
    /// Arguments of calls that the host did not execute, as recorded by the run.
    arguments: Object,
    /// Events that joined the run, and after how many turns, as recorded by the run.
    steered: Object,
    /// How results were cut, the warnings in them, malformed calls and the segments of rounds, as recorded by the run.
    cuts: Object,
    warnings: Object,
    malformed: Object,
    segments: Object,
}

impl<'i> Rebuilt<'i> {
    fn new(items: &'i [TranscriptItem]) -> Self {
        let object = |key: &str| recorded(items, key).and_then(|value| value.as_object().cloned());
        let rounds =
            recorded(items, "rounds").and_then(|rounds| serde_json::from_value(rounds).ok());
        let rounds: Vec<Vec<String>> = rounds.unwrap_or_default();
        let mut round_of = HashMap::new();
        for (index, round) in rounds.iter().enumerate() {
            for id in round {
                round_of.entry(id.clone()).or_insert(index);
            }
        }
        let mut item_of = HashMap::new();
        for item in items.iter().filter(|item| item.role == TranscriptRole::Tool) {
            item_of.entry(call_id(item)).or_insert(item);
        }
        Self {
            items,
            rounds,
            round_of,
            item_of,
            arguments: object("arguments").unwrap_or_default(),
            steered: object("steered").unwrap_or_default(),
            cuts: object("cut").unwrap_or_default(),
            warnings: object("warnings").unwrap_or_default(),
            malformed: object("malformed").unwrap_or_default(),
            segments: object("segments").unwrap_or_default(),
        }
    }

    fn recorded(&self, key: &str) -> Option<Value> {
        recorded(self.items, key)
    }

    fn messages(
        &self,
        event: &dyn Fn(&TranscriptItem) -> ModelMessage,
        used: &mut HashSet<String>,
        pending: &mut Vec<PendingCall>,
    ) -> Vec<ModelMessage> {
        let mut messages = Vec::new();
        let mut done: HashSet<&str> = HashSet::new();
        let mut turns_done = 0;
        // Text directly before calls is in one message with them.
        let mut text_before: Option<ModelMessage> = None;
        // Messages that joined the run during a round.
        let mut waiting: Vec<(u64, ModelMessage)> = Vec::new();
        for item in self.items {
            match item.role {
                TranscriptRole::User | TranscriptRole::Event => {
                    let after =
                        item.event_id.as_ref().and_then(|id| self.steered.get(id)?.as_u64());
                    match after.filter(|after| *after > turns_done) {
                        Some(after) => waiting.push((after, event(item))),
                        None => {
                            messages.extend(text_before.take());
                            messages.push(event(item));
                        }
                    }
                }
                TranscriptRole::Assistant => {
                    messages.extend(text_before.take());
                    text_before = answer(item);
                    if self.rounds.get(turns_done as usize).is_some_and(Vec::is_empty) {
                        messages.extend(text_before.take());
                        turns_done += 1;
                        messages.extend(due(&mut waiting, turns_done));
                    }
                }
                // Its round was already added.
                TranscriptRole::Tool if done.contains(call_id(item)) => {}
                TranscriptRole::Tool => {
                    let round = self.round(item);
                    let fresh = round.into_iter().filter(|item| done.insert(call_id(item)));
                    let fresh: Vec<&TranscriptItem> = fresh.collect();
                    if !fresh.is_empty() {
                        let said = text_before.take();
                        messages.extend(self.call_messages(&fresh, said, (used, pending)));
                        turns_done += 1;
                        messages.extend(due(&mut waiting, turns_done));
                    }
                }
                TranscriptRole::System => {}
            }
        }
        messages.extend(waiting.into_iter().map(|(_, message)| message));
        messages.extend(text_before);
        messages
    }

    /// The items of the calls of the same round as `item`, in order.
    fn round(&self, item: &'i TranscriptItem) -> Vec<&'i TranscriptItem> {
        let id = call_id(item);
        if id.is_empty() || tool_name(item).is_empty() {
            return Vec::new();
        }
        let Some(index) = self.round_of.get(id) else { return vec![item] };
        let round = self.rounds[*index].iter();
        round.filter_map(|id| self.item_of.get(id.as_str()).copied()).collect()
    }

    /// The calls in one message, then their results.
    fn call_messages(
        &self,
        items: &[&TranscriptItem],
        text_before: Option<ModelMessage>,
        (used, pending): (&mut HashSet<String>, &mut Vec<PendingCall>),
    ) -> Vec<ModelMessage> {
        let (mut calls, mut results) = (Vec::new(), Vec::new());
        for item in items {
            let id = distinct(call_id(item), used);
            let name = tool_name(item);
            calls.push(self.call(item, id.clone()));
            if is_pending(item) {
                let call_id = call_id(item).to_owned();
                pending.push(PendingCall { call_id, id, name: name.to_owned() });
                continue;
            }
            let text = item.content.as_ref().or(item.text.as_ref()).cloned().unwrap_or_default();
            let text = match self.warnings.get(call_id(item)).and_then(Value::as_str) {
                Some(warning) => tools::with_warning(&text, warning),
                None => text,
            };
            let mut result = tools::result(&id, name, text);
            if let Some(cut) = self.cuts.get(call_id(item)).and_then(Cut::read) {
                let whole = result.content.as_ref().map(MessageContent::text).unwrap_or_default();
                result.content = Some(MessageContent::Text(cut.apply(&whole)));
            }
            results.push(result);
        }
        let text_before = text_before.unwrap_or_else(|| ModelMessage {
            content: None,
            ..ModelMessage::text(Role::Assistant, "")
        });
        let mut calls_message = ModelMessage { tool_calls: calls, ..text_before };
        if let Some(segments) = self.segments(items, &calls_message.tool_calls) {
            calls_message.segments = Some(segments);
        }
        std::iter::once(calls_message).chain(results).collect()
    }

    fn call(&self, item: &TranscriptItem, id: String) -> ModelToolCall {
        let malformed = self.malformed.get(call_id(item)).cloned();
        let written = malformed.and_then(|call| serde_json::from_value::<ModelToolCall>(call).ok());
        match written {
            Some(written) => ModelToolCall { id, ..written },
            None => ModelToolCall {
                args: self.args(item),
                id,
                name: tool_name(item).to_owned(),
                args_text: None,
                args_error: None,
            },
        }
    }

    /// The recorded segments of a round, unless its calls have other ids now.
    fn segments(&self, items: &[&TranscriptItem], calls: &[ModelToolCall]) -> Option<Vec<Object>> {
        let first = call_id(items.first()?);
        let index = self.round_of.get(first)?;
        let is_same = self.rounds[*index].iter().eq(calls.iter().map(|call| &call.id));
        let recorded = self.segments.get(&index.to_string()).filter(|_| is_same)?;
        serde_json::from_value(recorded.clone()).ok()
    }

    fn args(&self, item: &TranscriptItem) -> Value {
        let output = item.metadata.get("tool_agent_output");
        let kept = output.and_then(|output| output.get("tool_call_args"));
        let args = kept.or_else(|| self.arguments.get(call_id(item)));
        args.filter(|args| args.is_object()).cloned().unwrap_or_else(|| Object::new().into())
    }
}

/// What a run recorded with its last answer that has it.
fn recorded(items: &[TranscriptItem], key: &str) -> Option<Value> {
    let mut answers = items.iter().rev().filter(|item| item.role == TranscriptRole::Assistant);
    answers.find_map(|item| item.metadata.get(key)).cloned()
}

/// Messages that joined after this many turns.
fn due(
    waiting: &mut Vec<(u64, ModelMessage)>,
    turns_done: u64,
) -> impl Iterator<Item = ModelMessage> {
    waiting.extract_if(.., move |(after, _)| *after <= turns_done).map(|(_, message)| message)
}

/// The agent's answer. Calls among the segments are omitted: those with a result are items.
fn answer(item: &TranscriptItem) -> Option<ModelMessage> {
    let text = item.text.clone().unwrap_or_default();
    let kind = |segment: &Object| segment.get("type").and_then(Value::as_str).map(str::to_owned);
    let objects = item.segments.iter().filter_map(Value::as_object).cloned();
    let segments: Vec<Object> =
        objects.filter(|one| kind(one).is_some_and(|kind| kind != "tool_call")).collect();
    // Segments are usable if they include the text; else they are media beside it.
    let is_whole = segments.iter().any(|one| kind(one).as_deref() == Some("text"));
    if text.is_empty() && !is_whole {
        return None;
    }
    Some(ModelMessage {
        content: Some(MessageContent::Text(text.clone())).filter(|_| !text.is_empty()),
        segments: is_whole.then_some(segments),
        ..ModelMessage::text(Role::Assistant, "")
    })
}

/// Whether it is a call of a tool of the client, without its result.
fn is_pending(item: &TranscriptItem) -> bool {
    let output = item.metadata.get("tool_agent_output");
    output.is_some_and(|output| output["status"] == "pending")
}

fn call_id(item: &TranscriptItem) -> &str {
    item.metadata.get("tool_call_id").and_then(Value::as_str).unwrap_or_default()
}

fn tool_name(item: &TranscriptItem) -> &str {
    item.metadata.get("tool_name").and_then(Value::as_str).unwrap_or_default()
}

/// Some providers reject a conversation with duplicate call ids.
fn distinct(id: &str, used: &mut HashSet<String>) -> String {
    let mut unique = id.to_owned();
    let mut count = 1;
    while !used.insert(unique.clone()) {
        count += 1;
        unique = format!("{id}-{count}");
    }
    unique
}

#[cfg(test)]
mod tests;
