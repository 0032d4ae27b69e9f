//! One connection to a runner process: its open runs, requests and calls, and what happens when it ends.
//!
//! Invariant: a result reaches a run only over the connection that the run was started on; when a connection
//! has ended, so has every run of it.

use crate::outbox::{NotSent, Outbox};
use crate::proxy::{Proxy, Standing};
use crate::quote::Cleaner;
use crate::run::{Run, RunEnd, RunLimits};
use crate::spec::Limits;
use crate::tasks::Tasks;
use crate::wires::Codec;
use bytes::Bytes;
use greenroom_protocol::RunnerId;
use greenroom_protocol::wire::RpcError;
use serde_json::value::RawValue;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{Notify, oneshot, watch};

mod calls;
mod read_delay;
mod requests;
mod starting;
mod stdin_stall;
mod stopping;
mod tools;

use calls::Calls;
use read_delay::AverageRun;
pub(crate) use requests::NoResult;
pub(crate) use starting::Streamed;

/// How long to wait for the reason of an end after its first sign.
pub(crate) const LAST_WORDS: Duration = Duration::from_millis(500);

/// Why a run failed whose process was replaced.
pub(crate) const REPLACED: &str = "was replaced before the run had ended";

/// Identifies a connection for the lifetime of the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConnectionId(pub u64);

/// The lifecycle of a connection. Reasons are clauses that `Connection::says` turns into sentences.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ConnectionState {
    Serving,
    /// Gets no new runs; its open runs may end.
    Draining {
        reason: String,
    },
    Gone {
        reason: String,
    },
}

pub(crate) struct Connection {
    pub(crate) id: ConnectionId,
    pub(crate) runner: Arc<str>,
    pub(crate) isolation: Arc<str>,
    pub(crate) plugin: OnceLock<Arc<str>>,
    pub(crate) outbox: Outbox,
    pub(crate) limits: Limits,
    pub(crate) run_limits: RunLimits,
    pub(crate) cleaner: Cleaner,
    pub(crate) proxy: Arc<dyn Proxy>,
    pub(crate) tasks: Tasks,
    /// Encodes what is sent.
    pub(crate) codec: Codec,
    state: Mutex<State>,
    connection_state: watch::Sender<ConnectionState>,
    /// Live runs, which are not fenced, and tool calls in flight.
    live: watch::Sender<usize>,
    is_input_closed: AtomicBool,
    /// Notified when a run is over on the other side.
    freed: Notify,
    /// Held by the first run that waits for room.
    turn: tokio::sync::Mutex<()>,
    /// Bytes of results of all runs that are not consumed yet.
    buffered: Arc<AtomicUsize>,
    /// Its last line on stderr. For operators only, as it may contain anything.
    said: OnceLock<String>,
}

#[derive(Default)]
pub(crate) struct State {
    runs: HashMap<String, Entry>,
    requests: HashMap<i64, Waiting>,
    request_last: i64,
    /// How many of the requests are tool calls.
    tool_calls: usize,
    /// Tool calls that the host gave up.
    given_up: VecDeque<i64>,
    /// Calls of the runner, by the text of their id.
    pub(crate) calls: Calls,
    average_run: AverageRun,
}

struct Entry {
    run: Arc<Run>,
    /// The request that started it.
    number: i64,
    runner_id: RunnerId,
    /// Over for the host; the runner has not answered yet.
    fenced: bool,
    begun: Instant,
}

enum Waiting {
    Run(String),
    Answer(oneshot::Sender<Result<Box<RawValue>, RpcError>>),
    Tool(tools::ToolSender),
}

/// What a connection is made of, besides its transport.
pub(crate) struct Parts {
    pub(crate) id: ConnectionId,
    pub(crate) runner: Arc<str>,
    pub(crate) isolation: Arc<str>,
    pub(crate) limits: Limits,
    pub(crate) cleaner: Cleaner,
    pub(crate) proxy: Arc<dyn Proxy>,
    pub(crate) tasks: Tasks,
    pub(crate) codec: Codec,
}

