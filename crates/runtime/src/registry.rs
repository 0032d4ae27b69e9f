//! The configured runners: one entry per name.
//!
//! Invariant: a plugin belongs to one entry at most, and an entry keeps its plugin unless the configuration
//! says otherwise; only the newest generation of an entry changes it.

use crate::connection::Connection;
use crate::handshake::Offer;
use crate::pins::Pins;
use crate::spec::RunnerSpec;
use crate::state::{Descriptor, RunnerState, Unavailable};
use greenroom_protocol::RunnerId;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

mod entry;
mod tools;

pub(crate) use entry::{Entry, Phase, whole};

use entry::Outlook;

pub(crate) struct Registry {
    entries: Mutex<Entries>,
    changes: watch::Sender<u64>,
    /// Changes when a list of tools has changed.
    tools_changes: watch::Sender<u64>,
}

pub(crate) struct Entries {
    pub(crate) by_name: BTreeMap<String, Entry>,
    pub(crate) pins: Pins,
    /// Kept while a process is down, so that its runners stay known.
    offered: HashMap<RunnerId, Arc<Descriptor>>,
    /// The last version of a list of tools.
    tools_version: u64,
}

impl Registry {
    pub(crate) fn new(pins: Pins) -> Self {
        let (by_name, offered) = (BTreeMap::new(), HashMap::new());
        Self {
            entries: Mutex::new(Entries { by_name, pins, offered, tools_version: 0 }),
            changes: watch::Sender::new(0),
            tools_changes: watch::Sender::new(0),
        }
    }

    /// Changes the entries and wakes every waiter.
    pub(crate) fn change<R>(&self, change: impl FnOnce(&mut Entries) -> R) -> R {
        let mut entries = self.lock();
        let before = entries.tools_versions();
        let result = change(&mut entries);
        // A waiter that sees a runner ready also sees its new tools.
        if entries.tools_versions() != before {
            self.tools_changes.send_modify(|count| *count += 1);
        }
        drop(entries);
        self.changes.send_modify(|count| *count += 1);
        result
    }

    /// Changes one entry, if it is still of this generation.
    pub(crate) fn update(&self, name: &str, generation: u64, update: impl FnOnce(&mut Entry)) {
        self.change(|entries| {
            if let Some(entry) =
                entries.by_name.get_mut(name).filter(|entry| entry.generation == generation)
            {
                update(entry);
            }
        });
    }

    /// Makes a connection the one that gets runs, unless its plugin belongs to another runner.
    pub(crate) fn publish(
        &self,
        generation: u64,
        connection: &Arc<Connection>,
        offer: Offer,
    ) -> Result<(), String> {
        let listeners = self.change(|entries| {
            let plugin = offer.plugin.path();
            let name = &*connection.runner;
            entries.check_identity(name, &plugin)?;
            let entry =
                entries.by_name.get_mut(name).filter(|entry| entry.generation == generation);
            let entry = entry.ok_or("is no longer configured")?;
            entries.pins.remember(name, &plugin);
            for warning in &offer.warnings {
                tracing::warn!(runner = name, "{warning}");
            }
            entry.phase = Phase::Ready;
            entry.connection = Some(connection.clone());
            entry.plugin = Some(plugin);
            entry.version = Some(offer.plugin.version);
            entry.descriptors = offer.descriptors;
            entry.warnings = offer.warnings;
            if let Some(listed) = offer.tools {
                entry.offered.take(name, listed, &mut entries.tools_version);
            }
            entry.last_error = None;
            entry.last_words = None;
            let listeners = Arc::clone(&entry.listeners);
            entries.index();
            Ok::<_, String>(listeners)
        })?;
        listeners.start(connection);
        Ok(())
    }

    pub(crate) fn states(&self) -> Vec<RunnerState> {
        self.lock().by_name.iter().map(|(name, entry)| entry.state(name)).collect()
    }

    pub(crate) fn descriptor(&self, id: &RunnerId) -> Option<Arc<Descriptor>> {
        self.lock().offered.get(id).cloned()
    }

    /// The connection that serves a runner now.
    pub(crate) fn connection(&self, id: &RunnerId) -> Result<Arc<Connection>, Unavailable> {
        let entries = self.lock();
        let entry = entries.offered.get(id).and_then(|found| entries.by_name.get(&*found.runner));
        entry.and_then(Entry::serving).cloned().ok_or_else(|| {
            match entries.outlook(id, Duration::ZERO) {
                Outlook::Pending(message) | Outlook::None(message) => Unavailable::new(message),
                Outlook::Ready(_) => Unavailable::new(format!("`{id}` is not ready")),
            }
        })
    }

