//! `[agents.NAME.grant]`: what an agent's runs may reach (CONTRACT §4).
//!
//! Invariant: an absent key has the default of the contract's table; nothing else widens a grant.

use super::reader::{Context, Reader, Value, clean, list, nearest};
use greenroom_protocol::api::harness::HarnessToolKind as Kind;
use greenroom_protocol::manifest::StorageArea;
use greenroom_protocol::payload::StateScope;
use greenroom_protocol::wire::ToolRisk as Risk;
use serde::{Deserialize, Serialize, Serializer};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

const REACHES: [(&str, Reach); 3] =
    [("none", Reach::None), ("conversation", Reach::Conversation), ("workspace", Reach::Workspace)];
const THREADS: [(&str, Threads); 2] = [("apart", Threads::Apart), ("together", Threads::Together)];
const APPROVALS: [(&str, Approval); 3] =
    [("never", Approval::Never), ("ask", Approval::Ask), ("always", Approval::Always)];
const AREAS: [(&str, StorageArea); 3] = [
    ("plugin", StorageArea::Plugin),
    ("binding", StorageArea::Binding),
    ("workspace", StorageArea::Workspace),
];

/// What a run can read beyond its own event.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reach {
    #[default]
    None,
    Conversation,
    Workspace,
}

/// Whether the bots and threads of a conversation are sessions of their own (decision 026).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Threads {
    #[default]
    Apart,
    /// A run reaches the whole conversation.
    Together,
}

/// Whether an action is refused, needs an approval or is allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Approval {
    Never,
    Ask,
    Always,
}

/// `[agents.NAME.grant]`: what the binding allows (CONTRACT §4).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GrantPolicy {
    pub models: Vec<String>,
    pub tools: Vec<String>,
    pub knowledge: Vec<String>,
    pub history: Reach,
    pub event_log: Reach,
    pub artifacts: Reach,
    pub threads: Threads,
    pub state: BTreeSet<StateScope>,
    pub storage: BTreeSet<StorageArea>,
    pub actions: BTreeMap<String, Approval>,
    pub files: Vec<GrantedFile>,
    pub skills: Vec<String>,
    pub modules: Vec<String>,
    pub risks: BTreeMap<Risk, Approval>,
    /// What an external harness may do with its own tools.
    pub harness: BTreeMap<Kind, Approval>,
}

/// A file of this machine that runs may read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrantedFile {
    /// As written, relative to the folder of the configuration.
    pub name: String,
    /// Absolute.
    pub path: PathBuf,
}

/// As written: where it is concerns this machine only.
impl Serialize for GrantedFile {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&self.name)
    }
}

impl Default for GrantPolicy {
    fn default() -> Self {
        Self {
            models: Vec::new(),
            tools: Vec::new(),
            knowledge: Vec::new(),
            history: Reach::Conversation,
            event_log: Reach::Conversation,
            artifacts: Reach::Conversation,
            threads: Threads::Apart,
            state: [StateScope::Conversation, StateScope::Actor, StateScope::Runner].into(),
            storage: [StorageArea::Plugin, StorageArea::Binding].into(),
            actions: BTreeMap::new(),
            files: Vec::new(),
            skills: Vec::new(),
            modules: Vec::new(),
            // Irreversible calls need an approval.
            risks: Risk::ALL
                .into_iter()
                .map(|risk| match risk {
                    Risk::Destructive => (risk, Approval::Ask),
                    Risk::Read | Risk::Write | Risk::External => (risk, Approval::Always),
                })
                .collect(),
            harness: Kind::ALL.into_iter().map(|kind| (kind, unless_configured(kind))).collect(),
        }
    }
}

/// Looking and thinking change nothing; everything else needs an approval.
fn unless_configured(kind: Kind) -> Approval {
    match kind {
        Kind::Read | Kind::Search | Kind::Think => Approval::Always,
        Kind::Edit
        | Kind::Delete
        | Kind::Move
        | Kind::Execute
        | Kind::Fetch
        | Kind::SwitchMode
        | Kind::Other => Approval::Ask,
    }
}

impl GrantPolicy {
    pub(super) fn read(mut reader: Reader<'_>) -> Self {
        let absent = Self::default();
        let scopes = StateScope::ALL.map(|scope| (scope.as_str(), scope));
        let grant = Self {
            models: references(&mut reader, "models", "model", |cx| &cx.models),
            tools: tools(&mut reader),
            knowledge: references(&mut reader, "knowledge", "knowledge base", |cx| &cx.knowledge),
            history: reach(&mut reader, "history").unwrap_or(absent.history),
            event_log: reach(&mut reader, "event_log").unwrap_or(absent.event_log),
            artifacts: reach(&mut reader, "artifacts").unwrap_or(absent.artifacts),
            threads: threads(&mut reader).unwrap_or(absent.threads),
            state: choices(&mut reader, "state", &scopes).unwrap_or(absent.state),
            storage: choices(&mut reader, "storage", &AREAS).unwrap_or(absent.storage),
            actions: actions(&mut reader),
            files: files(&mut reader),
            skills: texts(&mut reader, "skills"),
            modules: modules(&mut reader),
            risks: approvals(&mut reader, "risk", absent.risks, Risk::as_str),
            harness: approvals(&mut reader, "harness", absent.harness, Kind::as_str),
        };
        reader.finish();
        grant
    }
}

