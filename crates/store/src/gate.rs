//! Lets the checkpointer pause the writer between two batches.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

#[derive(Default)]
pub(crate) struct Gate {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    is_paused: bool,
    is_writing: bool,
}

/// A batch of the writer; or, for the checkpointer, a pause of the writer.
pub(crate) struct Turn<'a> {
    gate: &'a Gate,
    end: fn(&mut State),
}

impl Gate {
    /// Begins a batch, after a pause if there is one.
    pub(crate) fn write(&self) -> Turn<'_> {
        let mut state = self.wait_while(|state| state.is_paused);
        state.is_writing = true;
        Turn { gate: self, end: |state| state.is_writing = false }
    }

    /// Begins a pause, after the batch that is being written; no other begins before.
    pub(crate) fn pause(&self) -> Turn<'_> {
        self.lock().is_paused = true;
        drop(self.wait_while(|state| state.is_writing));
        Turn { gate: self, end: |state| state.is_paused = false }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait_while(&self, condition: impl Fn(&State) -> bool) -> MutexGuard<'_, State> {
        let waiting = self.changed.wait_while(self.lock(), |state| condition(state));
        waiting.unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        (self.end)(&mut self.gate.lock());
        self.gate.changed.notify_all();
    }
}
