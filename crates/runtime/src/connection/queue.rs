//! Runs that wait until the other side has room for them.
//!
//! Invariant: a run is handed over in the order in which it came, and no more are on the other side than it
//! takes at once.

use super::{Connection, Waiting};
use crate::outbox::NotSent;
use crate::run::{Run, RunEnd};
use bytes::Bytes;
use greenroom_protocol::RunnerId;
use serde_json::value::RawValue;
use std::collections::VecDeque;
use std::sync::Arc;

#[derive(Debug, Default)]
pub(super) struct Queue {
    frames: VecDeque<(i64, Bytes)>,
    bytes: usize,
    /// How many runs the other side has.
    handed_over: usize,
}

impl Queue {
    /// A run is over on the other side: the number and the frame of the one that takes its place.
    pub(super) fn next(&mut self) -> Option<(i64, Bytes)> {
        match self.frames.pop_front() {
            Some((number, frame)) => {
                self.bytes -= frame.len();
                Some((number, frame))
            }
            None => {
                self.handed_over = self.handed_over.saturating_sub(1);
                None
            }
        }
    }

    /// Takes a run out that was not handed over; whether there was one.
    fn withdraw(&mut self, number: i64) -> bool {
        let found = self.frames.iter().position(|(waiting, _)| *waiting == number);
        let frame = found.and_then(|at| self.frames.remove(at));
        frame.map(|(_, frame)| self.bytes -= frame.len()).is_some()
    }
}

impl Connection {
    /// Writes the request of a run, now or as soon as the other side has room.
    pub(super) fn hand_over(&self, number: i64, frame: Bytes) -> Result<(), NotSent> {
        let mut state = self.lock();
        let queue = &mut state.queue;
        if queue.handed_over < self.codec.window() {
            queue.handed_over += 1;
            drop(state);
            return self.outbox.push_marked(number, frame);
        }
        if queue.bytes + frame.len() > self.limits.queue_bytes_max {
            return Err(NotSent::Full);
        }
        queue.bytes += frame.len();
        queue.frames.push_back((number, frame));
        Ok(())
    }

    /// Ends a run that the other side has not heard of; whether it was one.
    pub(super) fn withdraw(&self, number: i64) -> bool {
        let mut state = self.lock();
        let withdrawn = state.queue.withdraw(number);
        if withdrawn && let Some(Waiting::Run(id)) = state.requests.remove(&number) {
            self.end_run(state, &id, Ok(RawValue::NULL));
        }
        withdrawn
    }

    /// Takes the runs back that the other side has not heard of and will not hear of: nobody else may have them
    /// while it could still read them.
    pub(crate) fn take_back(&self) {
        let unread = self.outbox.take_back();
        let mut state = self.lock();
        let waiting = std::mem::take(&mut state.queue.frames);
        state.queue.bytes = 0;
        for number in unread.into_iter().chain(waiting.into_iter().map(|(number, _)| number)) {
            let Some(Waiting::Run(id)) = state.requests.remove(&number) else { continue };
            let Some(entry) = state.runs.remove(&id) else { continue };
            if !entry.fenced {
                self.live.send_modify(|live| *live -= 1);
            }
            // There are ways to look at a pipe without reading it.
            entry.run.end(match entry.run.count() {
                0 => RunEnd::Unheard,
                _ => RunEnd::Crashed { message: self.says(super::REPLACED) },
            });
        }
    }

    /// The number of a run that is under way here, and by which runner.
    pub(super) fn number_of(&self, run: &Arc<Run>) -> Option<(i64, String)> {
        let state = self.lock();
        let entry = state.runs.get(&run.id).filter(|entry| Arc::ptr_eq(&entry.run, run))?;
        Some((entry.number, entry.runner_id.runner().to_owned()))
    }
}

/// What the results to one request of ours are to us.
pub(crate) enum Streamed {
    To(Arc<Run>),
    /// Of a run that the host has let go of.
    Late,
    /// It is no run.
    None,
}

impl Connection {
    /// Whose results come in answer to this request.
    pub(crate) fn streamed(&self, number: i64) -> Streamed {
        let state = self.lock();
        let Some(Waiting::Run(id)) = state.requests.get(&number) else { return Streamed::None };
        match state.runs.get(id) {
            Some(entry) if !entry.fenced => Streamed::To(entry.run.clone()),
            _ => Streamed::Late,
        }
    }

    /// Which runner a run is by.
    pub(crate) fn runner_of(&self, run_id: &str) -> Option<RunnerId> {
        self.lock().runs.get(run_id).map(|entry| entry.runner_id.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(waiting: &[i64], handed_over: usize) -> Queue {
        let frames = waiting.iter().map(|number| (*number, Bytes::from_static(b"run\n")));
        Queue { frames: frames.collect(), bytes: 4 * waiting.len(), handed_over }
    }

    #[test]
    fn runs_take_the_places_of_others_in_their_order() {
        let mut queue = queue(&[7, 8, 9], 2);
        assert!(queue.withdraw(8));
        assert!(!queue.withdraw(8));
        assert!(queue.next().is_some());
        assert_eq!(queue.frames.front().map(|(number, _)| *number), Some(9));
        assert!(queue.next().is_some());
        assert_eq!((queue.handed_over, queue.bytes), (2, 0));
        assert!(queue.next().is_none());
        assert_eq!(queue.handed_over, 1);
    }
}
