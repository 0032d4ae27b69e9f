//! Appends a runner to the configuration, where a new table is always valid.
//!
//! Invariant: existing bytes are kept, and a configuration that would not load is never written.

use super::inspect::Plugin;
use crate::failure::Failure;
use crate::wiring;
use greenroom_config::{self as config, Config, Launch};
use std::io;
use std::path::Path;

/// The configured runners.
pub(super) struct Runners(Config);

/// Loads the configuration before a runner is added; it must be valid.
pub(super) fn runners(file: &Path) -> Result<Runners, Failure> {
    if !file.exists() {
        return Ok(Runners(Config::default()));
    }
    let loaded = wiring::load_file(file).map_err(|error| {
        let context = format!("`{}` must be valid before a runner is added", file.display());
        Failure::from(anyhow::Error::new(error).context(context))
    })?;
    Ok(Runners(loaded.config))
}

impl Runners {
    pub(super) fn has(&self, name: &str) -> bool {
        self.0.runners.contains_key(name)
    }

    pub(super) fn in_folder(&self, folder: &Path) -> Option<&str> {
        self.find(|runner| match &runner.launch {
            Launch::Process(process) => {
                std::fs::canonicalize(&process.dir).is_ok_and(|dir| dir == folder)
            }
            Launch::Connect { .. } => false,
        })
    }

    pub(super) fn of_plugin(&self, plugin: &str) -> Option<&str> {
        self.find(|runner| runner.plugin.as_deref() == Some(plugin))
    }

    fn find(&self, is: impl Fn(&config::Runner) -> bool) -> Option<&str> {
        let found = self.0.runners.iter().find(|(_, runner)| is(runner));
        found.map(|(name, _)| name.as_str())
    }
}

pub(super) fn add(file: &Path, name: &str, folder: &Path, plugin: &Plugin) -> Result<(), Failure> {
    let text = match std::fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(failed(file, error)),
    };
    let added = format!("{text}{}{}", gap(&text), table(file, name, folder, plugin));
    config::load_text(file, &added, &wiring::known()).map_err(|error| {
        let context = format!("cannot add `[runners.{name}]` to `{}`", file.display());
        Failure::from(anyhow::Error::new(error).context(context))
    })?;
    replace(file, &added)
}

fn table(file: &Path, name: &str, folder: &Path, plugin: &Plugin) -> String {
    let root = file.parent().and_then(|root| std::fs::canonicalize(root).ok());
    let dir = root.as_deref().and_then(|root| folder.strip_prefix(root).ok()).unwrap_or(folder);
    // A JSON string is a valid TOML string.
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let (dir, plugin) = (quoted(&dir.to_string_lossy()), quoted(&plugin.path()));
    // Plugins are written for a host that does not limit their network.
    let network = "network = true                      # or a list: [\"api.example.com:443\"]";
    format!("[runners.{name}]\nwire = \"langbot\"\ndir = {dir}\nplugin = {plugin}\n{network}\n")
}

pub(in crate::commands) fn gap(text: &str) -> &'static str {
    match text {
        "" => "",
        text if text.ends_with("\n\n") => "",
        text if text.ends_with('\n') => "\n",
        _ => "\n\n",
    }
}

/// Replaces the file atomically.
pub(in crate::commands) fn replace(file: &Path, text: &str) -> Result<(), Failure> {
    let part = file.with_extension("toml.part");
    let written = std::fs::write(&part, text).and_then(|()| std::fs::rename(&part, file));
    written.map_err(|error| failed(file, error))
}

fn failed(file: &Path, error: io::Error) -> Failure {
    anyhow::Error::new(error).context(format!("cannot write `{}`", file.display())).into()
}
