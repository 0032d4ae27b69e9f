//! One configured name: its process, and what is known of it.

use super::tools;
use crate::connection::Connection;
use crate::listening::ListenerQueue;
use crate::spec::RunnerSpec;
use crate::state::{Descriptor, RunnerState, RunnerStatus};
use greenroom_protocol::RunnerId;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub(crate) struct Entry {
    pub(crate) spec: RunnerSpec,
    /// Other runners' folders that this one's sandbox must hide.
    pub(crate) hidden: Vec<PathBuf>,
    pub(crate) generation: u64,
    pub(crate) stop: CancellationToken,
    pub(crate) changed: Arc<Notify>,
    pub(crate) phase: Phase,
    pub(crate) connection: Option<Arc<Connection>>,
    pub(crate) pid: Option<u32>,
    pub(crate) restarts: u64,
    /// The last failure, for everyone.
    pub(crate) last_error: Option<String>,
    pub(crate) last_failure: Option<(SystemTime, String)>,
    /// The last words of the process on stderr, for operators only.
    pub(crate) last_words: Option<String>,
    pub(crate) isolation: Option<String>,
    pub(crate) start_warnings: Vec<String>,
    pub(super) plugin: Option<String>,
    pub(super) version: Option<String>,
    pub(super) descriptors: Vec<Arc<Descriptor>>,
    pub(super) warnings: Vec<String>,
    pub(super) offered: tools::Offered,
    /// Events for the listeners of the plugin.
    pub(crate) listeners: Arc<ListenerQueue>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    Starting,
    Ready,
    BackingOff { until: Instant },
    Draining,
    Stopped,
    Disconnected,
}

/// What to expect of a runner id at one moment.
pub(super) enum Outlook {
    Ready(Arc<Descriptor>),
    /// It may become ready within the time left.
    Pending(String),
    None(String),
}

/// An error with the last words, for operators.
pub(crate) fn whole(error: &str, last_words: &Option<String>) -> String {
    last_words.as_ref().map_or_else(|| error.to_owned(), |words| format!("{error}: {words}"))
}

impl Entry {
    pub(crate) fn new(spec: RunnerSpec, hidden: Vec<PathBuf>, generation: u64) -> Self {
        let phase = if spec.command.is_empty() { Phase::Disconnected } else { Phase::Starting };
        Self {
            spec,
            hidden,
            generation,
            stop: CancellationToken::new(),
            changed: Arc::default(),
            phase,
            connection: None,
            pid: None,
            restarts: 0,
            last_error: None,
            last_failure: None,
            last_words: None,
            isolation: None,
            start_warnings: Vec::new(),
            plugin: None,
            version: None,
            descriptors: Vec::new(),
            warnings: Vec::new(),
            offered: tools::Offered::default(),
            listeners: Arc::default(),
        }
    }

    /// Until its process declares itself, an entry has the plugin that the configuration names or that it had
    /// before; a changed runner keeps its offers, its count of restarts and what waits for its listeners.
    pub(crate) fn expect(&mut self, remembered: Option<&str>, before: Option<&Entry>) {
        self.plugin = self.spec.plugin.clone().or_else(|| remembered.map(ToOwned::to_owned));
        if let Some(before) = before.filter(|before| before.plugin == self.plugin) {
            self.descriptors.clone_from(&before.descriptors);
            self.offered.clone_from(&before.offered);
            self.restarts = before.restarts;
            self.last_failure.clone_from(&before.last_failure);
            self.listeners.clone_from(&before.listeners);
            self.listeners.keep(&self.spec.listens);
        }
    }

    pub(super) fn state(&self, name: &str) -> RunnerState {
        RunnerState {
            name: name.to_owned(),
            status: match self.phase {
                Phase::Starting => RunnerStatus::Starting,
                Phase::Ready if self.serving().is_none() => RunnerStatus::Draining,
                Phase::Ready => RunnerStatus::Ready,
                Phase::BackingOff { until } => RunnerStatus::BackingOff {
                    retry_in_ms: u64::try_from(
                        until.saturating_duration_since(Instant::now()).as_millis(),
                    )
                    .unwrap_or(u64::MAX),
                },
                Phase::Draining => RunnerStatus::Draining,
                Phase::Stopped => RunnerStatus::Stopped,
                Phase::Disconnected => RunnerStatus::Disconnected,
            },
            plugin: self.plugin.clone(),
            version: self.version.clone(),
            pid: self.pid,
            restarts: self.restarts,
            last_error: self.last_error.as_ref().map(|error| whole(error, &self.last_words)),
            last_failure: self.last_failure.clone(),
            runs_in_flight: self.connection.as_ref().map_or(0, |c| c.runs_in_flight()),
            isolation: self.isolation.clone(),
            descriptors: self.descriptors.clone(),
            warnings: [&self.start_warnings, &self.warnings, &self.offered.warnings]
                .into_iter()
                .flatten()
                .cloned()
                .collect(),
            tools_listed: self.offered.is_listed,
        }
    }

    /// Accepts changed files, if nothing else has changed and a process serves that can be replaced.
    pub(crate) fn takes_files(&mut self, spec: &RunnerSpec, hidden: &[PathBuf]) -> bool {
        let (changed_at, absent_paths) = (spec.changed_at, spec.absent_paths.clone());
        let with_files = RunnerSpec { changed_at, absent_paths, ..self.spec.clone() };
        let takes = with_files == *spec
            && self.hidden == hidden
            && !self.stop.is_cancelled()
            && !self.spec.command.is_empty()
            && self.phase == Phase::Ready;
        if takes {
            self.spec = with_files;
            self.changed.notify_one();
        }
        takes
    }

    /// The connection that gets runs now.
    pub(crate) fn serving(&self) -> Option<&Arc<Connection>> {
        self.connection.as_ref().filter(|connection| connection.is_serving())
    }

    /// Whether the plugin is, or may turn out to be, this entry's.
    pub(super) fn may_offer(&self, plugin: &str) -> bool {
        self.plugin.as_ref().is_none_or(|own| own == plugin)
    }

    /// Whether the plugin of this entry is known.
    pub(super) fn is_known(&self) -> bool {
        self.plugin.is_some()
    }

    pub(super) fn outlook(&self, name: &str, id: &RunnerId, left: Duration) -> Outlook {
        let reason =
            self.last_error.clone().unwrap_or_else(|| format!("runner `{name}` is not ready yet"));
        match self.phase {
            Phase::Starting => Outlook::Pending(reason),
            Phase::Disconnected => Outlook::Pending(format!("runner `{name}` is not connected")),
            Phase::BackingOff { until } => {
                if until > Instant::now() + left {
                    Outlook::None(reason)
                } else {
                    Outlook::Pending(reason)
                }
            }
            Phase::Ready if self.serving().is_none() => {
                Outlook::Pending(format!("runner `{name}` is being replaced"))
            }
            Phase::Ready => match self.warnings.first() {
                Some(warning) => {
                    Outlook::None(format!("runner `{name}` does not offer `{id}`: {warning}"))
                }
                None => Outlook::None(format!("runner `{name}` does not offer `{id}`")),
            },
            Phase::Draining | Phase::Stopped => {
                Outlook::None(format!("runner `{name}` is stopping"))
            }
        }
    }
}
