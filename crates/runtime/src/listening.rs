//! Events that were handled, for plugins that listen.
//!
//! Invariant: a plugin is told only of the events of agents that its configuration names, one after another in the
//! order in which their runs ended, and of each at most once. While its process is down they wait; what waits is
//! bounded in number, size and time.

use crate::connection::{Connection, ConnectionId};
use crate::registry::Registry;
use crate::spec::Wire;
use crate::wires::Codec;
use crate::wires::langbot::listeners::{Emitted, emit, events};
use greenroom_protocol::NewEvent;
use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Events that wait for the listeners of one plugin; more are dropped.
const WAITING_MAX: usize = 256;
/// Their size together.
const WAITING_BYTES_MAX: usize = 16 * 1024 * 1024;
/// How long an event waits for a plugin that is down.
const WAIT_MAX: Duration = Duration::from_secs(60 * 60);

/// An event whose run has ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Heard {
    /// The agent that handled it.
    pub agent: String,
    pub event: NewEvent,
    /// The text of the last answer.
    pub answer: Option<String>,
}

impl Registry {
    /// Whether some plugin listens to an agent.
    pub(crate) fn is_heard(&self, agent: &str) -> bool {
        self.lock().by_name.values().any(|entry| entry.spec.listens.contains(agent))
    }

    /// Passes an event to the plugins that listen to its agent. Waits for none of them.
    pub(crate) fn tell(&self, heard: &Arc<Heard>) {
        let entries = self.lock();
        let listening = entries.by_name.iter().filter(|(_, entry)| {
            entry.spec.wire == Wire::Langbot && entry.spec.listens.contains(&heard.agent)
        });
        for (runner, entry) in listening {
            let serving = entry.serving();
            if serving.is_some_and(|connection| !has_listeners(connection)) {
                continue;
            }
            entry.listeners.push(runner, heard);
            if let Some(connection) = serving {
                entry.listeners.start(connection);
            }
        }
    }
}

fn has_listeners(connection: &Connection) -> bool {
    matches!(&connection.codec, Codec::Langbot(session) if session.listens())
}

/// The events that wait for the listeners of one configured plugin, whichever process serves it.
#[derive(Default)]
pub(crate) struct ListenerQueue {
    state: Mutex<State>,
    /// Held while an event is told.
    turn: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Waiting>,
    bytes: usize,
    /// The connection that a task tells the events to.
    teller: Option<ConnectionId>,
}

struct Waiting {
    heard: Arc<Heard>,
    bytes: usize,
    since: Instant,
    /// How many of the events that the plugin gets for it were sent.
    sent: usize,
}

impl ListenerQueue {
    fn push(&self, runner: &str, heard: &Arc<Heard>) {
        let bytes = serde_json::to_vec(&heard.event).map_or(0, |event| event.len())
            + heard.answer.as_ref().map_or(0, String::len);
        let mut state = self.lock();
        state.forget_old(runner);
        if state.waiting.len() >= WAITING_MAX || state.bytes + bytes > WAITING_BYTES_MAX {
            let waiting = state.waiting.len();
            tracing::warn!(runner, waiting, "listeners are too slow or down, event dropped");
            return;
        }
        state.bytes += bytes;
        let (heard, since) = (Arc::clone(heard), Instant::now());
        state.waiting.push_back(Waiting { heard, bytes, since, sent: 0 });
    }

    /// Drops the events of other agents: the configuration has changed.
    pub(crate) fn keep(&self, agents: &BTreeSet<String>) {
        let mut state = self.lock();
        state.waiting.retain(|waiting| agents.contains(&waiting.heard.agent));
        state.bytes = state.waiting.iter().map(|waiting| waiting.bytes).sum();
    }

    /// Tells a process what waits, in a task of its own, as long as it serves.
    pub(crate) fn start(self: &Arc<Self>, connection: &Arc<Connection>) {
        let mut state = self.lock();
        if !has_listeners(connection) {
            *state = State::default();
        }
        if state.waiting.is_empty() || state.teller == Some(connection.id) {
            return;
        }
        state.teller = Some(connection.id);
        let (queue, told) = (Arc::clone(self), Arc::clone(connection));
        connection.tasks.spawn(async move { queue.tell(&told).await });
    }

    async fn tell(&self, connection: &Arc<Connection>) {
        let _turn = self.turn.lock().await;
        while let Some(waiting) = self.next(connection) {
            self.tell_one(connection, waiting).await;
        }
    }

    /// The next event for a connection that serves and was not replaced.
    fn next(&self, connection: &Connection) -> Option<Waiting> {
        let mut state = self.lock();
        if state.teller != Some(connection.id) {
            return None;
        }
        state.forget_old(&connection.runner);
        let next = if connection.is_serving() { state.waiting.pop_front() } else { None };
        match &next {
            Some(next) => state.bytes -= next.bytes,
            None => state.teller = None,
        }
        next
    }

    async fn tell_one(&self, connection: &Connection, mut waiting: Waiting) {
        let events = events(&waiting.heard);
        for event in &events[waiting.sent..] {
            waiting.sent += 1;
            if emit(connection, event).await == Emitted::ProcessEnded {
                break;
            }
        }
        if waiting.sent < events.len() {
            // The next process gets the rest.
            let mut state = self.lock();
            state.bytes += waiting.bytes;
            state.waiting.push_front(waiting);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn forget_old(&mut self, runner: &str) {
        let before = self.waiting.len();
        while let Some(old) = self.waiting.pop_front_if(|front| front.since.elapsed() > WAIT_MAX) {
            self.bytes -= old.bytes;
        }
        let dropped = before - self.waiting.len();
        if dropped > 0 {
            tracing::warn!(runner, dropped, "a plugin that listens was down for too long");
        }
    }
}
