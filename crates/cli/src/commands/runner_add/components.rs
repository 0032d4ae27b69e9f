//! The kinds of components that a plugin has, and what the host makes of them.
//!
//! Invariant: read from its files, before anything is installed.

use crate::failure::{Exit, Failure};
use crate::{output, plugin_manifest};
use std::collections::BTreeSet;
use std::path::Path;

/// Kinds that the host supports.
const SUPPORTED: [&str; 5] = ["Runner", "AgentRunner", "Tool", "Command", "EventListener"];

/// The kinds of a plugin that the host supports.
pub(super) struct Kinds(BTreeSet<String>);

/// Names the kinds that the host does not support; a plugin of such kinds alone is refused. What cannot be read
/// here is reported where the plugin is inspected.
pub(super) fn check(folder: &Path) -> Result<Kinds, Failure> {
    let components = plugin_manifest::read(folder).map(|manifest| manifest.components);
    let kinds = components.unwrap_or_default().into_iter().map(|component| component.kind);
    let (supported, other): (BTreeSet<String>, BTreeSet<String>) =
        kinds.partition(|kind| SUPPORTED.contains(&kind.as_str()));
    if other.is_empty() {
        return Ok(Kinds(supported));
    }
    let other: Vec<String> = other.iter().map(|kind| format!("`{kind}`")).collect();
    let other = other.join(", ");
    if supported.is_empty() {
        let message = format!("this host cannot use `{}`: it has only {other}", folder.display());
        return Err(Failure::new(message)
            .exit(Exit::Usage)
            .hint(format!("supported are components of the kinds {}", SUPPORTED.join(", "))));
    }
    output::note(&format!("note: its components of the kinds {other} are not used by this host"));
    Ok(Kinds(supported))
}

impl Kinds {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How to use components that are not runners.
    pub(super) fn note(&self, name: &str, plugin: &str) {
        let has = |kind: &str| self.0.contains(kind);
        if has("Tool") {
            output::note(&format!(
                "note: its tools are `{name}.TOOL`; grant them with `tools = [\"{name}.*\"]`"
            ));
        }
        if has("Command") {
            output::note(&format!(
                "note: its commands are the runner `plugin:{plugin}/commands`, for an agent with \
                 `commands = [\"NAME\"]`"
            ));
        }
        if has("EventListener") {
            output::note(&format!(
                "note: its listeners get the events of the agents that `listens = [\"AGENT\"]` in \
                 `[runners.{name}]` names"
            ));
        }
    }
}
