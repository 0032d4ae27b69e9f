//! Items of the transcript as exchanges: an event, and all that the agent did about it.
//!
//! Invariant: any provider takes the messages. A call stands in one message with those of its round, each is
//! followed by its one result, and nothing stands in between. What belongs to no event that is here is left
//! out. A run that was told about its rounds is given back exactly as its model saw it. What a run left without
//! an answer is closed, so that no later answer takes it for a question.

use crate::{commands, tools};
use greenroom_sdk::protocol::MessageContent;
use greenroom_sdk::{
    ModelMessage, ModelToolCall, Object, Role, TranscriptItem, TranscriptRole, Value,
};
use std::collections::{HashMap, HashSet};

/// Stands where a run has ended without an answer.
const UNANSWERED: &str = "(This was not answered.)";

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Exchange {
    /// The number of its event in the conversation.
    pub(crate) first_seq: i64,
    pub(crate) messages: Vec<ModelMessage>,
}

/// An item that speaks to the agent, not one of its own.
pub(super) fn is_said_to_agent(item: &TranscriptItem) -> bool {
    matches!(item.role, TranscriptRole::User | TranscriptRole::Event)
}

/// Oldest first. `event` makes the message of an item that speaks to the agent.
pub(super) fn exchanges(
    items: Vec<TranscriptItem>,
    event: &dyn Fn(&TranscriptItem) -> ModelMessage,
) -> Vec<Exchange> {
    let mut drafts: Vec<(i64, Vec<TranscriptItem>)> = Vec::new();
    let mut by_run: HashMap<String, usize> = HashMap::new();
    for item in items {
        let known = item.run_id.as_ref().map(|run| by_run.get(run).copied());
        match known {
            // Runs of one conversation may go on side by side, and messages may join a run.
            Some(Some(at)) => drafts[at].1.push(item),
            _ if is_said_to_agent(&item) => {
                by_run.extend(item.run_id.clone().map(|run| (run, drafts.len())));
                drafts.push((item.seq, vec![item]));
            }
            // Of no run at all: somebody wrote it into the conversation.
            None => drafts.last_mut().into_iter().for_each(|(_, had)| had.push(item.clone())),
            // Its event is not here.
            Some(None) => {}
        }
    }
    drafts.retain(|(_, items)| !items.iter().any(commands::is_aside));
    // In the order of their making: pages put what joined a run behind calls that the run made later.
    drafts.iter_mut().for_each(|(_, items)| items.sort_by_key(|item| item.seq));
    let mut used = HashSet::new();
    let exchange = |(first_seq, items): (i64, Vec<TranscriptItem>)| {
        let mut messages = Rebuilt::new(&items).messages(event, &mut used);
        // What no run was started for was said to others.
        let had_run = items.first().is_some_and(|item| item.run_id.is_some());
        if had_run && messages.last().is_some_and(|last| last.role != Role::Assistant) {
            messages.push(ModelMessage::text(Role::Assistant, UNANSWERED));
        }
        Exchange { first_seq, messages }
    };
    drafts.into_iter().map(exchange).collect()
}

/// One run's items on their way back to messages.
struct Rebuilt<'i> {
    items: &'i [TranscriptItem],
    /// The calls of each turn, as far as the run has told; none: the turn answered, and others followed.
    rounds: Vec<Vec<String>>,
    /// The place of each call's round, and its item.
    round_of: HashMap<String, usize>,
    item_of: HashMap<&'i str, &'i TranscriptItem>,
    /// Arguments of calls that the host did not carry out, as far as the run has told.
    arguments: Object,
    /// The events that joined the run, and behind how many turns they were told, as far as the run has told.
    steered: Object,
}

