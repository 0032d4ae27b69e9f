//! One run on one connection, as the host sees it: its stream of results and its end.
//!
//! Invariant: a run ends once; after its end, or once its handle is dropped, no result is accepted.

use crate::connection::Connection;
use crate::proxy::RunSeat;
use crate::wires::RunMemory;
use greenroom_protocol::RawResult;
use greenroom_protocol::result::kind;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

#[derive(Debug, Clone)]
pub enum RunEvent {
    /// Results since the last call, in order; of a backlog only the first part.
    Results(Vec<RawResult>),
    /// Final; later calls return the same.
    End(RunEnd),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunEnd {
    /// `run_agent` was answered.
    Finished,
    /// `run_agent` was answered with a JSON-RPC error.
    Failed { code: i64, message: String },
    /// The process or its connection is gone.
    Crashed { message: String },
    /// The process wrote something that is not protocol.
    ProtocolError { message: String },
    /// More output than the run may have, or than was consumed in time.
    Overflow { message: String },
    /// The process is draining and has not read any byte of this run, nor will it: start the run on another.
    NotDelivered,
}

/// A handle to a run. Dropping it fences the run: late output is discarded, the runner is told to stop, and a
/// process that does not stop in time is replaced.
#[derive(Debug)]
pub struct RunHandle {
    run: Arc<Run>,
    connection: Arc<Connection>,
}

impl RunHandle {
    pub(crate) fn new(run: Arc<Run>, connection: Arc<Connection>) -> Self {
        Self { run, connection }
    }

    /// Waits for the next results or the end. Nothing is lost when the future is dropped.
    pub async fn next(&mut self) -> RunEvent {
        loop {
            if let Some(event) = self.run.take() {
                return event;
            }
            self.run.news.notified().await;
        }
    }

    /// Tells the runner to stop, once, and starts its grace period.
    pub fn cancel(&self, reason: &str) {
        if !self.run.cancelled.swap(true, Ordering::Relaxed) {
            self.connection.cancel(&self.run, reason);
        }
    }

    /// How long reads of the runner's output are delayed, if they are.
    pub fn read_delay(&self) -> Option<Duration> {
        self.connection.read_delay()
    }

    pub fn isolation(&self) -> &str {
        &self.connection.isolation
    }

    /// For calls of the run's own programs.
    pub fn seat(&self) -> RunSeat {
        RunSeat::new(self.connection.clone())
    }
}

impl Drop for RunHandle {
    fn drop(&mut self) {
        if self.run.close() {
            self.connection.fence(&self.run);
            self.cancel("abandoned");
        }
    }
}

#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) id: String,
    inbox: Mutex<Inbox>,
    news: Notify,
    cancelled: AtomicBool,
    pub(crate) wire: RunMemory,
    /// Unconsumed bytes of the whole connection, this run's included.
    buffered: Arc<AtomicUsize>,
}

#[derive(Debug, Default)]
struct Inbox {
    results: VecDeque<RawResult>,
    /// Size of each of them.
    sizes: VecDeque<usize>,
    bytes: usize,
    bytes_total: u64,
    count_total: u64,
    /// The terminal result has arrived; the response follows.
    has_terminal: bool,
    end: Option<RunEnd>,
    abandoned: bool,
    announced: bool,
}

pub(crate) struct RunLimits {
    pub(crate) buffer_bytes_max: usize,
    pub(crate) output_bytes_max: u64,
    pub(crate) connection_bytes_max: usize,
}

/// What happened to a result that was offered to a run.
pub(crate) enum Taken {
    /// The first since the last `announce`: wake the consumer.
    First,
    More,
    /// The run is over: the result is dropped.
    Closed,
    Overflow(String),
}

/// Memory of a result besides its text.
const RESULT_OVERHEAD_BYTES: usize = 128;
/// Bytes per batch: a consumer would hold a whole backlog several times over.
const BATCH_BYTES: usize = 1 << 20;

