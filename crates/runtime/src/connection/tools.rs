//! Calls of a plugin's tools on one connection.
//!
//! Invariant: a call ends once: by its answer, by a fault of the plugin, by its caller, or with the
//! connection. The plugin is told of a call that was given up, and its late answer is dropped.

use super::{Connection, State, Waiting};
use crate::tools::{PluginToolAnswer, PluginToolCall, PluginToolError};
use greenroom_protocol::wire::{RpcError, method};
use serde_json::value::RawValue;
use std::sync::Arc;
use tokio::sync::oneshot;

/// Recent calls that were given up and may still be answered.
const GIVEN_UP_MAX: usize = 4096;

pub(super) type ToolSender = oneshot::Sender<Result<Box<RawValue>, PluginToolError>>;

impl Connection {
    /// Calls a tool; dropping the future gives the call up.
    pub(crate) async fn call_tool(
        self: &Arc<Self>,
        call: &PluginToolCall,
    ) -> Result<PluginToolAnswer, PluginToolError> {
        let params = self.codec.tool_params(call);
        let bytes_max = self.limits.configured.line_bytes;
        if params.get().len() > bytes_max {
            let message = format!("the parameters have more than {bytes_max} bytes");
            return Err(PluginToolError::TooLarge { message });
        }
        let _room = self.codec.room_for_tool_call().await;
        let (sender, answer) = oneshot::channel();
        let mut open = self.open_tool_call(sender)?;
        if let Err(error) = self.send_request(open.number, method::CALL_TOOL, &params) {
            let reason = format!("takes no calls: {error}");
            self.replace(reason.clone());
            return Err(PluginToolError::Unavailable { message: self.says(&reason) });
        }
        open.sent = true;
        let answer = answer.await.unwrap_or_else(|_| {
            let reason = self.reason().unwrap_or_else(|| "did not answer".to_owned());
            Err(PluginToolError::Crashed { message: self.says(&reason) })
        })?;
        self.codec.tool_answer(&answer).map_err(|error| PluginToolError::Protocol {
            message: self.says(&format!("answered `call_tool` with something malformed: {error}")),
        })
    }

    /// How many runs are live.
    pub(crate) fn runs_in_flight(&self) -> usize {
        let state = self.lock();
        let live = *self.live.borrow();
        live.saturating_sub(state.tool_calls)
    }

    pub(crate) fn has_tool_calls(&self) -> bool {
        self.lock().tool_calls > 0
    }

    /// Ends one call for a fault of the plugin; returns whether it was in flight.
    pub(crate) fn fail_tool_call(&self, number: i64, error: PluginToolError) -> bool {
        self.take_tool_call(&mut self.lock(), number)
            // The caller may have given up.
            .map(|sender| drop(sender.send(Err(error))))
            .is_some()
    }

    /// Ends every call for a fault of the plugin.
    pub(crate) fn fail_tool_calls(&self, error: &PluginToolError) {
        let mut state = self.lock();
        let is_tool = |waiting: &Waiting| matches!(waiting, Waiting::Tool(_));
        let calls = state.requests.iter().filter(|(_, waiting)| is_tool(waiting));
        let numbers: Vec<i64> = calls.map(|(number, _)| *number).collect();
        for number in numbers {
            if let Some(sender) = self.take_tool_call(&mut state, number) {
                let _ = sender.send(Err(error.clone()));
            }
        }
    }

    /// The plugin has answered a call.
    pub(super) fn tool_answered(
        &self,
        state: &mut State,
        sender: ToolSender,
        answer: Result<&RawValue, RpcError>,
    ) {
        self.tool_call_over(state);
        // The caller may have given up.
        let _ = sender.send(answer.map(ToOwned::to_owned).map_err(PluginToolError::refused));
    }

    fn open_tool_call(self: &Arc<Self>, sender: ToolSender) -> Result<OpenCall, PluginToolError> {
        let unavailable =
            |clause: &str| PluginToolError::Unavailable { message: self.says(clause) };
        let mut state = self.lock();
        if let Some(reason) = self.reason() {
            return Err(unavailable(&reason));
        }
        if state.tool_calls >= self.limits.tool_calls_in_flight_max {
            return Err(unavailable("has as many tool calls as it may"));
        }
        state.tool_calls += 1;
        self.live.send_modify(|live| *live += 1);
        let number = state.expect(Waiting::Tool(sender));
        Ok(OpenCall { connection: self.clone(), number, sent: false })
    }

    fn take_tool_call(&self, state: &mut State, number: i64) -> Option<ToolSender> {
        match state.requests.remove(&number) {
            Some(Waiting::Tool(sender)) => {
                self.tool_call_over(state);
                Some(sender)
            }
            Some(other) => {
                state.requests.insert(number, other);
                None
            }
            None => None,
        }
    }

    fn tool_call_over(&self, state: &mut State) {
        state.tool_calls -= 1;
        self.live.send_modify(|live| *live -= 1);
    }
}

impl State {
    /// Whether this is the late answer to a call that was given up.
    pub(super) fn was_given_up(&mut self, number: i64) -> bool {
        let found = self.given_up.iter().position(|given_up| *given_up == number);
        found.and_then(|at| self.given_up.remove(at)).is_some()
    }
}

/// A tool call in flight; dropping it before its answer gives it up.
struct OpenCall {
    connection: Arc<Connection>,
    number: i64,
    sent: bool,
}

impl Drop for OpenCall {
    fn drop(&mut self) {
        let mut state = self.connection.lock();
        let is_open = self.connection.take_tool_call(&mut state, self.number).is_some();
        if !is_open || !self.sent {
            return;
        }
        state.given_up.push_back(self.number);
        // Some wires answer; that answer is dropped like one of the call itself.
        let number = state.next_number();
        state.given_up.push_back(number);
        while state.given_up.len() > GIVEN_UP_MAX {
            state.given_up.pop_front();
        }
        drop(state);
        self.connection.send_or_replace(self.connection.codec.cancel_request(self.number, number));
    }
}
