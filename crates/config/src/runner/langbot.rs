//! A LangBot plugin as a runner: its folder says what it is, and which Python runs it.
//!
//! Invariant: only a folder with a LangBot manifest is taken for a plugin without being called one.

use super::Process;
use crate::reader::{Reader, Value};
use std::path::{Path, PathBuf};

/// The file that makes a folder a plugin.
const MANIFEST: &str = "manifest.yaml";
/// Where the Python of a plugin is looked for in its folder.
const INTERPRETERS: [&str; 2] = [".venv/bin/python", "venv/bin/python"];

/// Whether the folder of the runner is that of a LangBot plugin.
pub(super) fn is_plugin(reader: &mut Reader<'_>) -> bool {
    folder(reader).is_some_and(|folder| is_plugin_folder(&folder))
}

/// Whether a folder is that of a LangBot plugin.
pub fn is_plugin_folder(folder: &Path) -> bool {
    let manifest = std::fs::read_to_string(folder.join(MANIFEST)).unwrap_or_default();
    manifest.lines().any(|line| {
        let value = line.strip_prefix("kind:").map(|value| value.trim().trim_matches(['"', '\'']));
        value == Some("Plugin")
    })
}

/// The process of a plugin: the interpreter of its `command`, or the one in its folder.
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

/// What `dir` says, without a word about what is wrong with it: that is told where it is read.
fn folder(reader: &mut Reader<'_>) -> Option<PathBuf> {
    let dir = reader.get("dir")?;
    match dir.value {
        toml::de::DeValue::String(text) => Some(dir.cx.dir.join(text.as_ref())),
        _ => None,
    }
}
