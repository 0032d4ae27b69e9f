//! A LangBot plugin as a runner, detected by its folder.
//!
//! Invariant: without `wire`, only a folder with a LangBot manifest counts as a plugin.

use super::Process;
use crate::reader::{Reader, Value};
use std::path::{Path, PathBuf};

/// The manifest of a plugin.
const MANIFEST: &str = "manifest.yaml";
/// Largest manifest. The plugin may write this file.
const MANIFEST_BYTES_MAX: u64 = 1 << 20;
/// The Python of a plugin in its folder, in the order of preference.
const INTERPRETERS: [&str; 2] = [".venv/bin/python", "venv/bin/python"];

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
