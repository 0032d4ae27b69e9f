//! What the host asks of a plugin's tools.
//!
//! Invariant: a call is answered once, or given up by the host and not answered at all; its future is then
//! dropped.

use super::{Connection, Refused, panic_text, read};
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

/// What an answer has around its result.
const FRAME_BYTES: usize = 1024;

pub(super) type ToolCalls = HashMap<RequestId, CancellationToken>;

impl Connection {
    pub(super) fn call_tool(
        self: &Arc<Self>,
        id: RequestId,
        params: Option<&RawValue>,
    ) -> Result<(), Refused> {
        let call: CallToolParams = read(params)?;
        let tool = self
            .plugin
            .tool(&call.tool_name)
            .ok_or_else(|| (INVALID_PARAMS, format!("there is no tool `{}`", call.tool_name)))?;
        let given_up = CancellationToken::new();
        let mut calls = self.tool_calls();
        if calls.contains_key(&id) {
            return Err((INVALID_REQUEST, "a call with this id is under way".to_owned()));
        }
        calls.insert(id.clone(), given_up.clone());
        drop(calls);
        let connection = self.clone();
        self.tasks.spawn(async move {
            let answer = tokio::select! {
                biased;
                answer = answer(&tool, call) => Some(answer),
                () = given_up.cancelled() => None,
            };
            connection.tool_calls().remove(&id);
            if let Some(answer) = answer {
                connection.respond(id, answer).await;
            }
        });
        Ok(())
    }

    pub(super) fn give_up_tool_call(&self, params: Option<&RawValue>) {
        if let Ok(RequestCancelParams { request_id }) = read(params)
            && let Some(call) = self.tool_calls().get(&request_id)
        {
            call.cancel();
        }
    }

    /// The host is gone: nobody waits for any call.
    pub(super) fn give_up_tool_calls(&self) {
        for call in self.tool_calls().values() {
            call.cancel();
        }
    }

    fn tool_calls(&self) -> MutexGuard<'_, ToolCalls> {
        self.tool_calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Calls to the end, or to the panic.
async fn answer(tool: &Tool, call: CallToolParams) -> Box<RawValue> {
    let outcome = AssertUnwindSafe(tool.call(call)).catch_unwind().await;
    let outcome = outcome.unwrap_or_else(|panic| {
        let text = panic_text(panic.as_ref());
        Err(ToolError::error(format!("the tool panicked: {text}")))
    });
    let written = |outcome| {
        to_raw_value(&tool::answer(outcome)).unwrap_or_else(|_| RawValue::NULL.to_owned())
    };
    let answer = written(outcome);
    if answer.get().len() <= CALL_BYTES_MAX - FRAME_BYTES {
        return answer;
    }
    let bytes = answer.get().len();
    let text = format!("the answer has {bytes} bytes, a host takes {CALL_BYTES_MAX} at most");
    written(Err(ToolError::new("payload_too_large", text)))
}
