//! Binding: which agent an event goes to.
//!
//! Invariant: a pure function. An agent that the event names is chosen, unless the message is a slash command that
//! another agent lists; else the narrowest that matches, the user's agents before built-in ones, and those for a
//! slash command before others; two equally narrow ones are an error that names both.

mod explain;

pub use explain::{Candidate, Why, explain};

use crate::replay::REPLAY_OF;
use crate::settings::{Agent, Scope};
use greenroom_protocol::NewEvent;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::cmp::Reverse;

/// The outcome of binding.
#[derive(Debug)]
pub enum Match<'a> {
    One(&'a Agent, Bound),
    /// No agent matches: the event is stored as unbound.
    None,
    /// The event names an agent that does not exist.
    Unknown,
    /// Several agents are equally narrow.
    Tie(Vec<&'a str>),
}

/// Why an agent was chosen; stored with the event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bound {
    pub reason: Reason,
    /// Other agents that match, the narrowest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub beside: Vec<String>,
    /// The event names the agent, whose `events` do not list its type.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unlisted: bool,
}

impl Bound {
    fn by(reason: Reason) -> Self {
        Self { reason, beside: Vec::new(), unlisted: false }
    }
}

/// The warning to the sender of such an event.
pub(crate) fn unlisted_warning(agent: &str, event_type: &str) -> String {
    format!(
        "agent `{agent}` does not list the event type `{event_type}` in `events`; \
         it takes the event because the event names it"
    )
}

/// The rule that decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// The event names the agent.
    Named,
    OnlyMatch,
    /// The next one in the order is built in, this one is the user's.
    BeforeBuiltIn,
    /// The message is a slash command of this agent.
    SlashCommand,
    NarrowerScope,
    MoreFilters,
    ExactEventType,
}

/// Other matching agents that are stored with an event, at most.
const BESIDE_MAX: usize = 20;

/// Finds the agent for an event of a workspace.
pub fn resolve<'a>(agents: &'a [Agent], event: &NewEvent, workspace: &str) -> Match<'a> {
    let Some(name) = &event.agent else {
        return narrowest(matching(agents, event, workspace), event);
    };
    let Some(named) = agents.iter().find(|agent| agent.name == *name) else {
        return Match::Unknown;
    };
    let mut commands = matching(agents, event, workspace);
    commands.retain(|agent| takes_from(agent, named, event));
    match narrowest(commands, event) {
        Match::None => by_name(named, event),
        Match::One(agent, _) => {
            let beside = vec![named.name.clone()];
            Match::One(agent, Bound { beside, ..Bound::by(Reason::SlashCommand) })
        }
        other => other,
    }
}

/// The agent that an event names.
pub(crate) fn by_name<'a>(named: &'a Agent, event: &NewEvent) -> Match<'a> {
    // An agent without `events` is chosen by name only.
    let unlisted = !named.events.is_empty() && !takes_type(named, &event.event_type);
    Match::One(named, Bound { unlisted, ..Bound::by(Reason::Named) })
}

/// Whether an agent takes a slash command from the agent that the message names. `*` takes none: other agents have
/// commands of their own, and agents for commands keep what names them. A replay goes where it is sent.
fn takes_from(agent: &Agent, named: &Agent, event: &NewEvent) -> bool {
    let lists = |command: &str| agent.commands.iter().any(|own| own == command);
    let is_named =
        event.event_type.starts_with("message.") && !event.metadata.contains_key(REPLAY_OF);
    is_named && named.commands.is_empty() && slash_command(event).is_some_and(lists)
}

/// The agents whose configuration matches an event that names none.
fn matching<'a>(agents: &'a [Agent], event: &NewEvent, workspace: &str) -> Vec<&'a Agent> {
    let mut json = None;
    agents
        .iter()
        .filter(|agent| takes_type(agent, &event.event_type))
        .filter(|agent| takes_command(agent, event))
        .filter(|agent| in_scope(&agent.scope, event, workspace))
        .filter(|agent| {
            agent.filters.is_empty() || {
                let json =
                    json.get_or_insert_with(|| serde_json::to_value(event).unwrap_or(Value::Null));
                passes(agent, json)
            }
        })
        .collect()
}

fn narrowest<'a>(mut matching: Vec<&'a Agent>, event: &NewEvent) -> Match<'a> {
    matching.sort_by_key(|agent| Reverse(narrowness(agent, &event.event_type)));
    match matching.as_slice() {
        [] => Match::None,
        [one] => Match::One(one, Bound::by(Reason::OnlyMatch)),
        [first, second, ..] => match narrower(first, second, &event.event_type) {
            Some(reason) => {
                let beside = matching[1..].iter().take(BESIDE_MAX);
                let beside = beside.map(|agent| agent.name.clone()).collect();
                Match::One(first, Bound { beside, ..Bound::by(reason) })
            }
            None => {
                let best = narrowness(first, &event.event_type);
                let equal = |agent: &&&Agent| narrowness(agent, &event.event_type) == best;
                let mut tied: Vec<&str> =
                    matching.iter().filter(equal).map(|agent| agent.name.as_str()).collect();
                tied.sort_unstable();
                Match::Tie(tied)
            }
        },
    }
}