impl Connection {
    pub(crate) fn new(parts: Parts, outbox: Outbox) -> Arc<Self> {
        let Parts { id, runner, isolation, limits, cleaner, proxy, tasks, codec } = parts;
        Arc::new(Self {
            id,
            runner,
            isolation,
            plugin: OnceLock::new(),
            outbox,
            run_limits: RunLimits {
                buffer_bytes_max: limits.configured.run_buffer_bytes,
                output_bytes_max: limits.configured.output_bytes,
                connection_bytes_max: limits.connection_buffer_bytes_max,
            },
            limits,
            cleaner,
            proxy,
            tasks,
            codec,
            state: Mutex::default(),
            connection_state: watch::Sender::new(ConnectionState::Serving),
            live: watch::Sender::new(0),
            is_input_closed: AtomicBool::new(false),
            freed: Notify::new(),
            turn: tokio::sync::Mutex::default(),
            buffered: Arc::default(),
            said: OnceLock::new(),
        })
    }

    /// Why the connection gets no runs, if it does not.
    pub(crate) fn reason(&self) -> Option<String> {
        match &*self.connection_state.borrow() {
            ConnectionState::Serving => None,
            ConnectionState::Draining { reason } | ConnectionState::Gone { reason } => {
                Some(reason.clone())
            }
        }
    }

    /// The host drops the run: it no longer counts, and its id stays taken until the runner answers.
    pub(crate) fn fence(&self, run: &Arc<Run>) {
        let mut state = self.lock();
        if let Some(entry) = state.runs.get_mut(&run.id)
            && Arc::ptr_eq(&entry.run, run)
            && !std::mem::replace(&mut entry.fenced, true)
        {
            self.live.send_modify(|live| *live -= 1);
        }
    }

    /// A clause about the runner as a sentence.
    pub(crate) fn says(&self, clause: &str) -> String {
        format!("runner `{}` {clause}", self.runner)
    }

    /// Ends and fences one run, or all with `None`, for a fault of the runner.
    pub(crate) fn fail(self: &Arc<Self>, only: Option<&Arc<Run>>, end: &RunEnd) {
        let runs: Vec<Arc<Run>> = match only {
            Some(run) => {
                self.cancel(run, "failed");
                vec![run.clone()]
            }
            None => self.lock().runs.values().map(|entry| entry.run.clone()).collect(),
        };
        for run in runs {
            run.end(end.clone());
            self.fence(&run);
        }
    }

    /// The connection gets no new runs from now on; its slot starts another process.
    pub(crate) fn replace(&self, reason: String) {
        self.connection_state.send_if_modified(|current| {
            let serving = *current == ConnectionState::Serving;
            if serving {
                tracing::info!(runner = &*self.runner, %reason, "draining the runner process");
                *current = ConnectionState::Draining { reason };
            }
            serving
        });
    }

    /// Keeps the last line of stderr; called before `close`.
    pub(crate) fn keep_last_words(&self, line: String) {
        // There is one end, hence one last line.
        let _ = self.said.set(line);
    }

    /// The last line of stderr, if the process ended for this reason.
    pub(crate) fn last_words(&self, reason: &str) -> Option<String> {
        let state = self.connection_state.borrow();
        let is_end = matches!(&*state, ConnectionState::Gone { reason: end } if end == reason);
        self.said.get().filter(|_| is_end).cloned()
    }

    /// The transport is over: every open run, request and call ends.
    pub(crate) fn close(&self, reason: String) {
        let (runs, calls) = {
            let mut state = self.lock();
            self.take_all_back(&mut state);
            self.connection_state.send_if_modified(|current| {
                let open = !matches!(current, ConnectionState::Gone { .. });
                if open {
                    *current = ConnectionState::Gone { reason: reason.clone() };
                }
                open
            });
            state.requests.clear();
            state.tool_calls = 0;
            (std::mem::take(&mut state.runs), std::mem::take(&mut state.calls))
        };
        self.outbox.close();
        for call in calls.into_tasks() {
            call.abort();
        }
        let message = self.says(&reason);
        for entry in runs.into_values() {
            entry.run.end(RunEnd::Crashed { message: message.clone() });
        }
        self.live.send_replace(0);
    }

    pub(crate) fn connection_state(&self) -> watch::Receiver<ConnectionState> {
        self.connection_state.subscribe()
    }

    pub(crate) fn is_serving(&self) -> bool {
        *self.connection_state.borrow() == ConnectionState::Serving
    }