impl Inbox {
    fn next_batch(&mut self) -> Vec<RawResult> {
        if self.bytes <= BATCH_BYTES {
            self.bytes = 0;
            self.sizes.clear();
            return std::mem::take(&mut self.results).into();
        }
        let mut bytes = 0;
        let mut count = 0;
        while bytes < BATCH_BYTES
            && let Some(size) = self.sizes.pop_front()
        {
            bytes += size;
            count += 1;
        }
        self.bytes -= bytes;
        self.results.drain(..count).collect()
    }
}

impl Run {
    pub(crate) fn new(id: String, buffered: Arc<AtomicUsize>) -> Self {
        let (inbox, news, wire) = (Mutex::default(), Notify::new(), RunMemory::default());
        Self { id, inbox, news, cancelled: AtomicBool::new(false), wire, buffered }
    }

    /// Accepts a result without waking the consumer; `announce` does that once per batch.
    pub(crate) fn offer(&self, result: RawResult, bytes: usize, limits: &RunLimits) -> Taken {
        let mut inbox = self.lock();
        if inbox.end.is_some() || inbox.abandoned {
            return Taken::Closed;
        }
        let size = bytes + RESULT_OVERHEAD_BYTES;
        inbox.bytes_total += bytes as u64;
        if inbox.bytes + size > limits.buffer_bytes_max {
            let max = limits.buffer_bytes_max;
            return Taken::Overflow(format!("more than {max} bytes of results waited to be read"));
        }
        if inbox.bytes_total > limits.output_bytes_max {
            let max = limits.output_bytes_max;
            return Taken::Overflow(format!("the run wrote more than {max} bytes of results"));
        }
        // Only the connection's one reader adds, so the check and the addition need not be atomic.
        if self.buffered.load(Ordering::Relaxed) + size > limits.connection_bytes_max {
            let max = limits.connection_bytes_max;
            let message =
                format!("more than {max} bytes of its process's results waited to be read");
            return Taken::Overflow(message);
        }
        self.buffered.fetch_add(size, Ordering::Relaxed);
        inbox.has_terminal |= matches!(&*result.kind, kind::RUN_COMPLETED | kind::RUN_FAILED);
        inbox.bytes += size;
        inbox.results.push_back(result);
        inbox.sizes.push_back(size);
        inbox.count_total += 1;
        if std::mem::replace(&mut inbox.announced, true) { Taken::More } else { Taken::First }
    }

    /// How many results were accepted.
    pub(crate) fn count(&self) -> u64 {
        self.lock().count_total
    }

    pub(crate) fn has_terminal(&self) -> bool {
        self.lock().has_terminal
    }

    pub(crate) fn announce(&self) {
        self.lock().announced = false;
        self.news.notify_one();
    }

    /// Ends the run unless it has ended.
    pub(crate) fn end(&self, end: RunEnd) {
        let mut inbox = self.lock();
        if inbox.end.is_none() {
            inbox.end = Some(end);
        }
        drop(inbox);
        self.news.notify_one();
    }

    fn take(&self) -> Option<RunEvent> {
        let mut inbox = self.lock();
        if !inbox.results.is_empty() {
            let before = inbox.bytes;
            let batch = inbox.next_batch();
            self.buffered.fetch_sub(before - inbox.bytes, Ordering::Relaxed);
            return Some(RunEvent::Results(batch));
        }
        inbox.end.clone().map(RunEvent::End)
    }

    /// The handle is dropped; returns whether the run was still open.
    fn close(&self) -> bool {
        let mut inbox = self.lock();
        inbox.abandoned = true;
        inbox.results = VecDeque::new();
        inbox.sizes = VecDeque::new();
        self.buffered.fetch_sub(std::mem::take(&mut inbox.bytes), Ordering::Relaxed);
        inbox.end.is_none()
    }

    fn lock(&self) -> MutexGuard<'_, Inbox> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
