//! One run as its runner sees it: context, results, API.
//!
//! Invariant: results have this run's id and increasing sequence numbers, in the order in which they were sent;
//! nothing is sent after a terminal result or a cancellation.

use crate::calls::{Calls, OpenCall};
use crate::deadline::{Deadline, Pause};
use crate::inbox::Inbox;
use crate::local;
use crate::message::{self, DeltaChunk, DeltaData, Request, ResultParams};
use crate::outbox::Outbox;
use crate::unchecked::Unchecked;
use crate::{Gateway, RunFailure, RunResult, environment};
use futures_util::{Stream, StreamExt};
use greenroom_protocol::api::{InvalidParams, Params};
use greenroom_protocol::result::kind;
use greenroom_protocol::wire::method;
use greenroom_protocol::{AgentAPIError, AgentRunContext, AgentRuntimeContext, ErrorCode, Object};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The context of a run; derefs to the protocol's `AgentRunContext`, and is cheap to clone.
#[derive(Clone)]
pub struct RunCtx(Arc<Shared>);

struct Shared {
    context: AgentRunContext,
    outbox: Arc<Outbox>,
    calls: Arc<Calls>,
    cancel: CancellationToken,
    deadline: Deadline,
    /// The last sequence number; only changed while the outbox is locked, so numbers and order agree.
    sequence: AtomicI64,
    ended: AtomicBool,
    usage: Mutex<Option<Object>>,
}

impl Deref for RunCtx {
    type Target = AgentRunContext;
    fn deref(&self) -> &AgentRunContext {
        &self.0.context
    }
}

impl RunCtx {
    pub(crate) fn new(context: AgentRunContext, outbox: Arc<Outbox>, calls: Arc<Calls>) -> Self {
        let deadline = remaining_s(&context.runtime)
            .and_then(|seconds| Duration::try_from_secs_f64(seconds.max(0.0)).ok())
            .and_then(|remaining| Instant::now().checked_add(remaining));
        Self(Arc::new(Shared {
            context,
            outbox,
            calls,
            cancel: CancellationToken::new(),
            deadline: Deadline::new(deadline),
            sequence: AtomicI64::new(0),
            ended: AtomicBool::new(false),
            usage: Mutex::default(),
        }))
    }

    /// The text of the event; empty if it has none.
    pub fn text(&self) -> &str {
        self.input.text.as_deref().unwrap_or_default()
    }

    /// Where programs that this runner starts reach tools and models of the run, and their token.
    pub fn gateway(&self) -> Option<Gateway> {
        Gateway::of(&self.0.context, environment::host_url())
    }

    /// A value of the agent's `config`.
    pub fn config(&self, key: &str) -> Option<&Value> {
        self.0.context.config.get(key)
    }

    /// Cancelled when the host cancels the run. Sending and calling fail from then on, so a runner that uses `?`
    /// stops by itself; one that waits for something else should watch this.
    pub fn cancellation(&self) -> &CancellationToken {
        &self.0.cancel
    }

    pub fn is_cancelled(&self) -> bool {
        self.0.cancel.is_cancelled()
    }

    /// The time left until the deadline; `None` without a deadline. It is paused while
    /// [`platform().request_action`](crate::PlatformApi::request_action) waits for approval.
    pub fn remaining(&self) -> Option<Duration> {
        self.0.deadline.remaining()
    }

    /// Waits, unless the run is cancelled.
    pub async fn sleep(&self, duration: Duration) -> Result<(), RunFailure> {
        self.unless_cancelled(tokio::time::sleep(duration)).await
    }

    /// The future's output, or the failure `cancelled` if the run is cancelled first.
    pub async fn unless_cancelled<T>(
        &self,
        future: impl Future<Output = T>,
    ) -> Result<T, RunFailure> {
        self.0.cancel.run_until_cancelled(future).await.ok_or_else(RunFailure::cancelled)
    }

    /// Sends a piece of the reply.
    pub async fn delta(&self, text: &str) -> Result<(), RunFailure> {
        let chunk = DeltaChunk { role: "assistant", content: text };
        self.send(kind::MESSAGE_DELTA, DeltaData { chunk }, None).await
    }

