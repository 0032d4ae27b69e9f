//! Events that were handled, for plugins that listen.
//!
//! Invariant: a plugin is told only of the events of agents that its configuration names.

use crate::registry::Registry;
use crate::wires::Codec;
use greenroom_protocol::NewEvent;
use std::sync::Arc;

/// An event whose run has ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Heard {
    /// The agent that handled it.
    pub agent: String,
    pub event: NewEvent,
    /// The text of the last answer.
    pub answer: Option<String>,
}

impl Registry {
    /// Whether some plugin listens to an agent.
    pub(crate) fn is_heard(&self, agent: &str) -> bool {
        self.lock().by_name.values().any(|entry| entry.spec.listens.contains(agent))
    }

    pub(crate) fn tell(&self, heard: &Arc<Heard>) {
        let entries = self.lock();
        let listening =
            entries.by_name.values().filter(|entry| entry.spec.listens.contains(&heard.agent));
        for connection in listening.filter_map(|entry| entry.serving()) {
            if let Codec::Langbot(session) = &connection.codec
                && session.listens()
            {
                session.tell(connection, heard);
            }
        }
    }
}