impl<'i> Rebuilt<'i> {
    fn new(items: &'i [TranscriptItem]) -> Self {
        let told = |key: &str| {
            let answers = items.iter().rev().filter(|item| item.role == TranscriptRole::Assistant);
            answers.into_iter().find_map(|item| item.metadata.get(key)).cloned()
        };
        let object = |key: &str| told(key).and_then(|value| value.as_object().cloned());
        let rounds = told("rounds").and_then(|rounds| serde_json::from_value(rounds).ok());
        let rounds: Vec<Vec<String>> = rounds.unwrap_or_default();
        let mut round_of = HashMap::new();
        for (place, round) in rounds.iter().enumerate() {
            for id in round {
                round_of.entry(id.clone()).or_insert(place);
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
        }
    }

    fn messages(
        &self,
        event: &dyn Fn(&TranscriptItem) -> ModelMessage,
        used: &mut HashSet<String>,
    ) -> Vec<ModelMessage> {
        let mut messages = Vec::new();
        let mut done: HashSet<&str> = HashSet::new();
        let mut turns_done = 0;
        // What was said directly before calls stands in one message with them.
        let mut said: Option<ModelMessage> = None;
        // Messages that joined the run while a round was under way.
        let mut waiting: Vec<(u64, ModelMessage)> = Vec::new();
        for item in self.items {
            match item.role {
                TranscriptRole::User | TranscriptRole::Event => {
                    let behind =
                        item.event_id.as_ref().and_then(|id| self.steered.get(id)?.as_u64());
                    match behind.filter(|behind| *behind > turns_done) {
                        Some(behind) => waiting.push((behind, event(item))),
                        None => {
                            messages.extend(said.take());
                            messages.push(event(item));
                        }
                    }
                }
                TranscriptRole::Assistant => {
                    messages.extend(said.take());
                    said = answer(item);
                    if self.rounds.get(turns_done as usize).is_some_and(Vec::is_empty) {
                        messages.extend(said.take());
                        turns_done += 1;
                        messages.extend(due(&mut waiting, turns_done));
                    }
                }
                // Its round stands already.
                TranscriptRole::Tool if done.contains(call_id(item)) => {}
                TranscriptRole::Tool => {
                    let round = self.round(item);
                    let fresh = round.into_iter().filter(|item| done.insert(call_id(item)));
                    let fresh: Vec<&TranscriptItem> = fresh.collect();
                    if !fresh.is_empty() {
                        messages.extend(self.called(&fresh, said.take(), used));
                        turns_done += 1;
                        messages.extend(due(&mut waiting, turns_done));
                    }
                }
                TranscriptRole::System => {}
            }
        }
        messages.extend(waiting.into_iter().map(|(_, message)| message));
        messages.extend(said);
        messages
    }

    /// The items of the calls that stood in one answer with that of `item`, in their order there.
    fn round(&self, item: &'i TranscriptItem) -> Vec<&'i TranscriptItem> {
        let id = call_id(item);
        if id.is_empty() || tool_name(item).is_empty() {
            return Vec::new();
        }
        let Some(place) = self.round_of.get(id) else { return vec![item] };
        let round = self.rounds[*place].iter();
        round.filter_map(|id| self.item_of.get(id.as_str()).copied()).collect()
    }

    /// The calls in one message, then their results.
    fn called(
        &self,
        items: &[&TranscriptItem],
        said: Option<ModelMessage>,
        used: &mut HashSet<String>,
    ) -> Vec<ModelMessage> {
        let (mut calls, mut results) = (Vec::new(), Vec::new());
        for item in items {
            let id = distinct(call_id(item), used);
            let name = tool_name(item);
            let text = item.content.as_ref().or(item.text.as_ref()).cloned().unwrap_or_default();
            results.push(tools::result(&id, name, text));
            calls.push(ModelToolCall {
                args: self.args(item),
                id,
                name: name.to_owned(),
                args_text: None,
                args_error: None,
            });
        }
        let said = said.unwrap_or_else(|| ModelMessage {
            content: None,
            ..ModelMessage::text(Role::Assistant, "")
        });
        let asked = ModelMessage { tool_calls: calls, ..said };
        std::iter::once(asked).chain(results).collect()
    }

    fn args(&self, item: &TranscriptItem) -> Value {
        let output = item.metadata.get("tool_agent_output");
        let kept = output.and_then(|output| output.get("tool_call_args"));
        let args = kept.or_else(|| self.arguments.get(call_id(item)));
        args.filter(|args| args.is_object()).cloned().unwrap_or_else(|| Object::new().into())
    }
}

/// The messages that were told behind so many turns.
fn due(
    waiting: &mut Vec<(u64, ModelMessage)>,
    turns_done: u64,
) -> impl Iterator<Item = ModelMessage> {
    waiting.extract_if(.., move |(behind, _)| *behind <= turns_done).map(|(_, message)| message)
}

/// What the agent said. Calls among the segments are left out: those that have a result are items.
fn answer(item: &TranscriptItem) -> Option<ModelMessage> {
    let text = item.text.clone().unwrap_or_default();
    let kind = |segment: &Object| segment.get("type").and_then(Value::as_str).map(str::to_owned);
    let objects = item.segments.iter().filter_map(Value::as_object).cloned();
    let segments: Vec<Object> =
        objects.filter(|one| kind(one).is_some_and(|kind| kind != "tool_call")).collect();
    // Segments are of use where they hold the text as well; else they are pictures beside it.
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

fn call_id(item: &TranscriptItem) -> &str {
    item.metadata.get("tool_call_id").and_then(Value::as_str).unwrap_or_default()
}

fn tool_name(item: &TranscriptItem) -> &str {
    item.metadata.get("tool_name").and_then(Value::as_str).unwrap_or_default()
}

/// Some providers refuse a conversation in which two calls have one id.
fn distinct(id: &str, used: &mut HashSet<String>) -> String {
    let mut made = id.to_owned();
    let mut count = 1;
    while !used.insert(made.clone()) {
        count += 1;
        made = format!("{id}-{count}");
    }
    made
}

#[cfg(test)]
mod tests;
