//! Calls from a run to the host: sent, awaited, given up.
//!
//! Invariant: every call ends: by its answer, at the run's deadline, by cancellation or with the
//! connection. A call that nobody awaits any more is given up at the host by `request.cancel`.

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

pub(crate) struct Calls {
    outbox: Arc<Outbox>,
    next_id: AtomicU64,
    open: Mutex<HashMap<u64, oneshot::Sender<Answer>>>,
}

impl Calls {
    pub(crate) fn new(outbox: Arc<Outbox>) -> Self {
        Self { outbox, next_id: AtomicU64::new(1), open: Mutex::default() }
    }

    /// Sends one call and waits for its answer; dropping the future gives the call up.
    pub(crate) async fn call(
        &self,
        name: &str,
        params: impl Serialize,
    ) -> Result<Box<RawValue>, AgentAPIError> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let (answer, answered) = oneshot::channel();
        let request = Request::call(id, name, params);
        let mut line = Vec::new();
        if !message::write(&mut line, &request) {
            let text = format!("the parameters of `{name}` are not JSON");
            return Err(AgentAPIError::new(ErrorCode::InvalidArgument, text));
        }
        self.lock().insert(id, answer);
        let mut open = OpenCall { calls: self, id, sent: false };
        self.outbox.push(|buffer| buffer.extend_from_slice(&line)).await.map_err(|_| closed())?;
        open.sent = true;
        match answered.await {
            Ok(Ok(result)) => Ok(result),
            Ok(Err(error)) => Err(api_error(error)),
            Err(_) => Err(closed()),
        }
    }

    /// Hands an answer to whoever waits for it; false when nobody does.
    pub(crate) fn answer(&self, id: u64, answer: Answer) -> bool {
        let waiting = self.lock().remove(&id);
        waiting.is_some_and(|waiting| waiting.send(answer).is_ok())
    }

    /// The connection is over: every open call fails.
    pub(crate) fn close(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, oneshot::Sender<Answer>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct OpenCall<'a> {
    calls: &'a Calls,
    id: u64,
    sent: bool,
}

impl Drop for OpenCall<'_> {
    fn drop(&mut self) {
        let unanswered = self.calls.lock().remove(&self.id).is_some();
        if unanswered && self.sent {
            let params = serde_json::json!({ "request_id": self.id });
            let giving_up = Request::notification(method::REQUEST_CANCEL, params);
            // A closed connection has no call left to give up.
            let _ = self.calls.outbox.push_now(|buffer| {
                message::write(buffer, &giving_up);
            });
        }
    }
}

/// `-32000` carries an `AgentAPIError`; any other code is an error of the wire.
fn api_error(error: RpcError) -> AgentAPIError {
    let refused = match (error.code, error.data) {
        (API_ERROR, Some(data)) => serde_json::from_value(data).ok(),
        _ => None,
    };
    refused.unwrap_or_else(|| {
        AgentAPIError::new(ErrorCode::RuntimeError, error.message).detail("rpc_code", error.code)
    })
}

fn closed() -> AgentAPIError {
    AgentAPIError::new(ErrorCode::RuntimeError, "the host closed the connection")
}
