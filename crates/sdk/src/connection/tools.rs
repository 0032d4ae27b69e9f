//! Calls of the plugin's tools.
//!
//! Invariant: a call gets one response, or is cancelled by the host and gets none; then its future is dropped.

use super::{Connection, Rejected, panic_text, read};
use crate::calls::CALL_BYTES_MAX;
use crate::tool::{self, Tool, ToolError};
use futures_util::FutureExt;
use greenroom_protocol::wire::{
    CallToolParams, INVALID_PARAMS, INVALID_REQUEST, RequestCancelParams, RequestId,
};
use serde_json::value::{RawValue, to_raw_value};
use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, MutexGuard, PoisonError};
use tokio_util::sync::CancellationToken;

/// Size of a response around its result.
const FRAME_BYTES: usize = 1024;

pub(super) type ToolCalls = HashMap<RequestId, CancellationToken>;

impl Connection {
    pub(super) fn call_tool(
        self: &Arc<Self>,
        id: RequestId,
        params: Option<&RawValue>,
    ) -> Result<(), Rejected> {
        let call: CallToolParams = read(params)?;
        let tool = self
            .plugin
            .tool(&call.tool_name)
            .ok_or_else(|| (INVALID_PARAMS, format!("unknown tool `{}`", call.tool_name)))?;
        let cancel = CancellationToken::new();
        let mut calls = self.tool_calls();
        if calls.contains_key(&id) {
            return Err((INVALID_REQUEST, "a call with this id is running".to_owned()));
        }
        calls.insert(id.clone(), cancel.clone());
        drop(calls);
        let connection = self.clone();
        self.tasks.spawn(async move {
            let answer = tokio::select! {
                biased;
                answer = answer(&tool, call) => Some(answer),
                () = cancel.cancelled() => None,
            };
            connection.tool_calls().remove(&id);
            if let Some(answer) = answer {
                connection.respond(id, answer).await;
            }
        });
        Ok(())
    }

    pub(super) fn cancel_tool_call(&self, params: Option<&RawValue>) {
        if let Ok(RequestCancelParams { request_id }) = read(params)
            && let Some(call) = self.tool_calls().get(&request_id)
        {
            call.cancel();
        }
    }

    /// The host is gone.
    pub(super) fn cancel_tool_calls(&self) {
        for call in self.tool_calls().values() {
            call.cancel();
        }
    }

    fn tool_calls(&self) -> MutexGuard<'_, ToolCalls> {
        self.tool_calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Calls until the end or a panic.
async fn answer(tool: &Tool, call: CallToolParams) -> Box<RawValue> {
    let outcome = AssertUnwindSafe(tool.call(call)).catch_unwind().await;
    let outcome = outcome.unwrap_or_else(|panic| {
        let text = panic_text(panic.as_ref());
        Err(ToolError::error(format!("the tool panicked: {text}")))
    });
    let to_json = |outcome| {
        to_raw_value(&tool::answer(outcome)).unwrap_or_else(|_| RawValue::NULL.to_owned())
    };
    let answer = to_json(outcome);
    if answer.get().len() <= CALL_BYTES_MAX - FRAME_BYTES {
        return answer;
    }
    let bytes = answer.get().len();
    let text = format!("the result has {bytes} bytes, at most {CALL_BYTES_MAX} are allowed");
    to_json(Err(ToolError::new("payload_too_large", text)))
}
