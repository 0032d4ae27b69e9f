//! Adds a runner at the end of the configuration: a table may stand there whatever is before it.
//!
//! Invariant: every byte that was in the file stays; a file that would not load any more is put back.

use super::inspect::Plugin;
use crate::config;
use crate::failure::Failure;
use std::io;
use std::path::Path;

pub(super) fn add(file: &Path, name: &str, folder: &Path, plugin: &Plugin) -> Result<(), Failure> {
    let before = match std::fs::read_to_string(file) {
        Ok(text) => Some(text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(failed(file, error)),
    };
    let text = before.clone().unwrap_or_default();
    let added = format!("{text}{}{}", gap(&text), table(file, name, folder, plugin));
    replace(file, &added)?;
    let Err(error) = config::load(file) else { return Ok(()) };
    match &before {
        Some(before) => replace(file, before)?,
        None => std::fs::remove_file(file).map_err(|error| failed(file, error))?,
    }
    let error = anyhow::Error::new(error);
    let context = format!("`[runners.{name}]` does not fit into `{}`", file.display());
    Err(Failure::from(error.context(context)).hint("name it otherwise with `--name`"))
}

fn table(file: &Path, name: &str, folder: &Path, plugin: &Plugin) -> String {
    let root = file.parent().and_then(|root| std::fs::canonicalize(root).ok());
    let dir = root.as_deref().and_then(|root| folder.strip_prefix(root).ok()).unwrap_or(folder);
    // JSON writes a string as TOML reads it.
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let (dir, plugin) = (quoted(&dir.to_string_lossy()), quoted(&plugin.path()));
    format!("[runners.{name}]\nwire = \"langbot\"\ndir = {dir}\nplugin = {plugin}\n")
}

fn gap(text: &str) -> &'static str {
    match text {
        "" => "",
        text if text.ends_with("\n\n") => "",
        text if text.ends_with('\n') => "\n",
        _ => "\n\n",
    }
}

/// The file is a whole one at every moment.
fn replace(file: &Path, text: &str) -> Result<(), Failure> {
    let part = file.with_extension("toml.part");
    let written = std::fs::write(&part, text).and_then(|()| std::fs::rename(&part, file));
    written.map_err(|error| failed(file, error))
}

fn failed(file: &Path, error: io::Error) -> Failure {
    anyhow::Error::new(error).context(format!("cannot write `{}`", file.display())).into()
}
