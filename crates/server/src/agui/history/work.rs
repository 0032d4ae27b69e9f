//! What a stored run showed of its work: reasoning and activities as messages, steps and sub-agents as events.
//!
//! Invariant: it is what the stream of the run had, under the same ids; a message comes where it came in the stream.

use crate::agui::card;
use crate::agui::event::Event;
use crate::agui::translate::{Stream, Translator, applied};
use greenroom_protocol::result::kind;
use greenroom_store::types::ResultRecord;
use serde_json::{Value, json};
use std::collections::HashMap;

#[derive(Debug, Default)]
pub(crate) struct Work {
    /// Messages, each with the number of results with an item before it.
    shown: Vec<(usize, Value)>,
    /// The results that have an item in the transcript.
    told: Vec<Told>,
    /// Steps and sub-agents, for the newest run of a thread.
    pub(crate) progress: Vec<Event>,
    /// The sub-agents of calls, by the client's id.
    callers: HashMap<String, String>,
}

#[derive(Debug)]
struct Told {
    /// The runner's id of the call; none for messages and files.
    call: Option<String>,
    /// The sub-agent that it is of.
    author: Option<String>,
}

/// How far the messages of a run are.
#[derive(Debug, Default)]
pub(super) struct Position {
    shown: usize,
    told: usize,
}

impl Work {
    pub(crate) fn of_run(stream: Stream, records: &[ResultRecord]) -> Self {
        let mut translator = Translator::new(stream, Vec::new(), Value::Null);
        let mut work = Self::default();
        for record in records {
            if record.kind == kind::RUN_RESTARTED {
                work = Self::default();
            }
            let events = translator.take(record, None);
            work.take(events);
            work.tell(record, &translator);
        }
        work.take(translator.close());
        work
    }

    /// Adds what came before an item; returns the sub-agent that the item is of.
    pub(super) fn before(
        &self,
        item: &Value,
        position: &mut Position,
        messages: &mut Vec<Value>,
    ) -> Option<String> {
        let call = match item["role"] == "tool" {
            true => Some(item["metadata"]["tool_agent_output"]["tool_call_id"].as_str()?),
            false => None,
        };
        let rest = self.told.get(position.told..)?;
        let index = rest.iter().position(|told| told.call.as_deref() == call)? + position.told;
        self.add(|place| place <= index, position, messages);
        position.told = index + 1;
        self.told[index].author.clone()
    }

    /// Adds what came after the last item.
    pub(super) fn rest(&self, position: &mut Position, messages: &mut Vec<Value>) {
        self.add(|_| true, position, messages);
    }

    fn add(&self, is_due: impl Fn(usize) -> bool, position: &mut Position, to: &mut Vec<Value>) {
        let rest = self.shown.get(position.shown..).unwrap_or_default();
        let due = rest.iter().take_while(|(place, _)| is_due(*place));
        to.extend(due.map(|(_, message)| message.clone()));
        position.shown += rest.iter().take_while(|(place, _)| is_due(*place)).count();
    }

    fn take(&mut self, events: Vec<Event>) {
        for event in events {
            match event {
                Event::ReasoningMessageStart { message_id, subagent_run_id, .. } => {
                    let message = json!({"id": message_id, "role": "reasoning", "content": ""});
                    self.show(message, subagent_run_id);
                }
                Event::ReasoningMessageContent { message_id, delta } => {
                    if let Some(message) = self.message(&message_id) {
                        let text = message["content"].as_str().unwrap_or_default();
                        message["content"] = format!("{text}{delta}").into();
                    }
                }
                Event::ActivitySnapshot {
                    message_id,
                    activity_type,
                    content,
                    replace,
                    subagent_run_id,
                } if !card::is_card(&message_id) => {
                    // Cards come with the items of their calls.
                    let message = json!({"id": message_id, "role": "activity",
                        "activityType": activity_type, "content": content});
                    self.activity(message, replace, subagent_run_id);
                }
                Event::ActivityDelta { message_id, activity_type, patch } => {
                    if let Some(message) = self.message(&message_id)
                        && let Some(content) = applied(&message["content"], &patch)
                    {
                        message["content"] = content;
                        message["activityType"] = activity_type.into();
                    }
                }
                Event::ToolCallStart { tool_call_id, subagent_run_id: Some(author), .. } => {
                    self.callers.insert(tool_call_id, author);
                }
                Event::StepStarted { .. }
                | Event::StepFinished { .. }
                | Event::SubagentStarted { .. }
                | Event::SubagentFinished { .. }
                | Event::SubagentError { .. } => self.progress.push(event),
                _ => {}
            }
        }
    }

    /// Counts a result that has an item in the transcript.
    fn tell(&mut self, record: &ResultRecord, translator: &Translator) {
        let told = match record.kind.as_ref() {
            kind::MESSAGE_COMPLETED => {
                Told { call: None, author: translator.completed_by().map(str::to_owned) }
            }
            kind::ARTIFACT_CREATED => Told { call: None, author: None },
            kind::TOOL_CALL_COMPLETED => {
                let data: Value = serde_json::from_str(record.data.get()).unwrap_or_default();
                let Some(call) = data["tool_call_id"].as_str() else { return };
                let id = translator.call_id(call);
                let author = id.and_then(|id| self.callers.get(&id).cloned());
                Told { call: Some(call.to_owned()), author }
            }
            _ => return,
        };
        self.told.push(told);
    }

    fn activity(&mut self, message: Value, replace: bool, author: Option<String>) {
        let id = message["id"].as_str().unwrap_or_default().to_owned();
        match self.message(&id) {
            Some(known) if replace => {
                *known = message;
                attribute(known, author);
            }
            Some(_) => {}
            None => self.show(message, author),
        }
    }

    fn show(&mut self, mut message: Value, author: Option<String>) {
        attribute(&mut message, author);
        self.shown.push((self.told.len(), message));
    }

    fn message(&mut self, id: &str) -> Option<&mut Value> {
        let mut newest = self.shown.iter_mut().rev();
        newest.find_map(|(_, message)| (message["id"] == id).then_some(message))
    }
}

/// Names the sub-agent of a message.
pub(super) fn attribute(message: &mut Value, author: Option<String>) {
    if let Some(author) = author {
        message["subagentRunId"] = author.into();
    }
}
