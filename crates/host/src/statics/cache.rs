//! A cache of the references of static parts, by agent.
//!
//! Invariant: cached references are used only for the same grant, resources and lists of tools, by identity. The cache
//! keeps none of them alive.

use super::references;
use crate::grant::{Grant, is_same};
use crate::resources::Resources;
use greenroom_protocol::manifest::StaticRefs;
use greenroom_protocol::{AgentResources, StaticContextRef};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// By the agent's name.
#[derive(Default)]
pub(crate) struct ReferenceCache(Mutex<HashMap<String, Cached>>);

/// What the references of a run depend on.
pub(crate) struct Sources<'a> {
    pub(crate) grant: &'a Arc<Grant>,
    pub(crate) resources: &'a Arc<Resources>,
    /// Read before `granted`.
    pub(crate) tool_lists: Vec<u64>,
    /// What the grant takes from the resources.
    pub(crate) granted: &'a AgentResources,
    pub(crate) wanted: StaticRefs,
}

struct Cached {
    grant: Weak<Grant>,
    resources: Weak<Resources>,
    tool_lists: Vec<u64>,
    wanted: StaticRefs,
    references: BTreeMap<String, StaticContextRef>,
}

impl ReferenceCache {
    pub(crate) fn of(
        &self,
        agent: &str,
        sources: Sources<'_>,
    ) -> BTreeMap<String, StaticContextRef> {
        let mut cache = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(cached) = cache.get(agent).filter(|cached| cached.is_of(&sources)) {
            return cached.references.clone();
        }
        let Sources { grant, resources, tool_lists, granted, wanted } = sources;
        let references = references(grant, granted, wanted);
        // Agents of an older configuration may have been removed.
        cache.retain(|_, cached| cached.grant.strong_count() > 0);
        let new = Cached {
            grant: Arc::downgrade(grant),
            resources: Arc::downgrade(resources),
            tool_lists,
            wanted,
            references: references.clone(),
        };
        cache.insert(agent.to_owned(), new);
        references
    }
}

impl Cached {
    fn is_of(&self, sources: &Sources<'_>) -> bool {
        is_same(&self.grant, sources.grant)
            && is_same(&self.resources, sources.resources)
            && self.tool_lists == sources.tool_lists
            && self.wanted == sources.wanted
    }
}
