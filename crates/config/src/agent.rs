//! `[agents.NAME]`: which events go to which runner, with which configuration, grant and budget.
//!
//! Invariant: what an agent refers to in this file exists; the host decides whether two agents tie.

use super::GrantPolicy;
use super::reader::{Reader, Value, clean};
use greenroom_protocol::{Object, OnInterrupt, Queue, Replaces, RunnerId};
use serde::Serialize;
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::time::Duration;

const QUEUES: [(&str, Queue); 4] = [
    ("serial", Queue::Serial),
    ("parallel", Queue::Parallel),
    ("steer", Queue::Steer),
    ("replace", Queue::Replace),
];

#[derive(Debug, Clone, PartialEq)]
pub struct Agent {
    pub runner: RunnerId,
    /// Event types it handles, with `*` for any characters; empty: only events that name the agent.
    pub events: Vec<String>,
    /// Slash commands it handles, without the slash; `*`: any. Empty: also messages without one.
    pub commands: Vec<String>,
    pub scope: Scope,
    /// Dotted event field → the values it may have.
    pub filters: BTreeMap<String, Vec<Json>>,
    pub queue: Queue,
    /// What a run cancels if `queue` is `replace`.
    pub replaces: Replaces,
    /// `None`: `limits.run_deadline_s`.
    pub deadline: Option<Duration>,
    pub on_interrupt: OnInterrupt,
    /// The surface for answers if the event names none.
    pub delivery: Option<String>,
    /// Becomes `ctx.config`.
    pub config: Object,
    pub grant: GrantPolicy,
    pub budget: Budget,
}

/// Where an agent applies; an absent part matches everything.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Scope {
    pub workspace: Option<String>,
    pub bot: Option<String>,
    pub conversation: Option<String>,
    pub actor: Option<String>,
}

/// Millionths of a dollar.
pub type Micro = i64;

/// `[agents.NAME.budget]`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Budget {
    pub run: Option<Micro>,
    /// From midnight to midnight UTC.
    pub day: Option<Micro>,
}

impl Agent {
    /// An agent with a runner and defaults.
    pub fn new(runner: RunnerId) -> Self {
        Self {
            runner,
            events: vec!["message.received".to_owned()],
            commands: Vec::new(),
            scope: Scope::default(),
            filters: BTreeMap::new(),
            queue: Queue::Serial,
            replaces: Replaces::Agent,
            deadline: None,
            on_interrupt: OnInterrupt::Fail,
            delivery: None,
            config: Object::new(),
            grant: GrantPolicy::default(),
            budget: Budget::default(),
        }
    }

    pub(super) fn read(mut reader: Reader<'_>) -> Option<Self> {
        let runner = reader.require("runner").and_then(|value| runner_id(&value));
        let interrupts = [("fail", OnInterrupt::Fail), ("retry", OnInterrupt::Retry)];
        let events = reader.get("events").map(|value| patterns(&value));
        let commands = reader.get("commands").and_then(|value| commands(&value));
        let scope = reader.get("scope").and_then(|v| v.table()).map(scope);
        let filters = reader.get("filters").and_then(|value| filters(&value));
        let queue = reader.get("queue").and_then(|v| v.choice(&QUEUES));
        let replaces = [("agent", Replaces::Agent), ("conversation", Replaces::Conversation)];
        let replaces = reader.get("replace").and_then(|v| v.choice(&replaces));
        let deadline = reader.get("deadline_s").and_then(|v| v.integer(1..=604_800));
        let on_interrupt = reader.get("on_interrupt").and_then(|v| v.choice(&interrupts));
        let surfaces = &reader.cx.surfaces;
        let delivery = reader.get("delivery").and_then(|v| v.reference("surface", surfaces));
        let config = reader.get("config").and_then(|value| value.object());
        let grant = reader.get("grant").and_then(|v| v.table()).map(GrantPolicy::read);
        let budget = reader.get("budget").and_then(|v| v.table()).map(budget);
        reader.finish();
        let absent = Self::new(runner?);
        Some(Self {
            events: events.flatten().unwrap_or(absent.events),
            commands: commands.unwrap_or_default(),
            scope: scope.unwrap_or_default(),
            filters: filters.unwrap_or_default(),
            queue: queue.unwrap_or(absent.queue),
            replaces: replaces.unwrap_or_default(),
            deadline: deadline.map(Duration::from_secs),
            on_interrupt: on_interrupt.unwrap_or(absent.on_interrupt),
            delivery,
            config: config.unwrap_or_default(),
            grant: grant.unwrap_or_default(),
            budget: budget.unwrap_or_default(),
            runner: absent.runner,
        })
    }
}

fn budget(mut reader: Reader<'_>) -> Budget {
    let mut dollars = |key| reader.get(key).and_then(|value: Value<'_>| value.amount());
    let budget = Budget {
        run: dollars("run_usd").map(super::micro),
        day: dollars("day_usd").map(super::micro),
    };
    reader.finish();
    budget
}

fn scope(mut reader: Reader<'_>) -> Scope {
    let mut part = |key| reader.get(key).and_then(|v| v.filled_text()).map(str::to_owned);
    let scope = Scope {
        workspace: part("workspace"),
        bot: part("bot"),
        conversation: part("conversation"),
        actor: part("actor"),
    };
    reader.finish();
    scope
}

fn runner_id(value: &Value<'_>) -> Option<RunnerId> {
    let text = value.filled_text()?;
    match RunnerId::parse(text) {
        Ok(id) => Some(id),
        Err(_) => value.fail(
            format!("`{}` is not a runner id", clean(text)),
            "write `plugin:author/name/runner`; `greenroom runner list` shows those that exist",
        ),
    }
}

fn patterns(value: &Value<'_>) -> Option<Vec<String>> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '*');
    let pattern = |item: &Value<'_>| match item.filled_text()? {
        text if text.len() <= 128 && text.chars().all(allowed) => Some(text.to_owned()),
        text => item.fail(
            format!("`{}` is not a pattern of event types", clean(text)),
            "write e.g. `message.received`, `message.*` or `*`",
        ),
    };
    value.list(pattern)
}

fn commands(value: &Value<'_>) -> Option<Vec<String>> {
    let command = |item: &Value<'_>| match item.filled_text()? {
        text if text == "*" || (!text.starts_with('/') && !text.contains(char::is_whitespace)) => {
            Some(text.to_owned())
        }
        text => item.fail(
            format!("`{}` is not the name of a command", clean(text)),
            "write it without the slash, e.g. `weather`, or `*` for every command",
        ),
    };
    value.list(command)
}

fn filters(value: &Value<'_>) -> Option<BTreeMap<String, Vec<Json>>> {
    let mut filters = BTreeMap::new();
    for (field, _, value) in value.table()?.entries() {
        let values = match value.value {
            toml::de::DeValue::Array(_) => value.list(Value::json),
            toml::de::DeValue::Table(_) => value.fail(
                format!("`{}` must be a value or a list of values", value.path),
                "quote a dotted field, e.g. `\"data.kind\" = \"issue\"`",
            ),
            _ => value.json().map(|value| vec![value]),
        };
        filters.extend(values.map(|values| (field.to_owned(), values)));
    }
    Some(filters)
}
