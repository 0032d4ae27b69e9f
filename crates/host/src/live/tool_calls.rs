//! Calls of tools in one run: whose item the conversation shows.
//!
//! Invariant: a call has one item. Of a call that the host carries out it is the host's, whatever the runner
//! tells of it and when; of a call that the runner carried out itself it is what the runner told first.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

#[derive(Debug, Default)]
pub(crate) struct ToolCalls(Mutex<HashMap<String, Whose>>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Whose {
    /// The runner has told how it ended.
    Runner,
    /// The host is at it.
    UnderWay,
    /// The host has recorded it.
    Host,
}

/// Why a call cannot be carried out under its id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Taken {
    /// A call with this id is under way.
    UnderWay,
    /// The runner has told of it as of one that is over.
    Told,
}

/// A call that the host is at; over when this is dropped.
#[derive(Debug)]
pub(crate) struct Entered {
    calls: Arc<ToolCalls>,
    tool_call_id: String,
    has_item: bool,
}

impl ToolCalls {
    /// The host takes a call on.
    pub(crate) fn enter(self: &Arc<Self>, tool_call_id: &str) -> Result<Entered, Taken> {
        let mut calls = self.lock();
        let before = calls.get(tool_call_id).copied();
        match before {
            Some(Whose::UnderWay) => return Err(Taken::UnderWay),
            Some(Whose::Runner) => return Err(Taken::Told),
            Some(Whose::Host) | None => calls.insert(tool_call_id.to_owned(), Whose::UnderWay),
        };
        Ok(Entered {
            calls: Arc::clone(self),
            tool_call_id: tool_call_id.to_owned(),
            has_item: before.is_some(),
        })
    }

    /// The runner begins a call: what it told of an earlier one with the same id is no longer meant.
    pub(crate) fn begins(&self, tool_call_id: &str) {
        let mut calls = self.lock();
        if calls.get(tool_call_id) == Some(&Whose::Runner) {
            calls.remove(tool_call_id);
        }
    }

    /// The runner tells how a call ended; whether that makes its item.
    pub(crate) fn tells(&self, tool_call_id: &str) -> bool {
        let mut calls = self.lock();
        let first = !calls.contains_key(tool_call_id);
        if first {
            calls.insert(tool_call_id.to_owned(), Whose::Runner);
        }
        first
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Whose>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entered {
    /// The conversation shows the call.
    pub(crate) fn recorded(&mut self) {
        self.has_item = true;
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        let mut calls = self.calls.lock();
        match self.has_item {
            true => calls.insert(self.tool_call_id.clone(), Whose::Host),
            false => calls.remove(&self.tool_call_id),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_of_the_hosts_own_has_one_item_whatever_the_runner_tells() {
        let calls = Arc::new(ToolCalls::default());
        let mut entered = calls.enter("a").unwrap();
        assert_eq!(calls.enter("a").unwrap_err(), Taken::UnderWay);
        assert!(!calls.tells("a"));
        entered.recorded();
        drop(entered);
        assert!(!calls.tells("a"));
        // The same call again: it is answered as before, and stays recorded.
        drop(calls.enter("a").unwrap());
        assert!(!calls.tells("a"));
    }

    #[test]
    fn a_call_that_the_host_did_not_record_is_the_runners_to_tell_once() {
        let calls = Arc::new(ToolCalls::default());
        drop(calls.enter("a").unwrap());
        assert!(calls.tells("a"));
        assert!(!calls.tells("a"));
        assert_eq!(calls.enter("a").unwrap_err(), Taken::Told);
        calls.begins("a");
        assert!(calls.tells("a"));
    }
}