    /// Returns once the connection gets no new runs.
    pub(crate) async fn not_serving(&self) {
        let is_over = |state: &ConnectionState| *state != ConnectionState::Serving;
        // The sender lives as long as this connection.
        let _ = self.connection_state().wait_for(is_over).await;
    }

    /// Returns once the transport is over.
    pub(crate) async fn gone(&self) {
        let is_gone = |state: &ConnectionState| matches!(state, ConnectionState::Gone { .. });
        let _ = self.connection_state().wait_for(is_gone).await;
    }

    pub(crate) fn live(&self) -> watch::Receiver<usize> {
        self.live.subscribe()
    }

    /// Bytes of results that are not consumed yet.
    pub(crate) fn waiting_bytes(&self) -> usize {
        self.buffered.load(Ordering::Relaxed)
    }

    /// The run with this id, unless it is fenced.
    pub(crate) fn live_run(&self, id: &str) -> Option<Arc<Run>> {
        self.lock().runs.get(id).filter(|entry| !entry.fenced).map(|entry| entry.run.clone())
    }

    /// The standing of a run on this connection, and how many results it has sent.
    pub(crate) fn standing(&self, id: &str) -> (Standing, u64) {
        match self.lock().runs.get(id) {
            None => (Standing::Foreign, 0),
            Some(entry) if entry.fenced => (Standing::Over, 0),
            Some(entry) => (Standing::Live, entry.run.count()),
        }
    }

    /// The live run, if there is exactly one.
    pub(crate) fn only_live_run(&self) -> Option<Arc<Run>> {
        let state = self.lock();
        let mut live = state.runs.values().filter(|entry| !entry.fenced);
        let only = live.next().map(|entry| entry.run.clone());
        only.filter(|_| live.next().is_none())
    }

    /// The runner has answered a request; returns whether that request was open.
    pub(crate) fn answered(&self, number: i64, answer: Result<&RawValue, RpcError>) -> bool {
        let mut state = self.lock();
        match state.requests.remove(&number) {
            None => state.was_given_up(number),
            Some(Waiting::Tool(sender)) => {
                self.tool_answered(&mut state, sender, answer);
                true
            }
            Some(Waiting::Answer(sender)) => {
                // The receiver may be gone.
                let _ = sender.send(answer.map(ToOwned::to_owned));
                true
            }
            Some(Waiting::Run(id)) => {
                self.end_run(state, &id, answer);
                self.freed.notify_one();
                true
            }
        }
    }

    fn end_run(
        &self,
        mut state: MutexGuard<'_, State>,
        id: &str,
        answer: Result<&RawValue, RpcError>,
    ) {
        if let Some(entry) = state.runs.remove(id) {
            if !entry.fenced {
                state.average_run.add(entry.begun.elapsed());
                self.live.send_modify(|live| *live -= 1);
            }
            entry.run.end(match answer {
                Ok(_) => RunEnd::Finished,
                Err(error) => RunEnd::Failed { code: error.code, message: error.message },
            });
        }
    }

    /// Sends a frame; a runner that does not accept it is replaced.
    pub(crate) fn send_or_replace(self: &Arc<Self>, frame: Bytes) {
        match self.outbox.push(frame) {
            Ok(()) => {}
            Err(NotSent::Closed) => self.input_is_closed(),
            Err(error @ NotSent::Full) => self.replace(format!("is not listening: {error}")),
        }
    }

    /// A closed input is mostly the first sign of an end whose reason follows.
    pub(crate) fn input_is_closed(self: &Arc<Self>) {
        if self.is_input_closed.swap(true, Ordering::Relaxed) {
            return;
        }
        let connection = self.clone();
        self.tasks.spawn(async move {
            if tokio::time::timeout(LAST_WORDS, connection.gone()).await.is_err() {
                connection.replace(format!("is not listening: {}", NotSent::Closed));
            }
        });
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn expect(&mut self, waiting: Waiting) -> i64 {
        let number = self.next_number();
        self.requests.insert(number, waiting);
        number
    }

    fn next_number(&mut self) -> i64 {
        self.request_last += 1;
        self.request_last
    }
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Connection({}, {})", self.id.0, self.runner)
    }
}