    /// Sends the complete reply, after its deltas or without any.
    pub async fn message(&self, text: impl Into<String>) -> Result<(), RunFailure> {
        self.emit(RunResult::message(text)).await
    }

    /// Sends any result. After a terminal result nothing is accepted.
    pub async fn emit(&self, result: RunResult) -> Result<(), RunFailure> {
        self.send(&result.kind, &result.data, result.usage.as_ref()).await?;
        if result.is_terminal() {
            self.0.ended.store(true, Ordering::Release);
        }
        Ok(())
    }

    /// Sends all results of a stream, up to its end or its first failure.
    pub async fn emit_all(
        &self,
        results: impl Stream<Item = Result<RunResult, RunFailure>>,
    ) -> Result<(), RunFailure> {
        let mut results = std::pin::pin!(results);
        while let Some(result) = self.unless_cancelled(results.next()).await? {
            self.emit(result?).await?;
        }
        Ok(())
    }

    /// Waits until everything sent has left the process.
    pub async fn flush(&self) {
        self.0.outbox.flush().await;
    }

    /// Tokens and cost, for the `run.completed` that ends this run.
    pub fn set_usage(&self, usage: Object) {
        *self.0.usage.lock().unwrap_or_else(PoisonError::into_inner) = Some(usage);
    }

    /// Calls a host method (CONTRACT §4) by name, without the checks of the typed methods; `run_id` is added. Ends at
    /// the run's deadline at the latest; dropping the future cancels the call.
    pub async fn call<T: DeserializeOwned>(
        &self,
        method: &str,
        params: impl Serialize,
    ) -> Result<T, AgentAPIError> {
        let params = self.with_run_id(method, params)?;
        read(method, &self.request(method, params).await?)
    }

