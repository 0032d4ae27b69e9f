//! A cache of grants, by agent.
//!
//! Invariant: a cached grant is used only for the same settings, manifest and resources, by identity. The cache
//! keeps none of them alive.

use super::Grant;
use crate::resources::Resources;
use crate::settings::{Agent, Settings};
use greenroom_runtime::Descriptor;
use greenroom_store::types::GrantDoc;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// By the agent's name.
#[derive(Default)]
pub(crate) struct GrantCache(Mutex<HashMap<String, Cached>>);

/// The inputs of a grant.
#[derive(Clone, Copy)]
pub(crate) struct Sources<'a> {
    /// The settings that hold the agent.
    pub(crate) settings: &'a Arc<Settings>,
    pub(crate) descriptor: &'a Arc<Descriptor>,
    pub(crate) resources: &'a Arc<Resources>,
}

struct Cached {
    settings: Weak<Settings>,
    descriptor: Weak<Descriptor>,
    resources: Weak<Resources>,
    tool_lists: Vec<u64>,
    grant: Arc<Grant>,
    doc: GrantDoc,
}

impl GrantCache {
    /// The grant of a run that starts now, and the document to store.
    pub(crate) fn of(&self, agent: &Agent, sources: Sources<'_>) -> (Arc<Grant>, GrantDoc) {
        // Read before the names: the next event notices a list that changes in between.
        let tool_lists = sources.resources.tools.lists();
        let mut cache = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(cached) =
            cache.get(&agent.name).filter(|cached| cached.is_of(sources, &tool_lists))
        {
            return (Arc::clone(&cached.grant), cached.doc.clone());
        }
        // Agents of an older configuration may have been removed.
        cache.retain(|_, cached| is_same(&cached.settings, sources.settings));
        let names = sources.resources.names();
        let grant = Arc::new(Grant::build(agent, &sources.descriptor.manifest, &names));
        let doc = grant.to_doc();
        let new = Cached {
            settings: Arc::downgrade(sources.settings),
            descriptor: Arc::downgrade(sources.descriptor),
            resources: Arc::downgrade(sources.resources),
            tool_lists,
            grant: Arc::clone(&grant),
            doc: doc.clone(),
        };
        cache.insert(agent.name.clone(), new);
        (grant, doc)
    }
}

impl Cached {
    fn is_of(&self, sources: Sources<'_>, tool_lists: &[u64]) -> bool {
        is_same(&self.settings, sources.settings)
            && is_same(&self.descriptor, sources.descriptor)
            && is_same(&self.resources, sources.resources)
            && self.tool_lists == tool_lists
    }
}

/// Whether both are the same object: a `Weak` keeps the address from being used again.
pub(crate) fn is_same<T>(remembered: &Weak<T>, this: &Arc<T>) -> bool {
    std::ptr::eq(remembered.as_ptr(), Arc::as_ptr(this))
}