/// The rule that puts an agent before the next one; none if they are equally narrow.
fn narrower(first: &Agent, second: &Agent, event_type: &str) -> Option<Reason> {
    let (ours, theirs) = (narrowness(first, event_type), narrowness(second, event_type));
    let parts = [
        (ours.0 != theirs.0, Reason::BeforeBuiltIn),
        (ours.1 != theirs.1, Reason::SlashCommand),
        (ours.2 != theirs.2, Reason::NarrowerScope),
        (ours.3 != theirs.3, Reason::MoreFilters),
        (ours.4 != theirs.4, Reason::ExactEventType),
    ];
    parts.into_iter().find_map(|(differs, reason)| differs.then_some(reason))
}

/// Pairs of agents that would tie for some event: a configuration error.
pub fn ties(agents: &[Agent]) -> Vec<(&str, &str)> {
    let mut ties = Vec::new();
    for (index, one) in agents.iter().enumerate() {
        for other in &agents[index + 1..] {
            if may_tie(one, other) {
                ties.push((one.name.as_str(), other.name.as_str()));
            }
        }
    }
    ties
}

fn may_tie(one: &Agent, other: &Agent) -> bool {
    let same_rank = one.built_in == other.built_in
        && command_rank(one) == command_rank(other)
        && one.scope == other.scope
        && one.filters.len() == other.filters.len()
        && commands_meet(one, other);
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

/// Whether a message can be for both.
fn commands_meet(one: &Agent, other: &Agent) -> bool {
    let shares = one.commands.iter().any(|command| other.commands.contains(command));
    shares || (one.commands.is_empty() && other.commands.is_empty())
}

fn command_rank(agent: &Agent) -> u8 {
    match agent.commands.as_slice() {
        [] => 0,
        commands if commands.iter().any(|command| command == "*") => 1,
        _ => 2,
    }
}

/// Larger is narrower: the user's own, then a slash command, then the scope from actor down to workspace, then
/// filters, then an exact event type before a pattern.
fn narrowness(agent: &Agent, event_type: &str) -> (bool, u8, u8, usize, bool) {
    let Scope { workspace, bot, conversation, actor } = &agent.scope;
    let scope = u8::from(actor.is_some()) << 3
        | u8::from(conversation.is_some()) << 2
        | u8::from(bot.is_some()) << 1
        | u8::from(workspace.is_some());
    let exact = agent.events.iter().any(|pattern| pattern == event_type);
    (!agent.built_in, command_rank(agent), scope, agent.filters.len(), exact)
}

fn takes_type(agent: &Agent, event_type: &str) -> bool {
    agent.events.iter().any(|pattern| fits(pattern, event_type))
}

/// Whether the message has one of the agent's commands, if it has any.
fn takes_command(agent: &Agent, event: &NewEvent) -> bool {
    let command = slash_command(event);
    let is_command = |own: &String| command.is_some_and(|command| own == "*" || own == command);
    agent.commands.is_empty() || agent.commands.iter().any(is_command)
}

/// The name of the command in a message that begins with a slash.
fn slash_command(event: &NewEvent) -> Option<&str> {
    let text = event.input.text.as_deref().unwrap_or_default().trim_start();
    text.strip_prefix('/').and_then(|text| text.split_whitespace().next())
}

fn in_scope(scope: &Scope, event: &NewEvent, workspace: &str) -> bool {
    out_of_scope(scope, event, workspace).next().is_none()
}

/// The parts of a scope that exclude an event.
fn out_of_scope<'a>(
    scope: &'a Scope,
    event: &'a NewEvent,
    workspace: &'a str,
) -> impl Iterator<Item = &'static str> + 'a {
    let actor = event.actor.as_ref().and_then(|actor| actor.actor_id.as_deref());
    let parts = [
        ("workspace", &scope.workspace, Some(workspace)),
        ("bot", &scope.bot, event.bot_id.as_deref()),
        ("conversation", &scope.conversation, event.conversation_id.as_deref()),
        ("actor", &scope.actor, actor),
    ];
    let outside = |wanted: &Option<String>, actual: Option<&str>| {
        wanted.as_deref().is_some_and(|wanted| actual != Some(wanted))
    };
    parts
        .into_iter()
        .filter_map(move |(part, wanted, actual)| outside(wanted, actual).then_some(part))
}

fn passes(agent: &Agent, event: &Value) -> bool {
    filtered_out(agent, event).next().is_none()
}

/// The filters of an agent that an event does not pass.
fn filtered_out<'a>(agent: &'a Agent, event: &'a Value) -> impl Iterator<Item = &'a str> {
    let fails = move |field: &str, values: &[Value]| {
        let value = field.split('.').try_fold(event, |value, part| value.get(part));
        !value.is_some_and(|value| values.contains(value))
    };
    let filters = agent.filters.iter();
    filters.filter_map(move |(field, values)| fails(field, values).then_some(field.as_str()))
}

/// Whether a text matches a pattern in which `*` matches any sequence of characters.
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
