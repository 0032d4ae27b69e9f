//! Calls of MCP clients in progress, so that a notification in another request can cancel one; and the sessions
//! that their clients have ended.
//!
//! Invariant: a call belongs to its run and session: no other one cancels it. An entry lives as long as its call.

use serde_json::Value;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio_util::sync::CancellationToken;

/// Ended sessions that are remembered.
const ENDED_MAX: usize = 1024;

/// Run, session, and the client's id of the request as JSON.
type Key = (String, String, String);

#[derive(Debug, Default)]
pub(crate) struct McpCalls {
    in_progress: Mutex<HashMap<Key, CancellationToken>>,
    /// Run and session.
    ended: Mutex<VecDeque<(String, String)>>,
}

/// A call in progress; dropping it removes its entry.
#[derive(Debug)]
pub(super) struct InProgress {
    calls: Arc<McpCalls>,
    key: Key,
    pub(super) token: CancellationToken,
}

impl Drop for InProgress {
    fn drop(&mut self) {
        self.calls.lock().remove(&self.key);
    }
}

impl McpCalls {
    /// Registers a call; none if one with the same id is in progress.
    pub(super) fn enter(
        self: &Arc<Self>,
        run_id: &str,
        session: &str,
        id: &Value,
    ) -> Option<InProgress> {
        let key = key(run_id, session, id);
        let token = CancellationToken::new();
        let mut calls = self.lock();
        if calls.contains_key(&key) {
            return None;
        }
        calls.insert(key.clone(), token.clone());
        Some(InProgress { calls: Arc::clone(self), key, token })
    }

    pub(super) fn cancel(&self, run_id: &str, session: &str, id: &Value) {
        if let Some(token) = self.lock().get(&key(run_id, session, id)) {
            token.cancel();
        }
    }

    pub(super) fn end_session(&self, run_id: &str, session: &str) {
        let calls = self.lock();
        let of_session = calls.iter().filter(|((run, own, _), _)| run == run_id && own == session);
        of_session.for_each(|(_, token)| token.cancel());
        let mut ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        ended.truncate(ENDED_MAX - 1);
        ended.push_front((run_id.to_owned(), session.to_owned()));
    }

    pub(super) fn has_ended(&self, run_id: &str, session: &str) -> bool {
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        !session.is_empty() && ended.iter().any(|(run, own)| run == run_id && own == session)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, CancellationToken>> {
        self.in_progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn key(run_id: &str, session: &str, id: &Value) -> Key {
    (run_id.to_owned(), session.to_owned(), id.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_call_is_cancelled_by_its_own_session_and_run_only() {
        let calls = Arc::new(McpCalls::default());
        let call = calls.enter("run_1", "a", &json!(7)).unwrap();
        assert!(calls.enter("run_1", "a", &json!(7)).is_none(), "the id is in use");
        let other = calls.enter("run_1", "b", &json!(7)).unwrap();
        for (run, session, id) in
            [("run_2", "a", json!(7)), ("run_1", "c", json!(7)), ("run_1", "a", json!("7"))]
        {
            calls.cancel(run, session, &id);
        }
        assert!(!call.token.is_cancelled() && !other.token.is_cancelled());
        calls.cancel("run_1", "a", &json!(7));
        assert!(call.token.is_cancelled() && !other.token.is_cancelled());
        drop(call);
        assert!(calls.enter("run_1", "a", &json!(7)).is_some(), "its entry is removed");
    }

    #[test]
    fn the_end_of_a_session_cancels_its_calls() {
        let calls = Arc::new(McpCalls::default());
        let mine = calls.enter("run_1", "a", &json!(1)).unwrap();
        let other = calls.enter("run_2", "a", &json!(1)).unwrap();
        calls.end_session("run_1", "a");
        assert!(mine.token.is_cancelled() && !other.token.is_cancelled());
        assert!(calls.has_ended("run_1", "a") && !calls.has_ended("run_2", "a"));
        for number in 0..ENDED_MAX {
            calls.end_session("run_3", &number.to_string());
        }
        assert!(!calls.has_ended("run_1", "a"), "only so many are remembered");
    }
}
