//! State that the host stores for a runner, as part of the client's state: `/SCOPE/KEY`.
//!
//! Invariant: a patch applies to the state that the client has: its parents exist, and so does what it removes.

use crate::agui::event::Event;
use greenroom_protocol::payload::StateUpdated;
use serde_json::{Value, json};

#[derive(Debug)]
pub(super) struct ClientState {
    known: Value,
    changed: bool,
}

impl ClientState {
    pub(super) fn new(sent: Value) -> Self {
        Self { known: sent, changed: false }
    }

    pub(super) fn update(&mut self, update: &StateUpdated, out: &mut Vec<Event>) {
        let scope = update.scope.as_str();
        let is_new = !self.known.is_object();
        if is_new {
            self.known = json!({});
        }
        let mut delta = Vec::new();
        if !self.known[scope].is_object() {
            delta.push(json!({"op": "add", "path": format!("/{scope}"), "value": {}}));
            self.known[scope] = json!({});
        }
        let path = format!("/{scope}/{}", update.key.replace('~', "~0").replace('/', "~1"));
        let Some(fields) = self.known[scope].as_object_mut() else { return };
        if !update.value.is_null() {
            delta.push(json!({"op": "add", "path": path, "value": update.value}));
            fields.insert(update.key.clone(), update.value.clone());
        } else if fields.remove(&update.key).is_some() {
            delta.push(json!({"op": "remove", "path": path}));
        }
        self.changed = true;
        if is_new {
            out.push(Event::StateSnapshot { snapshot: self.known.clone() });
        } else if !delta.is_empty() {
            out.push(Event::StateDelta { delta });
        }
    }

    /// The whole state, if this run changed it.
    pub(super) fn snapshot(&self) -> Option<Event> {
        self.changed.then(|| Event::StateSnapshot { snapshot: self.known.clone() })
    }
}
