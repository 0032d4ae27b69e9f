//! A LangBot plugin as a runner, detected by its folder.
//!
//! Invariant: without `wire`, only a folder with a LangBot manifest counts as a plugin.

use super::{Process, Wire};
use crate::Secret;
use crate::reader::{Reader, Value};
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The manifest of a plugin.
const MANIFEST: &str = "manifest.yaml";
/// Largest manifest. The plugin may write this file.
const MANIFEST_BYTES_MAX: u64 = 1 << 20;
/// The Python of a plugin in its folder, in the order of preference.
const INTERPRETERS: [&str; 2] = [".venv/bin/python", "venv/bin/python"];

/// One setting of a plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Setting {
    /// As it is written.
    Plain(Json),
    Secret(Secret),
}

impl Setting {
    /// The value for the plugin.
    pub fn expose(&self) -> Json {
        match self {
            Setting::Plain(value) => value.clone(),
            Setting::Secret(secret) => secret.expose().into(),
        }
    }
}

/// Keys that only plugins of this wire have.
#[derive(Default)]
pub(super) struct Keys {
    pub(super) config: BTreeMap<String, Setting>,
    pub(super) listens: Vec<String>,
}

pub(super) fn keys(reader: &mut Reader<'_>, wire: Wire) -> Keys {
    let (config, listens) = (reader.get("config"), reader.get("listens"));
    if wire == Wire::Langbot {
        let agents = &reader.cx.agents;
        let listens = listens.and_then(|value| value.list(|name| name.reference("agent", agents)));
        let config = config.and_then(|value| settings(&value));
        return Keys { config: config.unwrap_or_default(), listens: listens.unwrap_or_default() };
    }
    for value in [config, listens].into_iter().flatten() {
        value.fail::<()>(
            format!("`{}` is only for plugins of the wire `langbot`", value.path),
            "other runners get the `config` of their agent",
        );
    }
    Keys::default()
}

/// A table with the one key `env` or `file` is a secret.
fn settings(value: &Value<'_>) -> Option<BTreeMap<String, Setting>> {
    let setting = |value: &Value<'_>| {
        let keys: Vec<&str> = match value.is_table() {
            true => value.table()?.entries().into_iter().map(|(key, ..)| key).collect(),
            false => Vec::new(),
        };
        match keys.as_slice() {
            ["env" | "file"] => value.secret().map(Setting::Secret),
            _ => value.json().map(Setting::Plain),
        }
    };
    let entries = value.table()?.entries().into_iter();
    entries.map(|(key, _, value)| Some((key.to_owned(), setting(&value)?))).collect()
}

/// Whether the runner has the folder of a LangBot plugin.
pub(super) fn is_plugin(reader: &mut Reader<'_>) -> bool {
    folder(reader).is_some_and(|folder| is_plugin_folder(&folder))
}

/// Whether a folder is a LangBot plugin.
pub fn is_plugin_folder(folder: &Path) -> bool {
    let manifest = std::fs::canonicalize(folder)
        .and_then(|folder| crate::read_plain(&folder.join(MANIFEST), MANIFEST_BYTES_MAX))
        .unwrap_or_default();
    String::from_utf8_lossy(&manifest).lines().any(|line| {
        let value = line.strip_prefix("kind:").map(|value| value.trim().trim_matches(['"', '\'']));
        value == Some("Plugin")
    })
}

/// The process of a plugin: with the interpreter of `command`, or the one in its folder.
pub(super) fn read(reader: &mut Reader<'_>, command: Option<Value<'_>>) -> Option<Process> {
    let Some(folder) = folder(reader) else {
        reader.knows(&super::PROCESS_KEYS);
        return reader.fail(
            format!("`{}` speaks the wire `langbot` and has no `dir`", reader.path),
            "write the folder of the plugin, the one with its `manifest.yaml`, as `dir`",
        );
    };
    if let Some(command) = command {
        return Process::read(reader, &command);
    }
    let found = INTERPRETERS.iter().find(|path| folder.join(path).is_file());
    match found {
        Some(path) => Process::started(reader, Some(vec![(*path).to_owned()])),
        None => {
            reader.knows(&super::PROCESS_KEYS);
            reader.fail(
                format!("`{}` has no `command`, and there is no Python in its folder", reader.path),
                "`greenroom runner add DIR` makes one, or write the interpreter as `command`",
            )
        }
    }
}

/// The value of `dir`; a mistake in it is reported where it is read.
fn folder(reader: &mut Reader<'_>) -> Option<PathBuf> {
    let dir = reader.get("dir")?;
    match dir.value {
        toml::de::DeValue::String(text) => Some(dir.cx.dir.join(text.as_ref())),
        _ => None,
    }
}
