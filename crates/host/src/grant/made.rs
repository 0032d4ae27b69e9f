//! Grants as they were made for earlier events of the same agents.
//!
//! Invariant: a grant is given out again only for the very settings, manifest and resources that it was made
//! of. None of them is kept alive here.

use super::Grant;
use crate::resources::Resources;
use crate::settings::{Agent, Settings};
use greenroom_runtime::Descriptor;
use greenroom_store::types::GrantDoc;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// By the agent's name.
#[derive(Default)]
pub(crate) struct MadeGrants(Mutex<HashMap<String, Made>>);

/// What a grant is made of.
#[derive(Clone, Copy)]
pub(crate) struct Sources<'a> {
    /// Those that the agent is one of.
    pub(crate) settings: &'a Arc<Settings>,
    pub(crate) descriptor: &'a Arc<Descriptor>,
    pub(crate) resources: &'a Arc<Resources>,
}

struct Made {
    settings: Weak<Settings>,
    descriptor: Weak<Descriptor>,
    resources: Weak<Resources>,
    tool_lists: Vec<u64>,
    grant: Arc<Grant>,
    doc: GrantDoc,
}

impl MadeGrants {
    /// The grant of a run that begins now, and the document it is stored as.
    pub(crate) fn of(&self, agent: &Agent, sources: Sources<'_>) -> (Arc<Grant>, GrantDoc) {
        // Read before the names are: a list that changes in between is noticed by the next event.
        let tool_lists = sources.resources.tools.lists();
        let mut made = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(made) = made.get(&agent.name).filter(|made| made.is_of(sources, &tool_lists)) {
            return (Arc::clone(&made.grant), made.doc.clone());
        }
        // Agents of an older configuration may be gone.
        made.retain(|_, made| is(&made.settings, sources.settings));
        let names = sources.resources.names();
        let grant = Arc::new(Grant::build(agent, &sources.descriptor.manifest, &names));
        let doc = grant.to_doc();
        let new = Made {
            settings: Arc::downgrade(sources.settings),
            descriptor: Arc::downgrade(sources.descriptor),
            resources: Arc::downgrade(sources.resources),
            tool_lists,
            grant: Arc::clone(&grant),
            doc: doc.clone(),
        };
        made.insert(agent.name.clone(), new);
        (grant, doc)
    }
}

impl Made {
    fn is_of(&self, sources: Sources<'_>, tool_lists: &[u64]) -> bool {
        is(&self.settings, sources.settings)
            && is(&self.descriptor, sources.descriptor)
            && is(&self.resources, sources.resources)
            && self.tool_lists == tool_lists
    }
}

/// Whether it is this very one; what is only remembered holds its address, so no other can have it.
fn is<T>(remembered: &Weak<T>, this: &Arc<T>) -> bool {
    std::ptr::eq(remembered.as_ptr(), Arc::as_ptr(this))
}