fn files(reader: &mut Reader<'_>) -> Vec<GrantedFile> {
    let one = |item: &Value<'_>| {
        let name = item.filled_text()?;
        let path = Path::new(name);
        let leaves = path.components().any(|part| matches!(part, Component::ParentDir));
        if name.contains(char::is_control) || leaves {
            let message = format!("`{}` is not the path of a file to grant", clean(name));
            return item.fail(message, "write a path without `..`, relative to this file's folder");
        }
        // The folder may be reached through a link, what is in it may not.
        let dir = item.cx.dir.canonicalize().unwrap_or_else(|_| item.cx.dir.to_owned());
        Some(GrantedFile { name: name.to_owned(), path: dir.join(path) })
    };
    reader.get("files").and_then(|value| value.list(one)).unwrap_or_default()
}

fn texts(reader: &mut Reader<'_>, key: &'static str) -> Vec<String> {
    reader.get(key).and_then(|value| value.texts()).unwrap_or_default()
}

/// Names of entries in this file.
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

/// Tools by name, or `SOURCE.*`.
fn tools(reader: &mut Reader<'_>) -> Vec<String> {
    // The tools of a source are known once it runs: only its name is checked here.
    let cx = reader.cx;
    let sources: Vec<String> = cx.tools.iter().chain(&cx.runners).cloned().collect();
    let one = |item: &Value<'_>| {
        let text = item.filled_text()?;
        match text.split_once('.') {
            Some((source, tool)) if !tool.is_empty() => {
                let known = sources.iter().any(|name| name == source);
                if known { Some(text.to_owned()) } else { unknown_source(item, text, &sources) }
            }
            _ => unknown_source(item, text, &sources),
        }
    };
    reader.get("tools").and_then(|value| value.list(one)).unwrap_or_default()
}

fn unknown_source(item: &Value<'_>, text: &str, sources: &[String]) -> Option<String> {
    let (source, tool) = text.split_once('.').unwrap_or((text, "*"));
    let methods = item.cx.surroundings.known.methods.iter();
    let module = |method: &str| format!("{}.*", method.split('.').next().unwrap_or_default());
    let methods: Vec<String> =
        methods.flat_map(|method| [method.clone(), module(method)]).collect();
    let near_method = nearest(text, methods.iter().map(String::as_str));
    let hint = match nearest(source, sources.iter().map(String::as_str)) {
        Some(near) => format!("did you mean `{near}.{}`?", clean(tool)),
        None if near_method.is_some() => {
            let near = near_method.unwrap_or_default();
            format!(
                "did you mean `modules = [\"{near}\"]`? methods of the project CLI are granted there"
            )
        }
        None if sources.is_empty() => format!("add `[tools.{}]`", clean(source)),
        None => "write `SOURCE.tool` or `SOURCE.*`, with the name of a `[tools.SOURCE]`".to_owned(),
    };
    item.fail(format!("there is no tool `{}`", clean(text)), hint)
}

/// Methods of the project CLI, by name or `module.*`.
fn modules(reader: &mut Reader<'_>) -> Vec<String> {
    let built_in = &reader.cx.surroundings.known.methods;
    let own = reader.cx.tools.clone();
    let one = |item: &Value<'_>| {
        let text = item.filled_text()?;
        let (module, method) = text.split_once('.').unwrap_or((text, ""));
        let known = match method {
            "*" => built_in.iter().any(|name| name.starts_with(&format!("{module}."))),
            _ => built_in.iter().any(|name| name == text),
        };
        // Configured modules are checked with their manifests.
        if known || (!own.is_empty() && !method.is_empty()) {
            return Some(text.to_owned());
        }
        let hint = match nearest(text, built_in.iter().map(String::as_str)) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "`greenroom tool` lists all methods".to_owned(),
        };
        item.fail(format!("there is no method `{}`", clean(text)), hint)
    };
    reader.get("modules").and_then(|value| value.list(one)).unwrap_or_default()
}

/// A table of approvals; absent keys keep their default.
fn approvals<K: Copy + Ord>(
    reader: &mut Reader<'_>,
    key: &'static str,
    absent: BTreeMap<K, Approval>,
    name: fn(K) -> &'static str,
) -> BTreeMap<K, Approval> {
    let mut approvals = absent;
    let Some(mut table) = reader.get(key).and_then(|value| value.table()) else {
        return approvals;
    };
    for (kind, approval) in &mut approvals {
        if let Some(given) = table.get(name(*kind)).and_then(|v| v.choice(&APPROVALS)) {
            *approval = given;
        }
    }
    table.finish();
    approvals
}

fn reach(reader: &mut Reader<'_>, key: &'static str) -> Option<Reach> {
    reader.get(key).and_then(|value| value.choice(&REACHES))
}

fn threads(reader: &mut Reader<'_>) -> Option<Threads> {
    reader.get("threads").and_then(|value| value.choice(&THREADS))
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
        let known = value.cx.surroundings.known.actions;
        if !known.contains(&action) {
            let hint = match nearest(action, known.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("one of: {}", list(known.iter().copied())),
            };
            let message = format!("there is no action `{}`", clean(action));
            value.cx.report(span, message, Some(hint));
            return None;
        }
        Some((action.to_owned(), approval?))
    };
    entries.into_iter().filter_map(pair).collect()
}
