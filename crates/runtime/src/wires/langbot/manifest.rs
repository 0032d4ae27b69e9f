//! Translates a plugin's container to manifests of its runners and to its tools.
//!
//! Invariant: a component of a kind that the host does not support offers nothing and is named in a warning.
//! Permissions are translated, never widened.

use super::{Dialect, RunnerProfile, commands, tools};
use crate::handshake::{Listed, read_tools};
use greenroom_protocol::wire::PluginIdentity;
use greenroom_protocol::{DynamicFormItemSchema, Object, form};
use serde_json::value::to_raw_value;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// The contents of a container.
#[derive(Debug)]
pub(crate) struct Contents {
    pub(crate) plugin: PluginIdentity,
    /// Manifests in our form, unchecked.
    pub(crate) manifests: Vec<Value>,
    /// The profile of each runner, by name.
    pub(crate) profiles: BTreeMap<String, RunnerProfile>,
    pub(crate) tools: Listed,
    /// Whether it wants to know of events.
    pub(crate) listens: bool,
    pub(crate) warnings: Vec<String>,
}

/// The kind of components that want to know of events.
const LISTENER: &str = "EventListener";

/// The identity that the plugin declares, or a clause that says what is missing.
pub(crate) fn identity(container: &Value) -> Result<PluginIdentity, String> {
    let metadata = &container["manifest"]["manifest"]["metadata"];
    let text = |key: &str| metadata[key].as_str().unwrap_or_default().to_owned();
    let plugin =
        PluginIdentity { author: text("author"), name: text("name"), version: text("version") };
    match plugin.author.is_empty() || plugin.name.is_empty() {
        true => Err("has no `metadata.author` and `metadata.name` in its manifest".to_owned()),
        false => Ok(plugin),
    }
}

/// Reads a container; `sdk_version` is added to every runner.
pub(crate) fn contents(container: &Value, sdk_version: Option<&str>) -> Result<Contents, String> {
    let components = container["components"].as_array().into_iter().flatten();
    let components: Vec<&Value> =
        components.map(|component| &component["manifest"]["manifest"]).collect();
    let of_kind = |kind: &str| {
        components.iter().copied().filter(|manifest| manifest["kind"] == kind).collect::<Vec<_>>()
    };
    let mut found = Contents {
        plugin: identity(container)?,
        manifests: Vec::new(),
        profiles: BTreeMap::new(),
        tools: listed(&of_kind(tools::KIND)),
        listens: !of_kind(LISTENER).is_empty(),
        warnings: Vec::new(),
    };
    let mut unrunnable = Vec::new();
    for dialect in [Dialect::AgentRunner, Dialect::Runner] {
        for manifest in of_kind(dialect.kind()) {
            if can_run(dialect, sdk_version) {
                found.add_runner(manifest, dialect, sdk_version);
                continue;
            }
            let name = manifest["metadata"]["name"].as_str().unwrap_or_default();
            unrunnable.push(format!(
                "its SDK cannot run `{name}`, an `AgentRunner`: install one that can, with `runner add --sdk`"
            ));
        }
    }
    found.add_commands(&of_kind(commands::KIND), sdk_version);
    found.warnings.extend(unsupported(&components));
    let is_empty = found.manifests.is_empty() && found.tools.tools.is_empty() && !found.listens;
    let first = unrunnable.first().cloned();
    found.warnings.append(&mut unrunnable);
    match (is_empty, first) {
        (true, Some(first)) => Err(format!("offers no runner: {first}")),
        (true, None) => Err("offers no component of a kind that this host supports: \
                             `Runner`, `AgentRunner`, `Tool`, `Command` or `EventListener`"
            .to_owned()),
        (false, _) => Ok(found),
    }
}

/// Kinds of components that the host does not support.
fn unsupported(components: &[&Value]) -> Option<String> {
    let supported = ["Runner", "AgentRunner", tools::KIND, commands::KIND, LISTENER];
    let kinds: BTreeSet<&str> = components
        .iter()
        .filter_map(|manifest| manifest["kind"].as_str())
        .filter(|kind| !supported.contains(kind))
        .collect();
    let kinds: Vec<String> = kinds.into_iter().map(|kind| format!("`{kind}`")).collect();
    (!kinds.is_empty())
        .then(|| format!("components of the kinds {} are not used by this host", kinds.join(", ")))
}