    /// Sends without checks: for tests of hosts.
    pub fn unchecked(&self) -> Unchecked<'_> {
        Unchecked { ctx: self, outbox: &self.0.outbox }
    }

    /// Calls a method with typed parameters, after the local checks.
    pub(crate) async fn ask<P: Params, T: DeserializeOwned>(
        &self,
        params: &P,
    ) -> Result<T, AgentAPIError> {
        self.check(params)?;
        let method = P::METHOD.as_str();
        read(method, &self.request(method, self.for_run(params)).await?)
    }

    /// Checks that fail without a request.
    pub(crate) fn check<P: Params>(&self, params: &P) -> Result<(), AgentAPIError> {
        local::available(self, P::METHOD)?;
        params.check().map_err(|reason| InvalidParams::new(reason).into())
    }

    /// Sends a streaming call immediately.
    pub(crate) fn open<P: Params>(
        &self,
        params: &P,
    ) -> Result<(OpenCall, Arc<Inbox>), AgentAPIError> {
        self.0.calls.open(P::METHOD.as_str(), self.for_run(params))
    }

    /// Waits until the host has read enough of what was sent.
    pub(crate) async fn room(&self) -> Result<(), AgentAPIError> {
        self.0.calls.room().await
    }

    /// Pauses the run's deadline on this side.
    pub(crate) fn pause_deadline(&self) -> Pause<'_> {
        self.0.deadline.pause()
    }

    /// Returns when the run is cancelled or its deadline passes while waiting for `method`.
    pub(crate) async fn interrupted(&self, method: &str) -> AgentAPIError {
        tokio::select! {
            biased;
            () = self.0.cancel.cancelled() => {
                AgentAPIError::new(ErrorCode::RuntimeError, "the run was cancelled")
            }
            () = self.0.deadline.passed() => {
                let text = format!("the run's deadline passed while waiting for `{method}`");
                AgentAPIError::new(ErrorCode::DeadlineExceeded, text)
            }
        }
    }

    pub(crate) fn take_usage(&self) -> Option<Object> {
        self.0.usage.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Marks the run as ended; true if it was not.
    pub(crate) fn end(&self) -> bool {
        !self.0.ended.swap(true, Ordering::AcqRel)
    }

    /// Sends the terminal result, also for a cancelled run; the caller has marked the end.
    pub(crate) async fn send_terminal(&self, result: RunResult) {
        let usage = result.usage.as_ref();
        // After a closed connection the host has already ended the run.
        let _ = self.push(&result.kind, &result.data, usage).await;
    }

    async fn send(
        &self,
        kind: &str,
        data: impl Serialize,
        usage: Option<&Object>,
    ) -> Result<(), RunFailure> {
        if self.is_cancelled() {
            return Err(RunFailure::cancelled());
        }
        if self.0.ended.load(Ordering::Acquire) {
            return Err(RunFailure::error("the run has already sent its terminal result"));
        }
        self.push(kind, data, usage).await
    }

    async fn push(
        &self,
        kind: &str,
        data: impl Serialize,
        usage: Option<&Object>,
    ) -> Result<(), RunFailure> {
        let run_id = &self.0.context.run_id;
        let numbered = |buffer: &mut Vec<u8>| {
            let sequence = Some(self.0.sequence.fetch_add(1, Ordering::Relaxed) + 1);
            let params = ResultParams { run_id, kind, data, sequence, usage };
            message::write(buffer, &Request::notification(method::RUN_RESULT, params));
        };
        Ok(self.0.outbox.push(numbered).await?)
    }

    async fn request(
        &self,
        method: &str,
        params: impl Serialize,
    ) -> Result<Box<RawValue>, AgentAPIError> {
        tokio::select! {
            biased;
            error = self.interrupted(method) => Err(error),
            answer = self.0.calls.call(method, params) => answer,
        }
    }

    fn for_run<'a, P>(&'a self, params: &'a P) -> ForRun<'a, P> {
        ForRun { run_id: &self.run_id, params }
    }

    fn with_run_id(&self, method: &str, params: impl Serialize) -> Result<Object, AgentAPIError> {
        let invalid = |reason: String| {
            let text = format!("the parameters of `{method}` {reason}");
            AgentAPIError::new(ErrorCode::InvalidArgument, text)
        };
        match serde_json::to_value(params) {
            Ok(Value::Object(mut object)) => {
                object.insert("run_id".to_owned(), self.run_id.clone().into());
                Ok(object)
            }
            Ok(_) => Err(invalid("are not an object".to_owned())),
            Err(error) => Err(invalid(format!("are not JSON: {error}"))),
        }
    }
}

/// Parameters with the run id.
#[derive(Serialize)]
struct ForRun<'a, P> {
    run_id: &'a str,
    #[serde(flatten)]
    params: &'a P,
}

/// Parses a response or an item.
pub(crate) fn read<T: DeserializeOwned>(method: &str, json: &RawValue) -> Result<T, AgentAPIError> {
    serde_json::from_str(json.get()).map_err(|error| {
        let text = format!("unexpected response to `{method}`: {error}");
        AgentAPIError::new(ErrorCode::RuntimeError, text)
    })
}

/// The time left: as told, else until the deadline by this machine's clock.
fn remaining_s(runtime: &AgentRuntimeContext) -> Option<f64> {
    let told = runtime.metadata.get("remaining_ms").and_then(Value::as_f64);
    let now = std::time::UNIX_EPOCH.elapsed().unwrap_or_default().as_secs_f64();
    told.map(|ms| ms / 1000.0).or_else(|| Some(runtime.deadline_at? - now))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_the_remaining_time_the_deadline_is_read() {
        let now = std::time::UNIX_EPOCH.elapsed().unwrap_or_default().as_secs_f64();
        let mut runtime =
            AgentRuntimeContext { deadline_at: Some(now + 60.0), ..AgentRuntimeContext::default() };
        let left = remaining_s(&runtime);
        assert!(left.is_some_and(|left| (50.0..=60.0).contains(&left)), "{left:?}");
        runtime.metadata.insert("remaining_ms".to_owned(), 1500.into());
        assert_eq!(remaining_s(&runtime), Some(1.5));
        assert_eq!(remaining_s(&AgentRuntimeContext::default()), None);
    }
}
