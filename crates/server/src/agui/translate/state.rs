//! The client's state: what the host stores for a runner at `/SCOPE/KEY`, and changes in the client's own shape.
//!
//! Invariant: a patch applies to the state that the client has: its parents exist, and so does what it removes. A stream
//! that repeats a run begins with the state that the run began with.

use super::patch;
use crate::agui::event::Event;
use greenroom_protocol::payload::StateUpdated;
use serde_json::{Value, json};

#[derive(Debug)]
pub(super) struct ClientState {
    /// With which the run began.
    first: Value,
    known: Value,
    changed: bool,
    /// The client may have changes of this run already: they are taken back before the first one.
    restates: bool,
}

impl ClientState {
    pub(super) fn new(sent: Value) -> Self {
        Self { first: sent.clone(), known: sent, changed: false, restates: false }
    }

    /// The run began with this state, and is repeated from there.
    pub(super) fn repeat_from(&mut self, first: Value) {
        self.restates = true;
        self.known = first.clone();
        self.first = first;
    }

    /// The run began with this state; an earlier stream brought the changes before this one.
    pub(super) fn continue_from(&mut self, first: Value) {
        self.known = first.clone();
        self.first = first;
    }

    pub(super) fn update(&mut self, update: &StateUpdated, out: &mut Vec<Event>) {
        self.restate(out);
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

    /// The runner replaces the client's state.
    pub(super) fn replace(&mut self, state: Value, out: &mut Vec<Event>) {
        self.restates = false;
        self.changed = true;
        self.known = state.clone();
        out.push(Event::StateSnapshot { snapshot: state });
    }

    /// The runner patches the client's state; a patch that does not apply is dropped.
    pub(super) fn patch(&mut self, operations: Vec<Value>, out: &mut Vec<Event>) {
        let Some(patched) = patch::apply(&self.known, &operations) else { return };
        self.restate(out);
        self.changed = true;
        self.known = patched;
        if !operations.is_empty() {
            out.push(Event::StateDelta { delta: operations });
        }
    }

    /// A new attempt begins: the changes of the earlier one are taken back.
    pub(super) fn restart(&mut self, out: &mut Vec<Event>) {
        if std::mem::take(&mut self.changed) {
            self.known = self.first.clone();
            out.push(Event::StateSnapshot { snapshot: self.first.clone() });
        }
    }

    /// The whole state, if this run changed it.
    pub(super) fn snapshot(&self) -> Option<Event> {
        self.changed.then(|| Event::StateSnapshot { snapshot: self.known.clone() })
    }

    fn restate(&mut self, out: &mut Vec<Event>) {
        if std::mem::take(&mut self.restates) {
            out.push(Event::StateSnapshot { snapshot: self.known.clone() });
        }
    }
}