/// The tools, checked like those of any plugin.
fn listed(components: &[&Value]) -> Listed {
    let tools: Vec<Value> = components.iter().map(|manifest| tools::described(manifest)).collect();
    let list = to_raw_value(&json!({ "tools": tools })).expect("JSON values are JSON");
    read_tools(Ok(list))
}

/// The settings of the plugin with the defaults of its form, and what is wrong with them.
pub(crate) fn settings(container: &Value, given: &Object) -> (Object, Vec<String>) {
    let spec = &container["manifest"]["manifest"]["spec"];
    let form = read_form(&spec["config"]);
    let filled = form::fill(&form, given, None);
    let unknown = form::unknown(&form, given).into_iter();
    let unknown = unknown.map(|key| format!("`{key}` is not a setting of the plugin"));
    let problems = form::problems(&form, &filled).into_iter();
    let warnings = unknown.chain(problems).collect();
    (filled, warnings)
}

impl Contents {
    fn add_runner(&mut self, manifest: &Value, dialect: Dialect, sdk_version: Option<&str>) {
        let name = manifest["metadata"]["name"].as_str().unwrap_or_default();
        let (permissions, unknown) = permissions(&manifest["spec"]);
        for operation in unknown {
            let warning = format!("`{name}` asks for `{operation}`, which this host does not know");
            self.warnings.push(warning);
        }
        let about = RunnerAbout { kind: dialect.kind(), sdk_version, permissions };
        self.manifests.push(runner(manifest, &self.plugin, about));
        let mut usages = manifest["spec"]["usages"].as_array().into_iter().flatten();
        let replies = dialect == Dialect::Runner && usages.any(|usage| usage == "event");
        let spec = &manifest["spec"];
        let may_ask = spec["permissions"]["interactions"].as_array();
        let may_ask = may_ask.is_some_and(|may| may.iter().any(|may| may == "request"));
        let asks = may_ask && spec["capabilities"]["interactions"] == true;
        let profile = RunnerProfile { dialect, replies, asks, is_commands: false };
        self.profiles.insert(name.to_owned(), profile);
    }

    fn add_commands(&mut self, components: &[&Value], sdk_version: Option<&str>) {
        if components.is_empty() {
            return;
        }
        let name = commands::RUNNER;
        if self.profiles.contains_key(name) {
            let warning = format!("its commands are not offered: it has a runner called `{name}`");
            self.warnings.push(warning);
            return;
        }
        let manifest = commands::manifest(components);
        let about = RunnerAbout { kind: commands::KIND, sdk_version, permissions: json!({}) };
        self.manifests.push(runner(&manifest, &self.plugin, about));
        let profile = RunnerProfile { is_commands: true, ..RunnerProfile::default() };
        self.profiles.insert(name.to_owned(), profile);
    }
}

/// Published SDKs are of version 0.6 and later and have one dialect alone.
fn can_run(dialect: Dialect, sdk_version: Option<&str>) -> bool {
    let mut numbers =
        sdk_version.unwrap_or_default().split('.').map(|part| part.parse::<u32>().unwrap_or(0));
    let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    dialect == Dialect::Runner || version < (0, 6)
}

struct RunnerAbout<'a> {
    kind: &'a str,
    sdk_version: Option<&'a str>,
    permissions: Value,
}

fn runner(manifest: &Value, plugin: &PluginIdentity, about: RunnerAbout<'_>) -> Value {
    let RunnerAbout { kind, sdk_version, permissions } = about;
    let (metadata, spec) = (&manifest["metadata"], &manifest["spec"]);
    let name = metadata["name"].as_str().unwrap_or_default();
    let mut about = Map::new();
    about.insert("wire".to_owned(), "langbot".into());
    about.insert("dialect".to_owned(), kind.into());
    about.extend(sdk_version.map(|version| ("sdk_version".to_owned(), version.into())));
    for key in ["usages", "events", "supported_event_patterns", "commands"] {
        if !spec[key].is_null() {
            about.insert(key.to_owned(), spec[key].clone());
        }
    }
    let mut ours = json!({
        "id": format!("plugin:{}/{name}", plugin.path()),
        "name": name,
        "label": text_or(&metadata["label"], name),
        "capabilities": object_or_empty(&spec["capabilities"]),
        "permissions": permissions,
        "config_schema": form(&spec["config"]),
        "metadata": about,
    });
    if has_text(&metadata["description"]) {
        ours["description"] = metadata["description"].clone();
    }
    for key in ["protocol_version", "context"] {
        if !spec[key].is_null() {
            ours[key] = spec[key].clone();
        }
    }
    ours
}

