//! One connection to a host: handles its messages.
//!
//! Invariant: every request that is not cancelled gets exactly one response; a run ends with one terminal result and
//! then the response to its `run_agent`; no message and no run ends the process, except `shutdown`.

use crate::calls::Calls;
use crate::message::{self, ErrorResponse, Response};
use crate::outbox::Outbox;
use crate::plugin::{AnyRunner, CheckedPlugin};
use crate::{RunCtx, RunFailure, RunResult};
use futures_util::FutureExt;
use greenroom_protocol::wire::{
    CancelParams, INVALID_PARAMS, INVALID_REQUEST, Incoming, InitializeParams, InitializeResult,
    METHOD_NOT_FOUND, PARSE_ERROR, RequestId, method,
};
use greenroom_protocol::{AgentRunRequest, PROTOCOL_VERSION};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

mod tools;

/// How long the runs may take to end after the connection ended.
const DRAIN: Duration = Duration::from_secs(2);

pub(crate) struct Connection {
    pub(crate) outbox: Arc<Outbox>,
    plugin: Arc<CheckedPlugin>,
    calls: Arc<Calls>,
    runs: Mutex<HashMap<String, CancellationToken>>,
    tool_calls: Mutex<tools::ToolCalls>,
    tasks: TaskTracker,
}

pub(crate) enum Next {
    Read,
    /// The host requested shutdown; respond when the runs have ended.
    ShutDown(Option<RequestId>),
}

/// An error response: JSON-RPC code and message.
type Rejected = (i64, String);

impl Connection {
    pub(crate) fn new(plugin: Arc<CheckedPlugin>) -> Arc<Self> {
        let outbox = Arc::new(Outbox::default());
        let calls = Arc::new(Calls::new(outbox.clone()));
        Arc::new(Self {
            outbox,
            plugin,
            calls,
            runs: Mutex::default(),
            tool_calls: Mutex::default(),
            tasks: TaskTracker::new(),
        })
    }

