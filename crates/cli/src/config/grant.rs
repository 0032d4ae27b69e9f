//! `[agents.NAME.grant]`: what an agent's runs may reach (CONTRACT §4).
//!
//! Invariant: an absent key has the default of the contract's table; nothing else widens a grant.

use super::reader::Reader;
use greenroom_protocol::manifest::StorageArea;
use greenroom_protocol::payload::StateScope;
use std::collections::BTreeMap;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    pub models: Vec<String>,
    /// Names, or a prefix followed by `.*`.
    pub tools: Vec<String>,
    pub knowledge: Vec<String>,
    pub history: Reach,
    pub event_log: Reach,
    pub artifacts: Reach,
    pub state: Vec<StateScope>,
    pub storage: Vec<StorageArea>,
    /// Platform action → whether it needs an approval.
    pub actions: BTreeMap<String, Approval>,
    pub files: Vec<String>,
    pub skills: Vec<String>,
    pub modules: Vec<String>,
}

/// How far a run sees beyond its own event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    None,
    Conversation,
    Workspace,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Approval {
    /// Refused.
    Never,
    /// Waits for a person.
    Ask,
    /// Done at once.
    Always,
}

const REACHES: [(&str, Reach); 3] =
    [("none", Reach::None), ("conversation", Reach::Conversation), ("workspace", Reach::Workspace)];
const APPROVALS: [(&str, Approval); 3] =
    [("never", Approval::Never), ("ask", Approval::Ask), ("always", Approval::Always)];
const AREAS: [(&str, StorageArea); 3] = [
    ("plugin", StorageArea::Plugin),
    ("binding", StorageArea::Binding),
    ("workspace", StorageArea::Workspace),
];

impl Default for Grant {
    fn default() -> Self {
        Self {
            models: Vec::new(),
            tools: Vec::new(),
            knowledge: Vec::new(),
            history: Reach::Conversation,
            event_log: Reach::Conversation,
            artifacts: Reach::Conversation,
            state: vec![StateScope::Conversation, StateScope::Actor, StateScope::Runner],
            storage: vec![StorageArea::Plugin, StorageArea::Binding],
            actions: BTreeMap::new(),
            files: Vec::new(),
            skills: Vec::new(),
            modules: Vec::new(),
        }
    }
}

impl Grant {
    pub(super) fn read(mut reader: Reader<'_>) -> Self {
        let absent = Self::default();
        let scopes = StateScope::ALL.map(|scope| (scope.as_str(), scope));
        let grant = Self {
            models: texts(&mut reader, "models"),
            tools: texts(&mut reader, "tools"),
            knowledge: texts(&mut reader, "knowledge"),
            history: reach(&mut reader, "history").unwrap_or(absent.history),
            event_log: reach(&mut reader, "event_log").unwrap_or(absent.event_log),
            artifacts: reach(&mut reader, "artifacts").unwrap_or(absent.artifacts),
            state: choices(&mut reader, "state", &scopes).unwrap_or(absent.state),
            storage: choices(&mut reader, "storage", &AREAS).unwrap_or(absent.storage),
            actions: actions(&mut reader),
            files: texts(&mut reader, "files"),
            skills: texts(&mut reader, "skills"),
            modules: texts(&mut reader, "modules"),
        };
        reader.finish();
        grant
    }
}

fn texts(reader: &mut Reader<'_>, key: &'static str) -> Vec<String> {
    reader.get(key).and_then(|value| value.texts()).unwrap_or_default()
}

fn reach(reader: &mut Reader<'_>, key: &'static str) -> Option<Reach> {
    reader.get(key).and_then(|value| value.choice(&REACHES))
}

fn choices<T: Copy + PartialEq>(
    reader: &mut Reader<'_>,
    key: &'static str,
    words: &[(&'static str, T)],
) -> Option<Vec<T>> {
    let mut items = reader.get(key)?.list(|item| item.choice(words))?;
    let mut seen = Vec::new();
    items.retain(|item| {
        let is_new = !seen.contains(item);
        seen.push(*item);
        is_new
    });
    Some(items)
}

fn actions(reader: &mut Reader<'_>) -> BTreeMap<String, Approval> {
    let table = reader.get("actions").and_then(|value| value.table());
    let entries = table.map(|table| table.entries()).unwrap_or_default();
    let pair = |(action, _, value): (&str, _, super::reader::Value<'_>)| {
        Some((action.to_owned(), value.choice(&APPROVALS)?))
    };
    entries.into_iter().filter_map(pair).collect()
}
