//! Calls from a run to the host: sent, awaited, cancelled.
//!
//! Invariant: every call ends: with its response, at the run's deadline, by cancellation or with the connection.
//! A call that is no longer awaited is cancelled at the host by `request.cancel`.

use crate::inbox::{End, Inbox};
use crate::message::{self, Answer, Request};
use crate::outbox::Outbox;
use greenroom_protocol::wire::{API_ERROR, RpcError, method};
use greenroom_protocol::{AgentAPIError, ErrorCode};
use serde::Serialize;
use serde_json::value::RawValue;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;

/// Longest call. The host treats a longer line as a protocol error and ends every run of the connection, so it
/// is rejected here.
pub(crate) const CALL_BYTES_MAX: usize = 8 * 1024 * 1024;

pub(crate) struct Calls {
    outbox: Arc<Outbox>,
    next_id: AtomicU64,
    open: Mutex<HashMap<u64, Waiting>>,
}

/// The receiver of a response.
enum Waiting {
    Answer(oneshot::Sender<Answer>),
    Items(Arc<Inbox>),
}

impl Calls {
    pub(crate) fn new(outbox: Arc<Outbox>) -> Self {
        Self { outbox, next_id: AtomicU64::new(1), open: Mutex::default() }
    }

    /// Sends a call and waits for its response; dropping the future cancels the call.
    pub(crate) async fn call(
        self: &Arc<Self>,
        name: &str,
        params: impl Serialize,
    ) -> Result<Box<RawValue>, AgentAPIError> {
        let (answer, answered) = oneshot::channel();
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let line = line(id, name, params)?;
        let mut open = self.insert(id, Waiting::Answer(answer));
        self.outbox.push(|buffer| buffer.extend_from_slice(&line)).await.map_err(|_| closed())?;
        open.sent = true;
        match answered.await {
            Ok(answer) => answer.map_err(api_error),
            Err(_) => Err(closed()),
        }
    }

    /// Sends a streaming call without waiting for room; see [`Calls::room`].
    pub(crate) fn open(
        self: &Arc<Self>,
        name: &str,
        params: impl Serialize,
    ) -> Result<(OpenCall, Arc<Inbox>), AgentAPIError> {
        let inbox = Arc::new(Inbox::default());
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let line = line(id, name, params)?;
        let mut open = self.insert(id, Waiting::Items(inbox.clone()));
        self.outbox.push_now(|buffer| buffer.extend_from_slice(&line)).map_err(|_| closed())?;
        open.sent = true;
        Ok((open, inbox))
    }

    /// Waits while too much is queued for the host.
    pub(crate) async fn room(&self) -> Result<(), AgentAPIError> {
        self.outbox.push(|_| {}).await.map_err(|_| closed())
    }

    /// Passes a response to its receiver; ignored if there is none.
    pub(crate) fn answer(&self, id: u64, answer: Answer) {
        let waiting = self.lock().remove(&id);
        match waiting {
            // A receiver that was dropped has cancelled the call.
            Some(Waiting::Answer(waiting)) => drop(waiting.send(answer)),
            Some(Waiting::Items(inbox)) => inbox.end(End::Answered(answer)),
            None => {}
        }
    }

    /// Passes an item to its stream. A stream that is full ends, and its call is cancelled.
    pub(crate) fn item(&self, id: u64, item: &RawValue) {
        let mut open = self.lock();
        let Some(Waiting::Items(inbox)) = open.get(&id) else { return };
        if !inbox.put(item) {
            open.remove(&id);
            drop(open);
            self.cancel(id);
        }
    }

    /// The connection ended: every open call fails.
    pub(crate) fn close(&self) {
        let open = std::mem::take(&mut *self.lock());
        for waiting in open.into_values() {
            if let Waiting::Items(inbox) = waiting {
                inbox.end(End::Closed);
            }
        }
    }

    fn insert(self: &Arc<Self>, id: u64, waiting: Waiting) -> OpenCall {
        self.lock().insert(id, waiting);
        OpenCall { calls: self.clone(), id, sent: false }
    }

    fn cancel(&self, id: u64) {
        let params = serde_json::json!({ "request_id": id });
        let cancel = Request::notification(method::REQUEST_CANCEL, params);
        // After the connection closed there is nothing to cancel.
        let _ = self.outbox.push_now(|buffer| {
            message::write(buffer, &cancel);
        });
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Waiting>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An awaited call; cancelled if dropped before its response.
pub(crate) struct OpenCall {
    calls: Arc<Calls>,
    id: u64,
    sent: bool,
}

impl Drop for OpenCall {
    fn drop(&mut self) {
        let unanswered = self.calls.lock().remove(&self.id).is_some();
        if unanswered && self.sent {
            self.calls.cancel(self.id);
        }
    }
}

fn line(id: u64, name: &str, params: impl Serialize) -> Result<Vec<u8>, AgentAPIError> {
    let mut line = Vec::new();
    if !message::write(&mut line, &Request::call(id, name, params)) {
        let text = format!("the parameters of `{name}` are not a JSON object");
        return Err(AgentAPIError::new(ErrorCode::InvalidArgument, text));
    }
    if line.len() > CALL_BYTES_MAX {
        let bytes = line.len();
        let text = format!("a call has at most {CALL_BYTES_MAX} bytes, this `{name}` has {bytes}");
        return Err(AgentAPIError::new(ErrorCode::PayloadTooLarge, text));
    }
    Ok(line)
}

/// `-32000` contains an `AgentAPIError`; any other code is an error of the wire.
pub(crate) fn api_error(error: RpcError) -> AgentAPIError {
    let api_error = match (error.code, error.data) {
        (API_ERROR, Some(data)) => serde_json::from_value(data).ok(),
        _ => None,
    };
    api_error.unwrap_or_else(|| {
        AgentAPIError::new(ErrorCode::RuntimeError, error.message).detail("rpc_code", error.code)
    })
}

pub(crate) fn closed() -> AgentAPIError {
    AgentAPIError::new(ErrorCode::RuntimeError, "the host closed the connection")
}