    /// Handles one message of the host.
    pub(crate) async fn receive(self: &Arc<Self>, bytes: &[u8]) -> Next {
        let incoming = match serde_json::from_slice::<Incoming<'_>>(bytes) {
            Ok(incoming) => incoming,
            Err(error) => {
                let is_json = serde_json::from_slice::<&RawValue>(bytes).is_ok();
                let code = if is_json { INVALID_REQUEST } else { PARSE_ERROR };
                self.reject(None, (code, error.to_string())).await;
                return Next::Read;
            }
        };
        let Some(name) = incoming.method.as_deref() else {
            self.response(incoming).await;
            return Next::Read;
        };
        if name == method::SHUTDOWN {
            return Next::ShutDown(incoming.id);
        }
        match incoming.id {
            Some(id) => self.request(id, name, incoming.params).await,
            None => self.notification(name, incoming.params),
        }
        Next::Read
    }

    /// Ends all runs, responds to `shutdown` if that was the reason, and lets the writer finish.
    pub(crate) async fn drain(&self, shutdown: Option<RequestId>) {
        for cancel in self.runs().values() {
            cancel.cancel();
        }
        self.cancel_tool_calls();
        self.calls.close();
        self.tasks.close();
        // Runs that still exist are dropped with the runtime.
        let _ = tokio::time::timeout(DRAIN, self.tasks.wait()).await;
        if let Some(id) = shutdown {
            self.respond(id, Empty {}).await;
        }
        self.outbox.close();
    }

    /// The connection broke.
    pub(crate) fn abandon(&self) {
        self.outbox.close();
        self.cancel_tool_calls();
        self.calls.close();
        for cancel in self.runs().values() {
            cancel.cancel();
        }
    }

    async fn request(self: &Arc<Self>, id: RequestId, name: &str, params: Option<&RawValue>) {
        let rejected = match name {
            method::INITIALIZE => match self.initialize(params) {
                Ok(answer) => return self.respond(id, answer).await,
                Err(rejected) => rejected,
            },
            method::LIST_AGENT_RUNNERS => {
                let runners = self.plugin.sent_manifests();
                return self.respond(id, serde_json::json!({ "runners": runners })).await;
            }
            method::LIST_TOOLS => {
                let tools = self.plugin.tools();
                return self.respond(id, serde_json::json!({ "tools": tools })).await;
            }
            method::CALL_TOOL => match self.call_tool(id.clone(), params) {
                Ok(()) => return,
                Err(rejected) => rejected,
            },
            method::RUN_AGENT => match self.start(id.clone(), params) {
                Ok(()) => return,
                Err(rejected) => rejected,
            },
            _ => (METHOD_NOT_FOUND, format!("unknown method `{name}`")),
        };
        self.reject(Some(id), rejected).await;
    }

    /// Unknown notifications are ignored, as JSON-RPC requires.
    fn notification(&self, name: &str, params: Option<&RawValue>) {
        match name {
            method::RUN_CANCEL => {
                if let Ok(cancel) = read::<CancelParams>(params)
                    && let Some(token) = self.runs().get(&cancel.run_id)
                {
                    token.cancel();
                }
            }
            method::REQUEST_CANCEL => self.cancel_tool_call(params),
            method::STREAM_ITEM => {
                if let Ok(StreamItem { request_id: RequestId::Number(id), item }) = read(params)
                    && id > 0
                {
                    self.calls.item(id.unsigned_abs(), item);
                }
            }
            _ => {}
        }
    }

    fn initialize(&self, params: Option<&RawValue>) -> Result<InitializeResult, Rejected> {
        let params: InitializeParams = read(params)?;
        let major = params.protocol_version.split('.').next();
        if major != Some(PROTOCOL_VERSION) {
            let text = format!(
                "protocol version `{}` is not supported, expected `{PROTOCOL_VERSION}`",
                params.protocol_version
            );
            return Err((INVALID_PARAMS, text));
        }
        Ok(InitializeResult {
            protocol_version: PROTOCOL_VERSION.to_owned(),
            plugin: self.plugin.identity.clone(),
        })
    }

    fn start(self: &Arc<Self>, id: RequestId, params: Option<&RawValue>) -> Result<(), Rejected> {
        let request: AgentRunRequest = read(params)?;
        let runner = self
            .plugin
            .get(&request.runner_id)
            .ok_or_else(|| (INVALID_PARAMS, format!("unknown runner `{}`", request.runner_id)))?;
        let ctx = RunCtx::new(request.context, self.outbox.clone(), self.calls.clone());
        let mut runs = self.runs();
        if runs.contains_key(&ctx.run_id) {
            return Err((INVALID_PARAMS, format!("run `{}` is already running", ctx.run_id)));
        }
        runs.insert(ctx.run_id.clone(), ctx.cancellation().clone());
        drop(runs);
        let connection = self.clone();
        self.tasks.spawn(async move { connection.run(id, runner, ctx).await });
        Ok(())
    }

    async fn run(&self, id: RequestId, runner: Arc<dyn AnyRunner>, ctx: RunCtx) {
        let outcome = self.outcome(runner, &ctx).await;
        if ctx.end() {
            let terminal = match outcome {
                _ if ctx.is_cancelled() => RunResult::failed(RunFailure::cancelled()),
                Ok(()) => RunResult { usage: ctx.take_usage(), ..RunResult::completed("stop") },
                Err(failure) => RunResult::failed(failure),
            };
            ctx.send_terminal(terminal).await;
        }
        self.runs().remove(&ctx.run_id);
        self.respond(id, Empty {}).await;
    }

    /// Runs until the end, a panic, or the end of the grace period after a cancellation.
    async fn outcome(&self, runner: Arc<dyn AnyRunner>, ctx: &RunCtx) -> Result<(), RunFailure> {
        let running = AssertUnwindSafe(async { runner.start(ctx.clone()).await }).catch_unwind();
        let overdue = async {
            ctx.cancellation().cancelled().await;
            tokio::time::sleep(self.plugin.cancel_grace).await;
        };
        tokio::select! {
            biased;
            ended = running => ended.unwrap_or_else(|panic| Err(panicked(panic.as_ref()))),
            () = overdue => Err(RunFailure::cancelled()),
        }
    }

    /// A response to one of our calls, or an invalid message.
    async fn response(&self, incoming: Incoming<'_>) {
        let answer = match (incoming.error, incoming.result) {
            (Some(error), _) => Err(error),
            (None, Some(result)) => Ok(result.to_owned()),
            (None, None) => Ok(RawValue::NULL.to_owned()),
        };
        match incoming.id {
            Some(RequestId::Number(id)) if id > 0 => {
                self.calls.answer(id.unsigned_abs(), answer);
            }
            // The host's report of an invalid line has no id; responding to it would never end.
            None if answer.is_err() => {}
            id => {
                self.reject(id, (INVALID_REQUEST, "`method` is missing".to_owned())).await;
            }
        }
    }

    async fn respond(&self, id: RequestId, result: impl Serialize) {
        self.send(&Response::new(id, result)).await;
    }

    async fn reject(&self, id: Option<RequestId>, (code, message): Rejected) {
        self.send(&ErrorResponse::new(id, code, message)).await;
    }

    async fn send(&self, message: &impl Serialize) {
        // The connection may be closed.
        let _ = self
            .outbox
            .push(|buffer| {
                message::write(buffer, message);
            })
            .await;
    }

    fn runs(&self) -> MutexGuard<'_, HashMap<String, CancellationToken>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Serialize)]
struct Empty {}

/// The parameters of `stream.item`, with an unparsed item.
#[derive(Deserialize)]
struct StreamItem<'a> {
    request_id: RequestId,
    #[serde(borrow)]
    item: &'a RawValue,
}

fn read<'a, T: Deserialize<'a>>(params: Option<&'a RawValue>) -> Result<T, Rejected> {
    let params = params.map_or("{}", RawValue::get);
    serde_json::from_str(params).map_err(|error| (INVALID_PARAMS, error.to_string()))
}

fn panicked(panic: &(dyn std::any::Any + Send)) -> RunFailure {
    RunFailure::error(format!("the runner panicked: {}", panic_text(panic)))
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("no message")
}
