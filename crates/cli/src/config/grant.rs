//! `[agents.NAME.grant]`: what an agent's runs may reach (CONTRACT §4).
//!
//! Invariant: an absent key has the default of the contract's table; nothing else widens a grant.

use super::reader::Reader;
use greenroom_host::settings::{Approval, GrantPolicy, Reach};
use greenroom_protocol::manifest::StorageArea;
use greenroom_protocol::payload::StateScope;
use std::collections::{BTreeMap, BTreeSet};

const REACHES: [(&str, Reach); 3] =
    [("none", Reach::None), ("conversation", Reach::Conversation), ("workspace", Reach::Workspace)];
const APPROVALS: [(&str, Approval); 3] =
    [("never", Approval::Never), ("ask", Approval::Ask), ("always", Approval::Always)];
const AREAS: [(&str, StorageArea); 3] = [
    ("plugin", StorageArea::Plugin),
    ("binding", StorageArea::Binding),
    ("workspace", StorageArea::Workspace),
];

pub(super) fn read(mut reader: Reader<'_>) -> GrantPolicy {
    let absent = GrantPolicy::default();
    let scopes = StateScope::ALL.map(|scope| (scope.as_str(), scope));
    let grant = GrantPolicy {
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

fn texts(reader: &mut Reader<'_>, key: &'static str) -> Vec<String> {
    reader.get(key).and_then(|value| value.texts()).unwrap_or_default()
}

fn reach(reader: &mut Reader<'_>, key: &'static str) -> Option<Reach> {
    reader.get(key).and_then(|value| value.choice(&REACHES))
}

fn choices<T: Copy + Ord>(
    reader: &mut Reader<'_>,
    key: &'static str,
    words: &[(&'static str, T)],
) -> Option<BTreeSet<T>> {
    let items = reader.get(key)?.list(|item| item.choice(words))?;
    Some(items.into_iter().collect())
}

fn actions(reader: &mut Reader<'_>) -> BTreeMap<String, Approval> {
    let table = reader.get("actions").and_then(|value| value.table());
    let entries = table.map(|table| table.entries()).unwrap_or_default();
    let pair = |(action, _, value): (&str, _, super::reader::Value<'_>)| {
        Some((action.to_owned(), value.choice(&APPROVALS)?))
    };
    entries.into_iter().filter_map(pair).collect()
}
