//! `[agents.NAME.grant]`: what an agent's runs may reach (CONTRACT §4).
//!
//! Invariant: an absent key has the default of the contract's table; nothing else widens a grant.

use super::reader::{Context, Reader, Value, clean, list, nearest};
use greenroom_host::actions::KNOWN;
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
        models: references(&mut reader, "models", "model", |cx| &cx.models),
        tools: tools(&mut reader),
        knowledge: references(&mut reader, "knowledge", "knowledge base", |cx| &cx.knowledge),
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

/// Names of things that are configured in this file.
fn references(
    reader: &mut Reader<'_>,
    key: &'static str,
    what: &str,
    names: impl for<'a> Fn(&'a Context<'_>) -> &'a Vec<String>,
) -> Vec<String> {
    let known = names(reader.cx).clone();
    let list = reader.get(key).and_then(|value| value.list(|item| item.reference(what, &known)));
    list.unwrap_or_default()
}

/// Tools by name, or by `prefix.*` for all that begin so.
fn tools(reader: &mut Reader<'_>) -> Vec<String> {
    let known = reader.cx.tools.clone();
    let one = |item: &Value<'_>| {
        let text = item.filled_text()?;
        let covers = |prefix: &str| {
            known
                .iter()
                .any(|name| name == prefix.trim_end_matches('.') || name.starts_with(prefix))
        };
        match text.strip_suffix('*').filter(|prefix| prefix.ends_with('.')) {
            Some(prefix) if covers(prefix) => Some(text.to_owned()),
            _ => item.reference("tool", &known),
        }
    };
    reader.get("tools").and_then(|value| value.list(one)).unwrap_or_default()
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
    let pair = |(action, span, value): (&str, _, Value<'_>)| {
        let approval = value.choice(&APPROVALS);
        if !KNOWN.contains(&action) {
            let hint = match nearest(action, KNOWN.into_iter()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("one of: {}", list(KNOWN.into_iter())),
            };
            let message = format!("there is no action `{}`", clean(action));
            value.cx.report(span, message, Some(hint));
            return None;
        }
        Some((action.to_owned(), approval?))
    };
    entries.into_iter().filter_map(pair).collect()
}
