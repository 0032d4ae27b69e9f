//! Gives runs to a process, and takes unread ones back.
//!
//! Invariant: a run is registered exactly while its request is queued, sent or running, and both change under
//! one lock. No more runs and bytes are sent than the other side takes; further runs wait in order, except
//! that a run which arrives just as there is room may pass them. The number of waiting runs is not bounded
//! here: each is a run that the host has accepted.

use super::{Connection, Entry, REPLACED, State, Waiting};
use crate::outbox::NotSent;
use crate::run::{Run, RunEnd, RunHandle};
use crate::state::Unavailable;
use greenroom_protocol::{AgentRunRequest, RunnerId};
use std::sync::Arc;
use std::time::Instant;

/// Why a run was not started.
enum NotStarted {
    /// The process has as many runs as it takes at once.
    NoRoom,
    /// Too many bytes wait to be read by the process.
    NoSpace,
    Never(Unavailable),
}

impl Connection {
    /// Starts a run as soon as the process has room for it.
    pub(crate) async fn start_run(
        self: &Arc<Self>,
        request: &AgentRunRequest,
    ) -> Result<RunHandle, Unavailable> {
        match self.try_start(request) {
            Ok(run) => return Ok(run),
            Err(NotStarted::Never(error)) => return Err(error),
            Err(_) => {}
        }
        let _turn = self.turn.lock().await;
        loop {
            let freed = self.freed.notified();
            tokio::pin!(freed);
            freed.as_mut().enable();
            let not_started = match self.try_start(request) {
                Ok(run) => return Ok(run),
                Err(not_started) => not_started,
            };
            match not_started {
                NotStarted::Never(error) => return Err(error),
                NotStarted::NoRoom => tokio::select! {
                    () = self.not_serving() => {}
                    () = freed => {}
                },
                NotStarted::NoSpace => tokio::select! {
                    () = self.not_serving() => {}
                    () = self.outbox.room_for_items() => {}
                },
            }
        }
    }

    /// Registers the run and writes its request, both or neither.
    fn try_start(self: &Arc<Self>, request: &AgentRunRequest) -> Result<RunHandle, NotStarted> {
        let never = |message| Err(NotStarted::Never(Unavailable::new(message)));
        let number = {
            let mut state = self.lock();
            if let Some(reason) = self.reason() {
                return never(self.says(&reason));
            }
            if self.is_full(&state) {
                return Err(NotStarted::NoRoom);
            }
            state.next_number()
        };
        let frame = self.codec.run(number, request);
        let id = request.context.run_id.clone();
        let mut state = self.lock();
        if let Some(reason) = self.reason() {
            return never(self.says(&reason));
        }
        if self.is_full(&state) {
            return Err(NotStarted::NoRoom);
        }
        if state.runs.contains_key(&id) {
            return never(format!("run `{id}` is already under way"));
        }
        match self.outbox.push_marked(number, frame) {
            Ok(()) => {}
            Err(NotSent::Full) => return Err(NotStarted::NoSpace),
            Err(error @ NotSent::Closed) => {
                self.input_is_closed();
                return never(self.says(&format!("takes no runs: {error}")));
            }
        }
        let run = Arc::new(Run::new(id.clone(), self.buffered.clone()));
        self.codec.remember(&run.wire, request);
        let (begun, runner_id) = (Instant::now(), request.runner_id.clone());
        state.requests.insert(number, Waiting::Run(id.clone()));
        state.runs.insert(id, Entry { run: run.clone(), number, runner_id, fenced: false, begun });
        self.live.send_modify(|live| *live += 1);
        Ok(RunHandle::new(run, self.clone()))
    }

    fn is_full(&self, state: &State) -> bool {
        state.runs.len() >= self.codec.runs_max().min(self.limits.configured.runs_open)
    }

    /// Takes back every run that the process has not read: each can start on another process.
    pub(crate) fn take_back(&self) {
        self.take_all_back(&mut self.lock());
    }

    pub(super) fn take_all_back(&self, state: &mut State) {
        for number in self.outbox.take_back(None) {
            self.forget_unread(state, number);
        }
    }

    /// Takes back one run; returns whether the process had not read it.
    pub(super) fn withdraw(&self, number: i64) -> bool {
        let mut state = self.lock();
        let is_unread = !self.outbox.take_back(Some(number)).is_empty();
        if is_unread {
            self.forget_unread(&mut state, number);
            self.freed.notify_one();
        }
        is_unread
    }

    fn forget_unread(&self, state: &mut State, number: i64) {
        let Some(Waiting::Run(id)) = state.requests.remove(&number) else { return };
        let Some(entry) = state.runs.remove(&id) else { return };
        if !entry.fenced {
            self.live.send_modify(|live| *live -= 1);
        }
        // A process can peek into a pipe without reading it.
        entry.run.end(match entry.run.count() {
            0 => RunEnd::NotDelivered,
            _ => RunEnd::Crashed { message: self.says(REPLACED) },
        });
    }

    /// The request number of an open run, and the name of its runner.
    pub(super) fn number_of(&self, run: &Arc<Run>) -> Option<(i64, String)> {
        let state = self.lock();
        let entry = state.runs.get(&run.id).filter(|entry| Arc::ptr_eq(&entry.run, run))?;
        Some((entry.number, entry.runner_id.runner().to_owned()))
    }
}

/// What a response that is not the last belongs to.
pub(crate) enum Streamed {
    To(Arc<Run>),
    /// A run that the host has dropped.
    Late,
    /// Not a run.
    None,
}

impl Connection {
    /// The run that this request started.
    pub(crate) fn streamed(&self, number: i64) -> Streamed {
        let state = self.lock();
        let Some(Waiting::Run(id)) = state.requests.get(&number) else { return Streamed::None };
        match state.runs.get(id) {
            Some(entry) if !entry.fenced => Streamed::To(entry.run.clone()),
            _ => Streamed::Late,
        }
    }

    /// The runner of a run.
    pub(crate) fn runner_of(&self, run_id: &str) -> Option<RunnerId> {
        self.lock().runs.get(run_id).map(|entry| entry.runner_id.clone())
    }
}
