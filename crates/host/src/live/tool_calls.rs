//! Tool calls of one run: whether the host or the runner records a call in the transcript.
//!
//! Invariant: a call has one item. For a call that the host carries out it is the host's, whatever the runner
//! reports; for a call that the runner carries out it is the runner's first report.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

#[derive(Debug, Default)]
pub(crate) struct ToolCalls(Mutex<HashMap<String, Recorder>>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Recorder {
    /// The runner has reported its end.
    Runner,
    /// The host is carrying it out.
    InProgress,
    /// The host has recorded it.
    Host,
}

/// Why a call cannot be carried out under its id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Taken {
    /// The host is carrying out a call with this id.
    InProgress,
    /// The runner has reported the end of a call with this id.
    Reported,
}

/// A call that the host carries out, until this is dropped.
#[derive(Debug)]
pub(crate) struct Entered {
    calls: Arc<ToolCalls>,
    tool_call_id: String,
    has_item: bool,
}

impl ToolCalls {
    /// The host begins a call.
    pub(crate) fn enter(self: &Arc<Self>, tool_call_id: &str) -> Result<Entered, Taken> {
        let mut calls = self.lock();
        let before = calls.get(tool_call_id).copied();
        match before {
            Some(Recorder::InProgress) => return Err(Taken::InProgress),
            Some(Recorder::Runner) => return Err(Taken::Reported),
            Some(Recorder::Host) | None => {
                calls.insert(tool_call_id.to_owned(), Recorder::InProgress)
            }
        };
        Ok(Entered {
            calls: Arc::clone(self),
            tool_call_id: tool_call_id.to_owned(),
            has_item: before.is_some(),
        })
    }

    /// The runner begins a call: its report of an earlier one with the same id no longer counts.
    pub(crate) fn begins(&self, tool_call_id: &str) {
        let mut calls = self.lock();
        if calls.get(tool_call_id) == Some(&Recorder::Runner) {
            calls.remove(tool_call_id);
        }
    }

    /// The runner reports the end of a call; returns whether to record this report.
    pub(crate) fn report(&self, tool_call_id: &str) -> bool {
        let mut calls = self.lock();
        let first = !calls.contains_key(tool_call_id);
        if first {
            calls.insert(tool_call_id.to_owned(), Recorder::Runner);
        }
        first
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Recorder>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entered {
    /// The transcript has an item of the call.
    pub(crate) fn recorded(&mut self) {
        self.has_item = true;
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        let mut calls = self.calls.lock();
        match self.has_item {
            true => calls.insert(self.tool_call_id.clone(), Recorder::Host),
            false => calls.remove(&self.tool_call_id),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_of_the_hosts_own_has_one_item_whatever_the_runner_reports() {
        let calls = Arc::new(ToolCalls::default());
        let mut entered = calls.enter("a").unwrap();
        assert_eq!(calls.enter("a").unwrap_err(), Taken::InProgress);
        assert!(!calls.report("a"));
        entered.recorded();
        drop(entered);
        assert!(!calls.report("a"));
        // The same call again: it is answered as before, and stays recorded.
        drop(calls.enter("a").unwrap());
        assert!(!calls.report("a"));
    }

    #[test]
    fn a_call_that_the_host_did_not_record_is_the_runners_to_report_once() {
        let calls = Arc::new(ToolCalls::default());
        drop(calls.enter("a").unwrap());
        assert!(calls.report("a"));
        assert!(!calls.report("a"));
        assert_eq!(calls.enter("a").unwrap_err(), Taken::Reported);
        calls.begins("a");
        assert!(calls.report("a"));
    }
}
