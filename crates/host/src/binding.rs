//! Which agent takes an event.
//!
//! Invariant: a pure function. A named agent is taken as named; else the narrowest that matches wins, those
//! of the user before the built-in ones; two equally narrow ones are an error that names both.

use crate::settings::{Agent, Scope};
use greenroom_protocol::NewEvent;
use serde_json::Value;
use std::cmp::Reverse;

/// What was found.
#[derive(Debug)]
pub enum Match<'a> {
    One(&'a Agent),
    /// Nothing takes it: kept as unbound.
    None,
    /// The event names an agent that does not exist.
    Unknown,
    /// Several agents are equally narrow.
    Tie(Vec<&'a str>),
}

/// Finds the agent for an event of a workspace.
pub fn resolve<'a>(agents: &'a [Agent], event: &NewEvent, workspace: &str) -> Match<'a> {
    if let Some(name) = &event.agent {
        return agents.iter().find(|agent| agent.name == *name).map_or(Match::Unknown, Match::One);
    }
    let mut json = None;
    let mut matching: Vec<&Agent> = agents
        .iter()
        .filter(|agent| takes_type(agent, &event.event_type))
        .filter(|agent| in_scope(&agent.scope, event, workspace))
        .filter(|agent| {
            agent.filters.is_empty() || {
                let json =
                    json.get_or_insert_with(|| serde_json::to_value(event).unwrap_or(Value::Null));
                passes(agent, json)
            }
        })
        .collect();
    matching.sort_by_key(|agent| Reverse(narrowness(agent, &event.event_type)));
    match matching.as_slice() {
        [] => Match::None,
        [one] => Match::One(one),
        [first, rest @ ..] => {
            let best = narrowness(first, &event.event_type);
            let equal = |agent: &&&Agent| narrowness(agent, &event.event_type) == best;
            let mut tied: Vec<&str> =
                rest.iter().filter(equal).map(|agent| agent.name.as_str()).collect();
            if tied.is_empty() {
                return Match::One(first);
            }
            tied.push(&first.name);
            tied.sort_unstable();
            Match::Tie(tied)
        }
    }
}

/// Pairs of agents that would tie for some event: a configuration error.
pub fn ties(agents: &[Agent]) -> Vec<(&str, &str)> {
    let mut found = Vec::new();
    for (index, one) in agents.iter().enumerate() {
        for other in &agents[index + 1..] {
            if may_tie(one, other) {
                found.push((one.name.as_str(), other.name.as_str()));
            }
        }
    }
    found
}

fn may_tie(one: &Agent, other: &Agent) -> bool {
    let same_rank = one.built_in == other.built_in
        && one.scope == other.scope
        && one.filters.len() == other.filters.len();
    let filters_meet = one.filters.iter().all(|(field, values)| {
        other.filters.get(field).is_some_and(|others| values.iter().any(|v| others.contains(v)))
    });
    let types_meet = one.events.iter().any(|pattern| {
        other.events.iter().any(|other| {
            let exact = !pattern.contains('*') && !other.contains('*');
            let both_open = pattern.contains('*') && other.contains('*');
            (exact && pattern == other)
                || (both_open && (fits(pattern, other) || fits(other, pattern)))
        })
    });
    same_rank && filters_meet && types_meet
}

/// Larger is narrower: the user's own, then the scope from actor down to workspace, then filters, then an
/// exact event type before a pattern.
fn narrowness(agent: &Agent, event_type: &str) -> (bool, u8, usize, bool) {
    let Scope { workspace, bot, conversation, actor } = &agent.scope;
    let scope = u8::from(actor.is_some()) << 3
        | u8::from(conversation.is_some()) << 2
        | u8::from(bot.is_some()) << 1
        | u8::from(workspace.is_some());
    let exact = agent.events.iter().any(|pattern| pattern == event_type);
    (!agent.built_in, scope, agent.filters.len(), exact)
}

fn takes_type(agent: &Agent, event_type: &str) -> bool {
    agent.events.iter().any(|pattern| fits(pattern, event_type))
}

fn in_scope(scope: &Scope, event: &NewEvent, workspace: &str) -> bool {
    let actor = event.actor.as_ref().and_then(|actor| actor.actor_id.as_deref());
    let within = |wanted: &Option<String>, found: Option<&str>| {
        wanted.as_deref().is_none_or(|wanted| found == Some(wanted))
    };
    within(&scope.workspace, Some(workspace))
        && within(&scope.bot, event.bot_id.as_deref())
        && within(&scope.conversation, event.conversation_id.as_deref())
        && within(&scope.actor, actor)
}

fn passes(agent: &Agent, event: &Value) -> bool {
    agent.filters.iter().all(|(field, values)| {
        let found = field.split('.').try_fold(event, |value, part| value.get(part));
        found.is_some_and(|found| values.contains(found))
    })
}

/// Whether a text fits a pattern in which `*` stands for any run of characters.
fn fits(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.len() >= last.len() && rest.ends_with(last)
}

#[cfg(test)]
mod tests;