    /// Waits for a runner that is starting.
    pub(crate) async fn ready(
        &self,
        id: &RunnerId,
        wait: Duration,
    ) -> Result<Arc<Descriptor>, Unavailable> {
        let mut changes = self.changes.subscribe();
        let deadline = Instant::now() + wait;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let outlook = self.lock().outlook(id, left);
            let message = match outlook {
                Outlook::Ready(descriptor) => return Ok(descriptor),
                Outlook::None(message) => return Err(Unavailable::new(message)),
                Outlook::Pending(message) => message,
            };
            // The sender lives as long as this registry.
            if tokio::time::timeout_at(deadline, changes.changed()).await.is_err() {
                return Err(Unavailable::new(message));
            }
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entries {
    /// A plugin that the configuration pins to one name is taken from any other name that had it.
    pub(crate) fn yield_to_pins<'s>(
        &mut self,
        specs: impl Iterator<Item = &'s RunnerSpec> + Clone,
    ) {
        for spec in specs.clone().filter(|spec| spec.plugin.is_none()) {
            let was = self.pins.get(&spec.name);
            if was.is_some() && specs.clone().any(|other| other.plugin.as_deref() == was) {
                self.pins.forget(&spec.name);
                if let Some(entry) = self.by_name.get_mut(&spec.name) {
                    entry.stop.cancel();
                }
            }
        }
    }

    /// A name keeps its plugin, and no other name can take it; a pin is checked elsewhere.
    fn check_identity(&self, name: &str, plugin: &str) -> Result<(), String> {
        let hint = || format!("if it is, write `plugin = \"{plugin}\"` under `[runners.{name}]`");
        let is_pinned = self.by_name.get(name).is_some_and(|entry| entry.spec.plugin.is_some());
        let was = self.pins.get(name).filter(|was| !is_pinned && *was != plugin);
        if let Some(was) = was {
            return Err(format!("declares itself `{plugin}`, and was `{was}` before: {}", hint()));
        }
        let mut others = self.by_name.iter().filter(|(other, _)| *other != name);
        match others.find(|(_, entry)| entry.plugin.as_deref() == Some(plugin)) {
            Some((owner, _)) => {
                Err(format!("declares itself `{plugin}`, which is runner `{owner}`: {}", hint()))
            }
            None => Ok(()),
        }
    }

    /// Rebuilds the index after a change of entries or descriptors.
    pub(crate) fn index(&mut self) {
        let all = self.by_name.values().flat_map(|entry| &entry.descriptors);
        self.offered = all.map(|found| (found.manifest.id.clone(), found.clone())).collect();
    }

    /// Looks at the runner that offers the id, or did; else at those known to be its plugin; else at those of
    /// which nothing is known yet.
    fn outlook(&self, id: &RunnerId, left: Duration) -> Outlook {
        if let Some(found) = self.offered.get(id)
            && let Some(entry) = self.by_name.get(&*found.runner)
        {
            return match entry.serving() {
                Some(_) => Outlook::Ready(found.clone()),
                None => entry.outlook(&found.runner, id, left),
            };
        }
        let (mut known, mut unknown, mut failed) = (None, Vec::new(), Vec::new());
        for (name, entry) in &self.by_name {
            if !entry.may_offer(id.plugin()) {
                continue;
            }
            match entry.outlook(name, id, left) {
                pending @ Outlook::Pending(_) if entry.is_known() => return pending,
                Outlook::Pending(reason) => unknown.push(reason),
                other if entry.is_known() => known = Some(other),
                Outlook::None(reason) => failed.push(reason),
                Outlook::Ready(_) => {}
            }
        }
        match (known, unknown.as_slice(), failed.as_slice()) {
            (_, [_, ..], _) => Outlook::Pending(format!(
                "no runner offers `{id}` so far, and some are not ready yet: {}",
                unknown.join("; ")
            )),
            (Some(known), [], _) => known,
            (None, [], []) => Outlook::None(format!("no configured runner offers `{id}`")),
            (None, [], _) => {
                Outlook::None(format!("no runner offers `{id}`: {}", failed.join("; ")))
            }
        }
    }
}
