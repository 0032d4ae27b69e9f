//! What a runner shows of its work: steps, activities, sub-agents.
//!
//! Invariant: what is finished was started, what is started is finished before the end of the stream, and the id of a
//! sub-agent is used once. A sub-agent's steps are finished before it is. A result that does not fit is dropped.

use crate::agui::event::Event;
use greenroom_protocol::result::kind;
use serde_json::{Value, json};
use std::collections::HashSet;

/// Steps, and sub-agents, that are open at the same time.
const OPEN_MAX: usize = 256;
/// The type of the activity with a plan.
const PLAN: &str = "PLAN";

#[derive(Debug, Default)]
pub(super) struct Progress {
    prefix: String,
    /// With the sub-agents that they are of.
    steps: Vec<(String, Option<String>)>,
    subagents: Vec<String>,
    subagents_seen: HashSet<String>,
    activities: HashSet<String>,
}

impl Progress {
    pub(super) fn new(run_id: &str) -> Self {
        Self { prefix: format!("{run_id}.activity."), ..Self::default() }
    }

    /// Whether the sub-agent was started and is not finished.
    pub(super) fn has_open(&self, subagent: &str) -> bool {
        self.subagents.iter().any(|open| open == subagent)
    }

    /// The events of a result; `None` if it is of another type.
    pub(super) fn take(
        &mut self,
        result_kind: &str,
        (data, author): (&Value, Option<String>),
        calls: impl Fn(&str) -> Option<String>,
    ) -> Option<Vec<Event>> {
        let mut events = Vec::new();
        if matches!(result_kind, kind::SUBAGENT_FINISHED | kind::SUBAGENT_FAILED) {
            self.finish_steps_of(text(data, "subagent_id"), &mut events);
        }
        let event = match result_kind {
            kind::STEP_STARTED => self.step_started(data, author),
            kind::STEP_FINISHED => self.step_finished(data, author),
            kind::ACTIVITY_SNAPSHOT => self.activity(data, author),
            kind::ACTIVITY_DELTA => self.activity_changed(data),
            kind::PLAN_UPDATED => self.plan(data, author),
            kind::SUBAGENT_STARTED => self.subagent_started(data, calls),
            kind::SUBAGENT_FINISHED => self.subagent_ended(data).map(|subagent_run_id| {
                let result = data.get("result").filter(|result| !result.is_null()).cloned();
                Event::SubagentFinished { subagent_run_id, result }
            }),
            kind::SUBAGENT_FAILED => self.subagent_ended(data).map(|subagent_run_id| {
                let message = text(data, "message").unwrap_or("the sub-agent failed").to_owned();
                let code = text(data, "code").map(str::to_owned);
                Event::SubagentError { subagent_run_id, message, code }
            }),
            _ => return None,
        };
        events.extend(event);
        Some(events)
    }

    /// Ends what is open, before the end of the stream.
    pub(super) fn close(&mut self, out: &mut Vec<Event>) {
        let steps = std::mem::take(&mut self.steps).into_iter().rev();
        out.extend(steps.map(finished));
        let subagents = std::mem::take(&mut self.subagents).into_iter().rev();
        out.extend(
            subagents
                .map(|subagent_run_id| Event::SubagentFinished { subagent_run_id, result: None }),
        );
    }

    fn finish_steps_of(&mut self, subagent: Option<&str>, out: &mut Vec<Event>) {
        let of =
            |step: &mut (String, Option<String>)| step.1.is_some() && step.1.as_deref() == subagent;
        let steps: Vec<_> = self.steps.extract_if(.., of).collect();
        out.extend(steps.into_iter().rev().map(finished));
    }

    fn step_started(&mut self, data: &Value, author: Option<String>) -> Option<Event> {
        let step = (text(data, "step_name")?.to_owned(), author);
        if self.steps.contains(&step) || self.steps.len() >= OPEN_MAX {
            return None;
        }
        self.steps.push(step.clone());
        Some(Event::StepStarted { step_name: step.0, subagent_run_id: step.1 })
    }

    /// Of this sub-agent if it has a step of the name, else the step of anyone.
    fn step_finished(&mut self, data: &Value, author: Option<String>) -> Option<Event> {
        let step = (text(data, "step_name")?.to_owned(), author);
        let exact = self.steps.iter().position(|open| *open == step);
        let index = exact.or_else(|| self.steps.iter().position(|open| open.0 == step.0))?;
        Some(finished(self.steps.remove(index)))
    }

    fn activity(&mut self, data: &Value, subagent_run_id: Option<String>) -> Option<Event> {
        let (id, activity_type) = (text(data, "message_id")?, text(data, "activity_type")?);
        let content = data.get("content").filter(|content| content.is_object())?.clone();
        let replace = data["replace"].as_bool().unwrap_or(true);
        self.activities.insert(id.to_owned());
        let message_id = format!("{}{id}", self.prefix);
        let activity_type = activity_type.to_owned();
        Some(Event::ActivitySnapshot {
            message_id,
            activity_type,
            content,
            replace,
            subagent_run_id,
        })
    }

    /// The list of steps of a harness: one activity, which each update replaces.
    fn plan(&mut self, data: &Value, subagent_run_id: Option<String>) -> Option<Event> {
        let entries = data.get("entries").filter(|entries| entries.is_array())?;
        Some(Event::ActivitySnapshot {
            message_id: format!("{}plan", self.prefix),
            activity_type: PLAN.to_owned(),
            content: json!({"entries": entries}),
            replace: true,
            subagent_run_id,
        })
    }

    fn activity_changed(&mut self, data: &Value) -> Option<Event> {
        let (id, activity_type) = (text(data, "message_id")?, text(data, "activity_type")?);
        let patch = data["patch"].as_array()?.clone();
        if !self.activities.contains(id) {
            return None;
        }
        let message_id = format!("{}{id}", self.prefix);
        Some(Event::ActivityDelta { message_id, activity_type: activity_type.to_owned(), patch })
    }

    fn subagent_started(
        &mut self,
        data: &Value,
        calls: impl Fn(&str) -> Option<String>,
    ) -> Option<Event> {
        let id = text(data, "subagent_id")?.to_owned();
        if self.subagents.len() >= OPEN_MAX || !self.subagents_seen.insert(id.clone()) {
            return None;
        }
        let parent = text(data, "parent_subagent_id").map(str::to_owned);
        self.subagents.push(id.clone());
        Some(Event::SubagentStarted {
            name: text(data, "name").unwrap_or(&id).to_owned(),
            description: text(data, "description").map(str::to_owned),
            parent_subagent_run_id: parent.filter(|id| self.subagents.contains(id)),
            parent_tool_call_id: text(data, "tool_call_id").and_then(calls),
            subagent_run_id: id,
        })
    }

    fn subagent_ended(&mut self, data: &Value) -> Option<String> {
        let id = text(data, "subagent_id")?;
        let index = self.subagents.iter().position(|open| open == id)?;
        Some(self.subagents.remove(index))
    }
}

fn finished((step_name, subagent_run_id): (String, Option<String>)) -> Event {
    Event::StepFinished { step_name, subagent_run_id }
}

fn text<'a>(data: &'a Value, key: &str) -> Option<&'a str> {
    data[key].as_str().filter(|text| !text.is_empty())
}