/// One of LangBot's operations, and ours.
type Meaning = (&'static str, &'static [&'static str]);

/// The operations that a permission of ours may name, and what LangBot's mean: both dialects count tokens under
/// a name of its own and embed under `invoke`.
const OPERATIONS: [(&str, &[Meaning]); 7] = [
    (
        "models",
        &[
            ("invoke", &["invoke", "embed"]),
            ("stream", &["stream"]),
            ("rerank", &["rerank"]),
            ("embed", &["embed"]),
            ("count_tokens", &["invoke"]),
        ],
    ),
    ("tools", &[("detail", &["detail"]), ("call", &["call"])]),
    ("knowledge_bases", &[("list", &["list"]), ("retrieve", &["retrieve"])]),
    ("history", &[("page", &["page"]), ("search", &["search"])]),
    ("events", &[("get", &["get"]), ("page", &["page"])]),
    (
        "storage",
        &[("plugin", &["plugin"]), ("workspace", &["workspace"]), ("binding", &["binding"])],
    ),
    ("artifacts", &[("metadata", &["metadata"]), ("read", &["read"]), ("create", &["create"])]),
];
/// State is no matter of `storage` there: every runner has it that its binding gives it.
const STATE: [&str; 5] = ["conversation", "actor", "subject", "runner", "binding"];

/// What a component asks for, and the operations that this host does not know.
fn permissions(spec: &Value) -> (Value, Vec<String>) {
    let mut permissions = object_or_empty(&spec["permissions"]);
    let mut unknown = Vec::new();
    for (key, known) in OPERATIONS {
        let Some(asked) = permissions[key].as_array() else { continue };
        let mut operations = BTreeSet::new();
        for operation in asked {
            let operation = operation.as_str().unwrap_or_default();
            match known.iter().find(|(theirs, _)| *theirs == operation) {
                Some((_, ours)) => operations.extend(ours.iter().copied()),
                None => unknown.push(format!("{key}: {operation}")),
            }
        }
        permissions[key] = operations.into_iter().collect();
    }
    if spec["capabilities"]["multimodal_input"] == true {
        permissions["artifacts"] = json!(["metadata", "read"]);
    }
    permissions["state"] = json!(STATE);
    if let Some(permissions) = permissions.as_object_mut() {
        // Forms are in messages here, and need no permission.
        permissions.retain(|key, value| !value.is_null() && key != "interactions");
    }
    (permissions, unknown)
}

/// A form of LangBot as one of ours; without it, where it is malformed.
pub fn read_form(config: &Value) -> Vec<DynamicFormItemSchema> {
    serde_json::from_value(form(config)).unwrap_or_default()
}

/// Form items with the label that ours must have.
fn form(config: &Value) -> Value {
    let items = config.as_array().map_or(&[][..], Vec::as_slice);
    let item = |item: &Value| {
        let mut ours = item.clone();
        if ours.is_object() {
            let name = item["name"].as_str().unwrap_or_default();
            ours["label"] = text_or(&item["label"], name);
            if !has_text(&item["description"]) {
                ours.as_object_mut().map(|ours| ours.remove("description"));
            }
            ours["required"] = item["required"].as_bool().unwrap_or_default().into();
            let options = item["options"].as_array().into_iter().flatten();
            ours["options"] = options.map(option).collect();
        }
        ours
    };
    items.iter().map(item).collect()
}

fn option(option: &Value) -> Value {
    let mut ours = option.clone();
    if let Some(word) = option.as_str() {
        return json!({"name": word, "label": word});
    }
    if ours.is_object() {
        let name = option["name"].as_str().or(option["value"].as_str()).unwrap_or_default();
        ours["label"] = text_or(&option["label"], name);
        ours["name"] = name.into();
    }
    ours
}

fn text_or(text: &Value, otherwise: &str) -> Value {
    if has_text(text) { text.clone() } else { otherwise.into() }
}

fn has_text(text: &Value) -> bool {
    text.is_string() || text.as_object().is_some_and(|texts| texts.values().any(Value::is_string))
}

fn object_or_empty(value: &Value) -> Value {
    if value.is_object() { value.clone() } else { json!({}) }
}

#[cfg(test)]
mod tests;
