//! The calls of a runner that are in flight on one connection.
//!
//! Invariant: every run has its own share, so that a run with many calls does not keep others from calling;
//! the bytes of all calls are bounded.

use crate::spec::Limits;
use greenroom_protocol::{AgentAPIError, ErrorCode};
use std::collections::HashMap;
use std::time::{Duration, Instant};
use tokio::task::AbortHandle;

/// This many runs with full shares use up the bytes of all calls.
const RUN_PART: usize = 4;

#[derive(Default)]
pub(crate) struct Calls {
    by_id: HashMap<String, Call>,
    /// The share of each run; calls without a run have one of their own.
    of_run: HashMap<Option<String>, Share>,
    bytes: usize,
    serial_last: u64,
    begun_last: Option<Instant>,
}

#[derive(Clone, Copy, Default)]
struct Share {
    calls: usize,
    bytes: usize,
}

struct Call {
    serial: u64,
    task: AbortHandle,
    run: Option<String>,
    bytes: usize,
}

impl Calls {
    /// Why a call of this size is refused, if it is.
    pub(crate) fn refusal(
        &self,
        id: &str,
        run: &Option<String>,
        bytes: usize,
        limits: &Limits,
    ) -> Option<AgentAPIError> {
        let of_run = self.of_run.get(run).copied().unwrap_or_default();
        let run_bytes_max = limits.calls_bytes_max / RUN_PART;
        let (code, message) = if self.by_id.contains_key(id) {
            (ErrorCode::InvalidArgument, "a call with this request id is under way")
        } else if of_run.calls >= limits.calls_per_run_max {
            (ErrorCode::RateLimited, "the run has too many calls at once")
        } else if of_run.bytes.saturating_add(bytes) > run_bytes_max {
            (ErrorCode::RateLimited, "the run's calls under way are too large together")
        } else if self.by_id.len() >= limits.calls_in_flight_max {
            (ErrorCode::RateLimited, "the runner has too many calls at once")
        } else if self.bytes.saturating_add(bytes) > limits.calls_bytes_max {
            (ErrorCode::RateLimited, "the runner's calls under way are too large together")
        } else {
            return None;
        };
        Some(AgentAPIError::new(code, message))
    }

    /// Tells the next call from an earlier one with the same id.
    pub(crate) fn next_serial(&self) -> u64 {
        self.serial_last + 1
    }

    pub(crate) fn insert(
        &mut self,
        id: String,
        run: Option<String>,
        bytes: usize,
        task: AbortHandle,
    ) {
        let share = self.of_run.entry(run.clone()).or_default();
        share.calls += 1;
        share.bytes += bytes;
        self.bytes += bytes;
        self.serial_last += 1;
        self.begun_last = Some(Instant::now());
        self.by_id.insert(id, Call { serial: self.serial_last, task, run, bytes });
    }

    /// The call has its answer; returns whether the runner still waits for it.
    pub(crate) fn finish(&mut self, id: &str, serial: u64) -> bool {
        let is_this = self.by_id.get(id).is_some_and(|call| call.serial == serial);
        is_this && self.remove(id).is_some()
    }

    /// Whether no call is in flight and none has begun within this time.
    pub(crate) fn are_over_for(&self, time: Duration) -> bool {
        self.by_id.is_empty() && self.begun_last.is_none_or(|begun| begun.elapsed() >= time)
    }

    /// Removes a call; the caller answers or aborts it.
    pub(crate) fn remove(&mut self, id: &str) -> Option<AbortHandle> {
        let call = self.by_id.remove(id)?;
        self.bytes -= call.bytes;
        if let Some(share) = self.of_run.get_mut(&call.run) {
            share.calls -= 1;
            share.bytes -= call.bytes;
            if share.calls == 0 {
                self.of_run.remove(&call.run);
            }
        }
        Some(call.task)
    }

    pub(crate) fn into_tasks(self) -> impl Iterator<Item = AbortHandle> {
        self.by_id.into_values().map(|call| call.task)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits() -> Limits {
        let (calls_per_run_max, calls_in_flight_max) = (2, 5);
        Limits { calls_per_run_max, calls_in_flight_max, calls_bytes_max: 40, ..Limits::default() }
    }

    #[tokio::test]
    async fn a_call_that_was_given_up_does_not_answer_the_next_with_its_id() {
        let mut calls = Calls::default();
        let ask = |calls: &mut Calls| {
            let serial = calls.next_serial();
            let task = tokio::task::JoinSet::new().spawn(std::future::pending::<()>());
            calls.insert("7".to_owned(), None, 1, task);
            serial
        };
        let first = ask(&mut calls);
        calls.remove("7");
        let second = ask(&mut calls);
        assert!(!calls.finish("7", first));
        assert!(calls.finish("7", second));
        assert!(!calls.finish("7", second));
    }

    #[tokio::test]
    async fn calls_are_over_when_none_is_under_way_and_none_has_just_begun() {
        let mut calls = Calls::default();
        let (moment, hour) = (Duration::ZERO, Duration::from_secs(3600));
        assert!(calls.are_over_for(hour));
        let task = tokio::task::JoinSet::new().spawn(std::future::pending::<()>());
        calls.insert("1".to_owned(), None, 1, task);
        assert!(!calls.are_over_for(moment));
        calls.remove("1");
        assert!(calls.are_over_for(moment));
        assert!(!calls.are_over_for(hour));
    }

    #[tokio::test]
    async fn a_run_that_asks_for_much_keeps_no_other_from_asking() {
        let mut calls = Calls::default();
        let mut number = 0;
        let mut ask = |calls: &mut Calls, run: Option<&str>, bytes: usize| {
            number += 1;
            let (id, run) = (number.to_string(), run.map(str::to_owned));
            let refused = calls.refusal(&id, &run, bytes, &limits());
            if refused.is_none() {
                let task = tokio::task::JoinSet::new().spawn(std::future::pending::<()>());
                calls.insert(id, run, bytes, task);
            }
            refused.map_or("taken".to_owned(), |error| error.message)
        };
        assert_eq!(ask(&mut calls, Some("greedy"), 1), "taken");
        assert_eq!(ask(&mut calls, Some("greedy"), 1), "taken");
        assert_eq!(ask(&mut calls, Some("greedy"), 1), "the run has too many calls at once");
        assert_eq!(ask(&mut calls, Some("modest"), 1), "taken");
        assert_eq!(ask(&mut calls, None, 1), "taken");
        let large = ask(&mut calls, Some("modest"), 10);
        assert_eq!(large, "the run's calls under way are too large together");
        assert_eq!(ask(&mut calls, Some("modest"), 9), "taken");
        assert_eq!(ask(&mut calls, Some("last"), 0), "the runner has too many calls at once");
        for id in ["1", "2", "3", "4", "5", "6", "7"] {
            calls.remove(id);
        }
        assert_eq!((calls.by_id.len(), calls.of_run.len(), calls.bytes), (0, 0, 0));
        for run in ["a", "b", "c", "d"] {
            assert_eq!(ask(&mut calls, Some(run), 10), "taken");
        }
        let large = ask(&mut calls, Some("e"), 1);
        assert_eq!(large, "the runner's calls under way are too large together");
    }
}
