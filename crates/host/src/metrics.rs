//! Counters and histograms, read by `/metrics`.

mod histogram;

pub use histogram::{BOUNDS_S, Histogram, Snapshot};

use greenroom_protocol::RunStatus;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

#[derive(Debug, Default)]
pub struct Metrics {
    pub events_accepted: AtomicU64,
    pub events_repeated: AtomicU64,
    pub events_refused: AtomicU64,
    pub results: AtomicU64,
    pub proxy_calls: AtomicU64,
    pub proxy_refusals: AtomicU64,
    pub deliveries_done: AtomicU64,
    pub deliveries_failed: AtomicU64,
    pub deliveries_unknown: AtomicU64,
    /// Failed attempts that will be retried.
    pub deliveries_retried: AtomicU64,
    pub model_tokens: AtomicU64,
    /// From acceptance to start.
    pub run_wait: Histogram,
    /// From start to end.
    pub run_duration: Histogram,
    pub proxy_call_duration: Histogram,
    pub model_call_duration: Histogram,
    pub tool_call_duration: Histogram,
    pub delivery_attempt_duration: Histogram,
    runs_open: AtomicUsize,
    /// One counter per status, in the order of `RunStatus::ALL`.
    runs_ended: [AtomicU64; RunStatus::ALL.len()],
}

impl Metrics {
    pub fn add(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn results(&self, count: usize) {
        self.results.fetch_add(count as u64, Ordering::Relaxed);
    }

    pub(crate) fn model_call(&self, took: Duration, tokens: Option<i64>) {
        self.model_call_duration.observe(took);
        let tokens = tokens.and_then(|tokens| u64::try_from(tokens).ok()).unwrap_or(0);
        self.model_tokens.fetch_add(tokens, Ordering::Relaxed);
    }

    pub(crate) fn opened(&self, count: usize) {
        self.runs_open.fetch_add(count, Ordering::Relaxed);
    }

    pub(crate) fn closed(&self, status: RunStatus) {
        let _ = self.runs_open.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |open| {
            Some(open.saturating_sub(1))
        });
        Self::add(&self.runs_ended[status as usize]);
    }

    /// Runs that are queued or running.
    pub fn runs_open(&self) -> usize {
        self.runs_open.load(Ordering::Relaxed)
    }

    /// How many runs ended with a status.
    pub fn runs_ended(&self, status: RunStatus) -> u64 {
        self.runs_ended[status as usize].load(Ordering::Relaxed)
    }
}
