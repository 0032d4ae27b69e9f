//! Routes what a runner sends: results to runs, responses to requests, calls to the proxy.
//!
//! Invariant: never waits. Corrupt bytes end the run or tool call that they can be attributed to, or else
//! everything that is open on the connection, and nothing beyond it.

use crate::connection::Connection;
use crate::proxy::{ItemSink, ProxyCall, Standing};
use crate::run::{Run, RunEnd, Taken};
use crate::tools::PluginToolError;
use crate::wires::{Call, Inbound};
use futures_util::FutureExt;
use greenroom_protocol::wire::RpcError;
use greenroom_protocol::{AgentAPIError, ErrorCode, RawResult};
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How much of a line that cannot be decoded is quoted.
const QUOTE_CHARS: usize = 120;
const WARN_EVERY: Duration = Duration::from_secs(1);

pub(super) struct Router {
    connection: Arc<Connection>,
    /// Runs that got results since the last `announce`.
    unannounced: Vec<Arc<Run>>,
    dropped: u64,
    warned_at: Option<Instant>,
}

impl Router {
    pub(super) fn new(connection: Arc<Connection>) -> Self {
        Self { connection, unannounced: Vec::new(), dropped: 0, warned_at: None }
    }

    pub(super) fn take(&mut self, inbound: Inbound<'_>) {
        match inbound {
            Inbound::Result { run, result, bytes } => self.result(run, result, bytes),
            Inbound::Response { number, response } => self.response(number, response),
            Inbound::Call(call) => self.call(call),
            Inbound::RefusedCall { id, run_id, method, error } => {
                let call = self.proxy_call(&id, run_id, method, RawValue::NULL.to_owned());
                self.refuse(&id, &call, error);
            }
            Inbound::CancelCall { id, answer_to } => self.cancel_call(&id, answer_to.as_deref()),
            Inbound::Answered(frame) => self.connection.send_or_replace(frame),
            Inbound::Text(text) => {
                let text = self.connection.cleaner.quote(text, QUOTE_CHARS);
                self.warn(&format!("text on standard output, which is not read: {text:?}"));
            }
            Inbound::Unexpected(what) => self.warn(what),
            Inbound::Failed(reason) => self.connection.replace(reason),
            Inbound::Corrupt { what, line } => self.corrupt(&what, line),
        }
    }

    fn result(&mut self, run: Arc<Run>, result: RawResult, bytes: usize) {
        match run.offer(result, bytes, &self.connection.run_limits) {
            Taken::First => self.unannounced.push(run),
            Taken::More | Taken::Closed => {}
            Taken::Overflow(message) => {
                self.connection.fail(Some(&run), &RunEnd::Overflow { message });
                self.connection.replace("wrote too much in one run".to_owned());
            }
        }
    }

    fn response(&mut self, number: i64, response: Result<&RawValue, RpcError>) {
        // Results that came before the response belong before the end of the run.
        self.announce();
        if !self.connection.answered(number, response) {
            self.warn("an answer to nothing that was asked");
        }
    }

    /// A call with the identity that the connection gives it.
    fn proxy_call(
        &mut self,
        id: &str,
        run_id: Option<String>,
        method: &str,
        params: Box<RawValue>,
    ) -> ProxyCall {
        // The call sees the results that came before it.
        self.announce();
        let connection = &self.connection;
        let (standing, results_before) =
            run_id.as_deref().map_or((Standing::Foreign, 0), |id| connection.standing(id));
        ProxyCall {
            connection: connection.id,
            runner: connection.runner.clone(),
            plugin: connection.plugin.get().cloned().unwrap_or_default(),
            run_id,
            standing,
            results_before,
            method: method.to_owned(),
            params,
            wire: connection.codec.wire(),
            sink: ItemSink::wire(connection.clone(), id.to_owned()),
        }
    }

    /// Lets the host serve a call in a task of its own.
    fn call(&mut self, call: Call) {
        let Call { id, run_id, method, params, mut adapter } = call;
        let call = self.proxy_call(&id, run_id, &method, params);
        let connection = &self.connection;
        let mut state = connection.lock();
        let (run, bytes) = (call.run_id.clone(), call.params.get().len());
        if let Some(error) = state.calls.refusal(&id, &run, bytes, &connection.limits) {
            drop(state);
            return self.refuse(&id, &call, error);
        }
        adapter.admit(&id);
        // Registered under the lock, so that the task cannot end before it is registered.
        let (shared, key, serial) = (connection.clone(), id.clone(), state.calls.next_serial());
        let task = connection.tasks.spawn(async move {
            let served = AssertUnwindSafe(adapter.serve(&shared, call)).catch_unwind().await;
            if !shared.lock().calls.finish(&id, serial) {
                return;
            }
            shared.send_or_replace(served.unwrap_or_else(|_| {
                let error =
                    AgentAPIError::new(ErrorCode::RuntimeError, "the host failed at this call");
                shared.codec.answer(&id, Err(error))
            }));
        });
        state.calls.insert(key, run, bytes, task);
    }

