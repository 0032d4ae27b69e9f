//! How far a call is, as its tool says: told to the runner as it comes, and the last of it kept with the call.
//!
//! Invariant: a runner that does not read holds nobody up, it hears the newest instead of all; secrets are taken
//! out before anybody hears of it.

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

    /// What a tool is given to speak to.
    pub(super) fn listener(&self) -> OnProgress {
        let latest = Arc::clone(&self.latest);
        Arc::new(move |told| drop(latest.send_replace(Some(told))))
    }

    /// Passes on what comes, for as long as it is waited for.
    pub(super) async fn pass_on(&self, shared: &Shared) -> Infallible {
        let mut latest = self.latest.subscribe();
        while latest.changed().await.is_ok() {
            let item = latest.borrow_and_update().as_ref().map(|told| shown(told, shared));
            let Some(Ok(item)) = item.map(|item| to_raw_value(&item)) else { continue };
            // A runner that takes no more of it still gets the result.
            if self.sink.send(&item).await.is_err() {
                break;
            }
        }
        std::future::pending().await
    }

    /// The last that was heard, for the record of the call.
    pub(super) fn last(&self, shared: &Shared) -> Option<Value> {
        self.latest.borrow().as_ref().map(|told| shown(told, shared))
    }
}

fn shown(told: &Told, shared: &Shared) -> Value {
    let Told { progress, total, message } = told;
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
