//! Sends spans to the collector in batches.
//!
//! Invariant: one batch at a time, bounded in size; a batch that the collector does not accept is dropped and
//! logged, once per outage.

use super::{Span, otlp};
use crate::host::Shared;
use crate::settings::Telemetry as Settings;
use greenroom_outgoing::{Outgoing, cause};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::time::timeout;

const BATCH_MAX: usize = 512;
/// How long the first span of a batch waits for more.
const GATHERING: Duration = Duration::from_secs(1);
const TIMEOUT: Duration = Duration::from_secs(10);
/// For the last batch of a host that stops.
const TIMEOUT_AT_STOP: Duration = Duration::from_secs(2);

/// Exports until the host stops.
pub(crate) async fn keep(shared: Arc<Shared>) {
    let receiver = shared.telemetry.receiver.lock().ok().and_then(|mut receiver| receiver.take());
    let Some(mut receiver) = receiver else { return };
    // The address is the operator's own choice, and a collector is usually on this machine.
    let outgoing = Outgoing { allow_private: true, keep_idle: 1, ..Outgoing::default() };
    let mut exporter = Exporter { client: None, outgoing, failing: false };
    let stopping = shared.tasks.stopping().clone();
    let mut batch = Vec::new();
    loop {
        tokio::select! {
            received = receiver.recv_many(&mut batch, BATCH_MAX) => if received == 0 { return },
            () = stopping.cancelled() => {}
        }
        if batch.len() < BATCH_MAX {
            let more = async { while receiver.recv_many(&mut batch, BATCH_MAX).await > 0 {} };
            tokio::select! {
                _ = timeout(GATHERING, more) => {}
                () = stopping.cancelled() => {}
            }
        }
        let is_last = stopping.is_cancelled();
        while let Some(span) = is_last.then(|| receiver.try_recv().ok()).flatten() {
            batch.push(span);
        }
        let spans = std::mem::take(&mut batch);
        let Some(settings) = shared.settings.load().telemetry.clone() else {
            if is_last { return } else { continue }
        };
        for part in spans.chunks(BATCH_MAX) {
            exporter.send(&settings, part, if is_last { TIMEOUT_AT_STOP } else { TIMEOUT }).await;
        }
        let dropped = shared.telemetry.dropped.swap(0, Ordering::Relaxed);
        if dropped > 0 {
            tracing::warn!(dropped, "spans dropped: the collector is too slow");
        }
        if is_last {
            return;
        }
    }
}

struct Exporter {
    outgoing: Outgoing,
    client: Option<greenroom_outgoing::Client>,
    failing: bool,
}

impl Exporter {
    async fn send(&mut self, settings: &Settings, spans: &[Span], limit: Duration) {
        let result = timeout(limit, self.post(settings, spans)).await;
        let failure = match result {
            Ok(Ok(())) => None,
            Ok(Err(why)) => Some(why),
            Err(_) => Some(format!("no answer within {} s", limit.as_secs())),
        };
        match &failure {
            Some(why) if !self.failing => {
                tracing::warn!(url = settings.url, spans = spans.len(), why, "cannot export spans");
            }
            None if self.failing => tracing::info!(url = settings.url, "spans are exported again"),
            _ => {}
        }
        self.failing = failure.is_some();
    }

    async fn post(&mut self, settings: &Settings, spans: &[Span]) -> Result<(), String> {
        let client = match &self.client {
            Some(client) => client.clone(),
            None => self.outgoing.build().map_err(|error| error.to_string())?,
        };
        self.client = Some(client.clone());
        let url = format!("{}/v1/traces", settings.url.trim_end_matches('/'));
        let body = otlp::body(settings, spans).to_string();
        let mut request = client.post(url).header("content-type", "application/json").body(body);
        for (name, value) in &settings.headers {
            request = request.header(name, value.expose());
        }
        let answer = request.send().await.map_err(|error| cause(&error))?;
        match answer.status() {
            status if status.is_success() => Ok(()),
            status => Err(format!("the collector answers {status}")),
        }
    }
}