    fn refuse(&self, id: &str, call: &ProxyCall, error: AgentAPIError) {
        self.connection.proxy.refused(call, &error);
        self.connection.send_or_replace(self.connection.codec.answer(id, Err(error)));
    }

    fn cancel_call(&self, id: &str, answer_to: Option<&str>) {
        let connection = &self.connection;
        let call = connection.lock().calls.remove(id);
        let is_cancelled = call.inspect(|call| call.abort()).is_some();
        if let Some(answer_to) = answer_to {
            let answer = to_raw_value(&json!({ "cancelled": is_cancelled }));
            let answer = answer
                .map_err(|error| AgentAPIError::new(ErrorCode::RuntimeError, error.to_string()));
            connection.send_or_replace(connection.codec.answer(answer_to, answer));
        }
    }

    /// A call over the limit is refused and a tool's answer ends its call alone: where the next message begins is
    /// known.
    pub(super) fn too_long(&mut self, what: &str, head: &[u8]) {
        let bytes_max = self.connection.limits.configured.line_bytes;
        if let Some((id, method)) = self.connection.codec.called_by(head) {
            let run_id = self.mentioned(head).map(|run| run.id.clone());
            let call = self.proxy_call(&id, run_id, &method, RawValue::NULL.to_owned());
            let message = format!("the call has more than {bytes_max} bytes");
            let error = AgentAPIError::new(ErrorCode::PayloadTooLarge, message);
            return self.refuse(&id, &call, error);
        }
        let message = format!("the answer has more than {bytes_max} bytes");
        let error = PluginToolError::TooLarge { message };
        if !self.fail_tool_call(head, error) {
            self.corrupt(what, head);
        }
    }

    /// Ends the tool call that a broken line responds to; whether there is one.
    fn fail_tool_call(&self, line: &[u8], error: PluginToolError) -> bool {
        let number = self.connection.codec.answered_by(line);
        number.is_some_and(|number| self.connection.fail_tool_call(number, error))
    }

    /// The process is replaced, and what the line belongs to ends.
    fn corrupt(&mut self, what: &str, line: &[u8]) {
        self.announce();
        let quote = String::from_utf8_lossy(&line[..line.len().min(4 * QUOTE_CHARS)]);
        let quote = self.connection.cleaner.quote(&quote, QUOTE_CHARS);
        let reason = format!("wrote {what}: {quote:?}");
        let message = self.connection.says(&reason);
        let error = PluginToolError::Protocol { message: message.clone() };
        if !self.fail_tool_call(line, error.clone()) {
            let only = || self.connection.only_live_run();
            let has_tools = self.connection.has_tool_calls();
            let run = self.mentioned(line).or_else(|| only().filter(|_| !has_tools));
            if run.is_none() {
                self.connection.fail_tool_calls(&error);
            }
            self.connection.fail(run.as_ref(), &RunEnd::ProtocolError { message });
        }
        self.connection.replace(reason);
    }

    /// The one live run whose id occurs in the line.
    fn mentioned(&self, line: &[u8]) -> Option<Arc<Run>> {
        let in_id = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.:".contains(byte);
        let words =
            line.split(|byte| !in_id(byte)).filter_map(|word| std::str::from_utf8(word).ok());
        let mut found: Option<Arc<Run>> = None;
        for run in
            words.filter(|word| !word.is_empty()).filter_map(|word| self.connection.live_run(word))
        {
            if found.as_ref().is_some_and(|other| !Arc::ptr_eq(other, &run)) {
                return None;
            }
            found = Some(run);
        }
        found
    }

    /// Wakes the consumers of runs that got results.
    pub(super) fn announce(&mut self) {
        for run in self.unannounced.drain(..) {
            run.announce();
        }
    }

    fn warn(&mut self, what: &str) {
        self.dropped += 1;
        if self.warned_at.is_none_or(|at| at.elapsed() >= WARN_EVERY) {
            tracing::warn!(
                runner = &*self.connection.runner,
                dropped = self.dropped,
                "the runner sent {what}"
            );
            self.warned_at = Some(Instant::now());
            self.dropped = 0;
        }
    }
}
