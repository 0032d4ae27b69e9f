//! Answers to `tools/call`: as JSON, or as a stream that stays open while the call waits for an approval or works.
//!
//! Invariant: a call has one answer, unless its client cancelled it. A client that goes away cancels its call,
//! because it could not get the answer any more.

use super::calls::InProgress;
use super::message::{RpcError, failed, succeeded};
use super::tool_list::ToolCall;
use crate::idle_timer::IdleTimer;
use crate::router::App;
use crate::stream;
use axum::Json;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream::{StreamExt, once, unfold};
use greenroom_host::{Answering, Items, RunProgram};
use greenroom_protocol::AgentAPIError;
use greenroom_protocol::api::Method;
use greenroom_protocol::api::tools::ToolCallResult;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::pin::Pin;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use tokio_util::task::task_tracker::TaskTrackerToken;

/// Interval of progress notifications: clients give up a call without news.
const NEWS: Duration = Duration::from_secs(10);
/// What each of those adds to the progress: less than any progress that a tool reports.
const NEWS_STEP: f64 = 1e-6;

/// What a call is answered with and under which id.
pub(super) struct Answer {
    pub(super) id: Value,
    pub(super) progress_token: Option<Value>,
    pub(super) cancelled: InProgress,
}

/// The result of a call, in progress.
type Working = Pin<Box<dyn Future<Output = Value> + Send>>;

/// Starts the call; its items are progress.
fn start(program: &RunProgram, call: ToolCall) -> Result<(Items, Working), Value> {
    Ok(match call {
        ToolCall::Granted(params) => {
            let (items, answering) = program.stream(Method::ToolsCall, params);
            (items, Box::pin(async move { tool_result(answering).await }))
        }
        ToolCall::Own(tool, arguments) => {
            let params = tool.params(arguments).map_err(|problem| refused(&problem))?;
            let (items, answering) = program.stream(tool.method(), params);
            let work = async move {
                match answering.await {
                    Ok(answer) => {
                        let answer: Value = serde_json::from_str(answer.get()).unwrap_or_default();
                        json!({"content": tool.content(&answer), "isError": false})
                    }
                    Err(error) => api_error(&error),
                }
            };
            (items, Box::pin(work))
        }
    })
}

/// As one JSON body.
pub(super) async fn whole(program: RunProgram, call: ToolCall, answer: Answer) -> Response {
    let (mut items, working) = match start(&program, call) {
        Ok(started) => started,
        Err(result) => return Json(succeeded(&answer.id, result)).into_response(),
    };
    let drained = async {
        while items.recv().await.is_some() {}
        std::future::pending::<()>().await
    };
    tokio::select! {
        result = working => Json(succeeded(&answer.id, result)).into_response(),
        () = answer.cancelled.token.cancelled() => {
            Json(failed(&answer.id, &RpcError::cancelled())).into_response()
        }
        () = drained => Json(failed(&answer.id, &RpcError::cancelled())).into_response(),
    }
}

/// As a stream of events: progress, then the answer.
pub(super) fn streamed(app: &App, program: RunProgram, call: ToolCall, answer: Answer) -> Response {
    let (items, working) = match start(&program, call) {
        Ok(started) => started,
        Err(result) => return Json(succeeded(&answer.id, result)).into_response(),
    };
    let state = Streaming {
        items: Some(items),
        working,
        answer,
        progress: 0.0,
        idle: IdleTimer::new(NEWS),
        close: app.streams.close.clone(),
        _open: app.streams.open.token(),
    };
    // A comment first, so that the headers are sent at once.
    let head = once(async { Bytes::from_static(b": working\n\n") });
    let frames = unfold(Some(state), |state| async move {
        let mut state = state?;
        let (bytes, is_last) = state.next().await?;
        Some((bytes, (!is_last).then_some(state)))
    });
    stream::respond(head.chain(frames))
}

struct Streaming {
    items: Option<Items>,
    working: Working,
    answer: Answer,
    progress: f64,
    idle: IdleTimer,
    close: CancellationToken,
    _open: TaskTrackerToken,
}

impl Streaming {
    /// The next frame, and whether it is the last; none for a cancelled call.
    async fn next(&mut self) -> Option<(Bytes, bool)> {
        loop {
            let item = tokio::select! {
                biased;
                () = self.answer.cancelled.token.cancelled() => return None,
                item = next_item(&mut self.items) => item,
                result = &mut self.working => {
                    return Some((frame(&succeeded(&self.answer.id, result)), true));
                }
                () = self.close.cancelled() => return None,
                () = self.idle.elapsed() => {
                    self.idle.reset();
                    let progress = json!({"progress": self.progress + NEWS_STEP,
                        "message": "in progress"});
                    let keep_alive = Bytes::from_static(b": keep-alive\n\n");
                    return Some((self.progress(progress).unwrap_or(keep_alive), false));
                }
            };
            self.idle.reset();
            if let Some(bytes) = item.and_then(|item| self.progress_of(&item)) {
                return Some((bytes, false));
            }
        }
    }

    fn progress_of(&mut self, item: &RawValue) -> Option<Bytes> {
        let mut item: Value = serde_json::from_str(item.get()).ok()?;
        let kind = item.as_object_mut()?.remove("type")?;
        (kind == "progress").then(|| self.progress(item)).flatten()
    }

    /// A notification, if the client asked for them. Progress only grows.
    fn progress(&mut self, mut params: Value) -> Option<Bytes> {
        let token = self.answer.progress_token.clone()?;
        let progress = params.get("progress").and_then(Value::as_f64)?;
        if progress <= self.progress {
            return None;
        }
        self.progress = progress;
        params["progressToken"] = token;
        Some(frame(&json!({"jsonrpc": "2.0", "method": "notifications/progress",
            "params": params})))
    }
}

/// The next item; waits for ever after the last.
async fn next_item(items: &mut Option<Items>) -> Option<Box<RawValue>> {
    match items {
        Some(open) => {
            let item = open.recv().await;
            if item.is_none() {
                *items = None;
            }
            item
        }
        None => std::future::pending().await,
    }
}

fn frame(message: &Value) -> Bytes {
    Bytes::from(format!("event: message\ndata: {message}\n\n"))
}

async fn tool_result(answering: Answering) -> Value {
    let answer = match answering.await {
        Ok(answer) => answer,
        Err(error) => return api_error(&error),
    };
    let result: ToolCallResult = serde_json::from_str(answer.get()).unwrap_or_default();
    let is_error = result.error.as_ref().is_some_and(|error| !error.is_null());
    let text = match (result.content, result.error, result.result) {
        (Some(content), _, _) => content,
        (None, Some(error), _) if is_error => error.to_string(),
        (None, _, Value::String(text)) => text,
        (None, _, result) => result.to_string(),
    };
    json!({"content": [{"type": "text", "text": text}], "isError": is_error})
}

/// A refusal of the proxy, for the model to read.
fn api_error(error: &AgentAPIError) -> Value {
    json!({"content": [{"type": "text", "text": json!(error).to_string()}], "isError": true})
}

fn refused(problem: &str) -> Value {
    json!({"content": [{"type": "text", "text": problem}], "isError": true})
}
