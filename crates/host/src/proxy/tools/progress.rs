//! Progress of a tool call: passed to the runner, and the last one stored with the call.
//!
//! Invariant: a runner that does not read delays nothing, it gets the newest progress instead of all; secrets
//! are redacted first.

use crate::host::Shared;
use greenroom_runtime::ItemSink;
use greenroom_tools::{OnProgress, Progress as Told};
use serde_json::value::to_raw_value;
use serde_json::{Value, json};
use std::convert::Infallible;
use std::sync::Arc;
use tokio::sync::watch;

pub(super) struct Progress {
    sink: ItemSink,
    latest: Arc<watch::Sender<Option<Told>>>,
}

impl Progress {
    pub(super) fn new(sink: &ItemSink) -> Self {
        Self { sink: sink.clone(), latest: Arc::new(watch::Sender::new(None)) }
    }

    /// The callback that a tool reports to.
    pub(super) fn listener(&self) -> OnProgress {
        let latest = Arc::clone(&self.latest);
        Arc::new(move |progress| drop(latest.send_replace(Some(progress))))
    }

    /// Passes progress on until the future is dropped.
    pub(super) async fn pass_on(&self, shared: &Shared) -> Infallible {
        let mut latest = self.latest.subscribe();
        while latest.changed().await.is_ok() {
            let item = latest.borrow_and_update().as_ref().map(|progress| shown(progress, shared));
            let Some(Ok(item)) = item.map(|item| to_raw_value(&item)) else { continue };
            // A runner that accepts no progress still gets the result.
            if self.sink.send(&item).await.is_err() {
                break;
            }
        }
        std::future::pending().await
    }

    /// The last progress, for the record of the call.
    pub(super) fn last(&self, shared: &Shared) -> Option<Value> {
        self.latest.borrow().as_ref().map(|progress| shown(progress, shared))
    }
}

fn shown(reported: &Told, shared: &Shared) -> Value {
    let Told { progress, total, message } = reported;
    let mut item = json!({"type": "progress", "progress": progress});
    if let Some(total) = total {
        item["total"] = json!(total);
    }
    if let Some(message) = message {
        item["message"] = json!(message);
        shared.redactor.value(&mut item["message"]);
    }
    item
}
