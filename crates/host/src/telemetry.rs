//! Traces of runs, model calls and tool calls for an OpenTelemetry collector, by its GenAI conventions.
//!
//! Invariant: off unless configured; a slow or missing collector costs spans, never a run. A span holds names,
//! counts and codes, never what was said.

mod export;
mod otlp;
mod spans;
mod trace;

pub(crate) use export::keep;
pub(crate) use spans::ToolSpan;
pub use trace::TraceParent;

use crate::context::Identity;
use crate::host::Shared;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};
use tokio::sync::mpsc;
use trace::{SpanId, Trace};

/// Spans that wait for the exporter; more are dropped and counted.
const WAITING_MAX: usize = 4096;

/// One span, as the host knows it.
struct Span {
    trace: Trace,
    id: SpanId,
    parent: Option<SpanId>,
    name: String,
    kind: Kind,
    started: SystemTime,
    took: Duration,
    attributes: Vec<(&'static str, Attribute)>,
    /// The code of the failure.
    error: Option<String>,
}

enum Kind {
    Internal,
    /// A request to another service.
    Client,
}

enum Attribute {
    Text(String),
    Number(i64),
    Texts(Vec<String>),
}

/// The spans on their way to the exporter.
pub(crate) struct Telemetry {
    sender: mpsc::Sender<Span>,
    receiver: Mutex<Option<mpsc::Receiver<Span>>>,
    dropped: AtomicU64,
}

impl Default for Telemetry {
    fn default() -> Self {
        let (sender, receiver) = mpsc::channel(WAITING_MAX);
        Self { sender, receiver: Mutex::new(Some(receiver)), dropped: AtomicU64::new(0) }
    }
}

impl Shared {
    pub(crate) fn is_tracing(&self) -> bool {
        self.settings.load().telemetry.is_some()
    }

    /// The trace of a run, if tracing is configured and its sender records the trace.
    fn trace(&self, identity: &Identity) -> Option<Trace> {
        if !self.is_tracing() {
            return None;
        }
        let traceparent = identity.traceparent.as_deref();
        let trace = Trace::of_run(&identity.run_id, identity.attempt, traceparent);
        trace.is_sampled.then_some(trace)
    }

    /// The `traceparent` with which a runner continues the trace of its run.
    pub(crate) fn traceparent(&self, identity: &Identity) -> Option<String> {
        self.trace(identity).map(|trace| trace.header())
    }

    fn send_span(&self, span: Span) {
        if self.telemetry.sender.try_send(span).is_err() {
            self.telemetry.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}
