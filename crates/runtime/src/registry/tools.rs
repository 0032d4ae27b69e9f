//! Tools of the configured runners.
//!
//! Invariant: a version identifies one list of one runner and is never used for another.

use super::{Entries, Entry, Phase, Registry};
use crate::connection::Connection;
use crate::handshake::Listed;
use crate::tools::{PluginToolError, PluginTools};
use greenroom_protocol::wire::PluginTool;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// What an entry offers.
#[derive(Clone, Default)]
pub(super) struct Offered {
    pub(super) tools: Arc<[PluginTool]>,
    pub(super) version: u64,
    pub(super) warnings: Vec<String>,
    /// It has answered, even if it offers no tools.
    pub(super) is_listed: bool,
}

impl Offered {
    /// Replaces the list; `last` is the last version in use.
    pub(super) fn take(&mut self, runner: &str, listed: Listed, last: &mut u64) {
        for warning in &listed.warnings {
            tracing::warn!(runner, "{warning}");
        }
        self.warnings = listed.warnings;
        self.is_listed = true;
        if *self.tools != *listed.tools {
            *last += 1;
            self.version = *last;
            self.tools = listed.tools.into();
        }
    }
}

/// What to expect of a runner's tools at one moment.
enum Outlook {
    Serving(Arc<Connection>),
    /// They may become ready soon.
    Pending(String),
    None(String),
}

impl Registry {
    /// Every runner that offers tools, by name.
    pub(crate) fn tools(&self) -> Vec<PluginTools> {
        let entries = self.lock();
        let offering = entries.by_name.iter().filter(|(_, entry)| !entry.offered.tools.is_empty());
        let tools = offering.map(|(name, entry)| PluginTools {
            runner: name.clone(),
            tools: entry.offered.tools.clone(),
            version: entry.offered.version,
        });
        tools.collect()
    }

    pub(crate) fn tools_changes(&self) -> watch::Receiver<u64> {
        self.tools_changes.subscribe()
    }

    /// Accepts a list that arrived after its connection was published.
    pub(crate) fn take_late_tools(
        &self,
        generation: u64,
        connection: &Arc<Connection>,
        listed: Listed,
    ) {
        self.change(|entries| {
            let entry = entries.by_name.get_mut(&*connection.runner);
            let entry = entry.filter(|entry| entry.generation == generation);
            let is_current = |entry: &Entry| {
                entry.connection.as_ref().is_some_and(|current| current.id == connection.id)
            };
            if let Some(entry) = entry.filter(|entry| is_current(entry)) {
                entry.offered.take(&connection.runner, listed, &mut entries.tools_version);
            }
        });
    }

    /// The connection that serves a tool now, or soon.
    pub(crate) async fn tool_connection(
        &self,
        runner: &str,
        tool: &str,
        wait: Duration,
    ) -> Result<Arc<Connection>, PluginToolError> {
        let mut changes = self.changes.subscribe();
        let deadline = Instant::now() + wait;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let outlook = match self.lock().by_name.get(runner) {
                Some(entry) => entry.tool_outlook(runner, tool, left),
                None => Outlook::None(format!("there is no runner `{runner}`")),
            };
            let message = match outlook {
                Outlook::Serving(connection) => return Ok(connection),
                Outlook::None(message) => return Err(PluginToolError::Unavailable { message }),
                Outlook::Pending(message) => message,
            };
            // The sender lives as long as this registry.
            if tokio::time::timeout_at(deadline, changes.changed()).await.is_err() {
                return Err(PluginToolError::Unavailable { message });
            }
        }
    }
}

impl Entries {
    /// The version of every list.
    pub(super) fn tools_versions(&self) -> Vec<u64> {
        let lists = self.by_name.values().map(|entry| &entry.offered);
        lists.filter(|offered| !offered.tools.is_empty()).map(|offered| offered.version).collect()
    }
}

impl Entry {
    fn tool_outlook(&self, runner: &str, tool: &str, left: Duration) -> Outlook {
        if !self.offered.tools.iter().any(|offered| offered.name == tool) {
            return Outlook::None(format!("runner `{runner}` does not offer the tool `{tool}`"));
        }
        if let Some(connection) = self.serving() {
            return Outlook::Serving(connection.clone());
        }
        let reason = self
            .last_error
            .clone()
            .unwrap_or_else(|| format!("runner `{runner}` is not ready yet"));
        match self.phase {
            Phase::BackingOff { until } if until > Instant::now() + left => Outlook::None(reason),
            Phase::Starting | Phase::BackingOff { .. } => Outlook::Pending(reason),
            Phase::Ready => Outlook::Pending(format!("runner `{runner}` is being replaced")),
            Phase::Disconnected => Outlook::None(format!("runner `{runner}` is not connected")),
            Phase::Draining | Phase::Stopped => {
                Outlook::None(format!("runner `{runner}` is stopping"))
            }
        }
    }
}
