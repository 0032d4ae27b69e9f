//! Explains for every agent why it matches an event or not.
//!
//! Invariant: the same rules as `resolve`; pure.

use super::{Match, filtered_out, out_of_scope, resolve, takes_command, takes_type};
use crate::settings::Agent;
use greenroom_protocol::NewEvent;
use serde::{Serialize, Serializer};
use serde_json::Value;

/// The verdict on one agent.
#[derive(Debug)]
pub struct Candidate<'a> {
    pub agent: &'a Agent,
    pub matches: bool,
    pub chosen: bool,
    pub why: Vec<Why>,
}

/// Why an agent matches or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Why {
    Ok,
    Named,
    /// The event names another.
    NotNamed,
    /// It has no `events`: it is chosen by name only.
    OnlyWhenNamed,
    EventType,
    /// The message has none of its slash commands.
    Command,
    /// The part of the scope that excludes the event.
    Scope(&'static str),
    /// The field of the filter that excludes the event.
    Filter(String),
    /// It matches, and another is narrower.
    LessNarrow,
    /// It matches, and another is just as narrow.
    Tie,
}

impl Serialize for Why {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Ok => to.serialize_str("ok"),
            Self::Named => to.serialize_str("named"),
            Self::NotNamed => to.serialize_str("not_named"),
            Self::OnlyWhenNamed => to.serialize_str("only_when_named"),
            Self::EventType => to.serialize_str("event_type"),
            Self::Command => to.serialize_str("command"),
            Self::Scope(part) => to.collect_str(&format_args!("scope.{part}")),
            Self::Filter(field) => to.collect_str(&format_args!("filter:{field}")),
            Self::LessNarrow => to.serialize_str("less_narrow"),
            Self::Tie => to.serialize_str("tie"),
        }
    }
}

/// Every agent, the chosen one first, then those that match.
pub fn explain<'a>(agents: &'a [Agent], event: &NewEvent, workspace: &str) -> Vec<Candidate<'a>> {
    let resolved = resolve(agents, event, workspace);
    let json = serde_json::to_value(event).unwrap_or(Value::Null);
    let mut candidates: Vec<Candidate<'a>> = agents
        .iter()
        .map(|agent| {
            let is_named = event.agent.as_ref() == Some(&agent.name);
            let (chosen, word) = match &resolved {
                Match::One(one, _) if one.name == agent.name && is_named => (true, Why::Named),
                Match::One(one, _) if one.name == agent.name => (true, Why::Ok),
                Match::Tie(names) if names.contains(&agent.name.as_str()) => (false, Why::Tie),
                _ => (false, Why::LessNarrow),
            };
            // A slash command may go to another agent than the named one.
            let against = match chosen || word == Why::Tie {
                true => Vec::new(),
                false => against(agent, event, workspace, &json),
            };
            let matches = against.is_empty();
            let why = if matches { vec![word] } else { against };
            Candidate { agent, matches, chosen, why }
        })
        .collect();
    candidates.sort_by_key(|candidate| (!candidate.chosen, !candidate.matches));
    candidates
}

/// Everything that excludes an event from an agent.
fn against(agent: &Agent, event: &NewEvent, workspace: &str, json: &Value) -> Vec<Why> {
    if let Some(name) = &event.agent {
        return if agent.name == *name { Vec::new() } else { vec![Why::NotNamed] };
    }
    if agent.events.is_empty() {
        return vec![Why::OnlyWhenNamed];
    }
    let kind = (!takes_type(agent, &event.event_type)).then_some(Why::EventType);
    let scope = out_of_scope(&agent.scope, event, workspace).map(Why::Scope);
    let filters = filtered_out(agent, json).map(|field| Why::Filter(field.to_owned()));
    let command = (!takes_command(agent, event)).then_some(Why::Command);
    kind.into_iter().chain(command).chain(scope).chain(filters).collect()
}
