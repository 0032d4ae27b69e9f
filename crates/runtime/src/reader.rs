//! Takes what a runner writes and routes it: results to runs, answers to requests, calls to the proxy.
//!
//! Invariant: never waits for a run, a call or a writer. What cannot be understood ends the run it can be
//! pinned on, or else all runs of the connection, and never anything beyond it.

use crate::connection::Connection;
use crate::proxy::{ItemSink, ProxyCall, Standing};
use crate::run::{Run, RunEnd, Taken};
use crate::tools::PluginToolError;
use crate::wires::Codec;
use crate::wires::langbot::chunks::Assembly;
use bytes::Bytes;
use futures_util::FutureExt;
use greenroom_protocol::wire::{RequestId, RpcError, method};
use greenroom_protocol::{AgentAPIError, ErrorCode, RawResult};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

mod pipe;
mod plugins;
mod whose;

/// How much of a line that cannot be understood is quoted.
const QUOTE_CHARS: usize = 120;
const WARN_EVERY: Duration = Duration::from_secs(1);

/// A JSON-RPC message, borrowed from its line.
#[derive(Deserialize)]
struct Message<'a> {
    #[serde(default, borrow)]
    id: Option<&'a RawValue>,
    #[serde(default, borrow)]
    method: Cow<'a, str>,
    #[serde(default, borrow)]
    params: Option<&'a RawValue>,
    #[serde(default, borrow)]
    result: Option<&'a RawValue>,
    #[serde(default)]
    error: Option<RpcError>,
}

pub(crate) struct Reader {
    connection: Arc<Connection>,
    /// Runs that got results in this chunk and have not been told.
    unannounced: Vec<Arc<Run>>,
    last: Option<Arc<Run>>,
    /// A long message of which some pieces have come; on the LangBot wire alone.
    assembly: Option<Assembly>,
    dropped: u64,
    warned_at: Option<Instant>,
}

impl Reader {
    pub(crate) fn new(connection: Arc<Connection>) -> Self {
        Self {
            connection,
            unannounced: Vec::new(),
            last: None,
            assembly: None,
            dropped: 0,
            warned_at: None,
        }
    }

    /// Takes one frame of a transport that has frames of its own.
    pub(crate) fn take_frame(&mut self, frame: &[u8]) {
        if frame.len() > self.connection.limits.line_bytes_max {
            let head = &frame[..frame.len().min(64 * 1024)];
            self.too_long("a message that is too long", head);
        } else {
            self.take(frame);
        }
        self.announce();
    }

    fn take(&mut self, line: &[u8]) {
        match self.connection.codec {
            Codec::Native => self.take_native(line),
            Codec::Langbot(_) => self.take_plugins(line),
        }
    }

    fn take_native(&mut self, line: &[u8]) {
        let Ok(text) = std::str::from_utf8(line) else {
            return self.corrupt("a line that is not UTF-8", line);
        };
        if text.trim_ascii().is_empty() {
            return;
        }
        let Ok(message) = serde_json::from_str::<Message<'_>>(text) else {
            return self.corrupt("a line that is not a JSON-RPC message", line);
        };
        match (message.method.as_ref(), message.id) {
            (method::RUN_RESULT, None) => self.result(line, message.params),
            (method::REQUEST_CANCEL, None) => self.give_up(message.params),
            ("", Some(_)) => self.answer(line, &message),
            ("", None) => self.corrupt("a line that is not a JSON-RPC message", line),
            (_, Some(id)) => self.call(id, &message),
            (_, None) => self.warn("a notification that the host does not know"),
        }
    }

    fn result(&mut self, line: &[u8], params: Option<&RawValue>) {
        let result = params.and_then(|params| serde_json::from_str::<RawResult>(params.get()).ok());
        let Some(result) = result else {
            return self.corrupt("a `run.result` without a proper result", line);
        };
        let run = match self.last.take().filter(|run| run.id == result.run_id) {
            Some(run) => Some(run),
            None => self.connection.live_run(&result.run_id),
        };
        let Some(run) = run else {
            return self.warn("a result of a run that is not under way on this connection");
        };
        self.offer(run, result, line.len());
    }

    fn offer(&mut self, run: Arc<Run>, result: RawResult, bytes: usize) {
        match run.offer(result, bytes, &self.connection.run_limits) {
            Taken::First => self.unannounced.push(run.clone()),
            Taken::More => {}
            Taken::Closed => return,
            Taken::Overflow(message) => {
                self.connection.fail(Some(&run), &RunEnd::Overflow { message });
                self.connection.replace("wrote too much in one run".to_owned());
                return;
            }
        }
        self.last = Some(run);
    }

    fn answer(&mut self, line: &[u8], message: &Message<'_>) {
        let number = message.id.and_then(|id| id.get().parse::<i64>().ok());
        let answer = match (message.result, &message.error) {
            (Some(result), None) => Ok(result),
            (None, Some(error)) => Err(error.clone()),
            // `"result":null` reads as absent.
            (None, None) => Ok(RawValue::NULL),
            (Some(_), Some(_)) => {
                return self.corrupt("an answer with a result and an error", line);
            }
        };
        // Results that came before the answer belong before the end of the run.
        self.announce();
        self.last = None;
        if !number.is_some_and(|number| self.connection.answered(number, answer)) {
            self.warn("an answer to nothing that was asked");
        }
    }

    fn call(&mut self, id: &RawValue, message: &Message<'_>) {
        if serde_json::from_str::<RequestId>(id.get()).is_err() {
            return self.corrupt("a request with an improper id", id.get().as_bytes());
        }
        let params = message.params.unwrap_or(RawValue::NULL);
        let id = id.get().to_owned();
        let call = self.proxy_call(&id, run_id_of(params), &message.method, params.to_owned());
        self.carry_out(id.clone(), call, |connection, call| async move {
            let answer = connection.proxy.call(call).await;
            connection.codec.answer(&id, answer)
        });
    }

    /// A call with the identity that the connection gives it.
    fn proxy_call(
        &mut self,
        id: &str,
        run_id: Option<String>,
        method: &str,
        params: Box<RawValue>,
    ) -> ProxyCall {
        // Results that came before the call are seen by it.
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
            sink: ItemSink { connection: connection.clone(), request_id: id.to_owned() },
        }
    }

    /// Lets the host serve a call in a task of its own; the frame that comes out is the answer.
    fn carry_out<F>(
        &self,
        id: String,
        call: ProxyCall,
        serve: impl FnOnce(Arc<Connection>, ProxyCall) -> F,
    ) where
        F: Future<Output = Bytes> + Send + 'static,
    {
        let connection = &self.connection;
        let mut state = connection.lock();
        let (run, bytes) = (call.run_id.clone(), call.params.get().len());
        if let Some(error) = state.calls.refusal(&id, &run, bytes, &connection.limits) {
            drop(state);
            connection.proxy.refused(&call, &error);
            return connection.send_or_replace(connection.codec.answer(&id, Err(error)));
        }
        // Registered under the lock, so that the task cannot be over before it is known.
        let (shared, key, serial) = (connection.clone(), id.clone(), state.calls.next_serial());
        let served = AssertUnwindSafe(serve(connection.clone(), call)).catch_unwind();
        let task = connection.tasks.spawn(async move {
            let served = served.await;
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

    fn give_up(&mut self, params: Option<&RawValue>) {
        #[derive(Deserialize)]
        struct GiveUp<'a> {
            #[serde(borrow)]
            request_id: &'a RawValue,
        }
        let request =
            params.and_then(|params| serde_json::from_str::<GiveUp<'_>>(params.get()).ok());
        let call = request
            .and_then(|request| self.connection.lock().calls.remove(request.request_id.get()));
        if let Some(call) = call {
            call.abort();
        }
    }

    /// A tool's answer over the limit ends its call alone: where the next message begins is known.
    fn too_long(&mut self, what: &str, head: &[u8]) {
        let bytes_max = self.connection.limits.line_bytes_max;
        let message = format!("the answer has more than {bytes_max} bytes");
        let error = PluginToolError::TooLarge { message };
        let is_tools = whose::answered(head)
            .is_some_and(|number| self.connection.fail_tool_call(number, error));
        if !is_tools {
            self.corrupt(what, head);
        }
    }

    /// The runner's framing cannot be trusted any more: it is replaced, and whoever the line belonged to ends.
    fn corrupt(&mut self, what: &str, line: &[u8]) {
        self.announce();
        self.last = None;
        self.assembly = None;
        let quote = String::from_utf8_lossy(&line[..line.len().min(4 * QUOTE_CHARS)]);
        let quote = self.connection.cleaner.quote(&quote, QUOTE_CHARS);
        let reason = format!("wrote {what}: {quote:?}");
        let message = self.connection.says(&reason);
        let error = PluginToolError::Protocol { message: message.clone() };
        let is_tools = whose::answered(line)
            .is_some_and(|number| self.connection.fail_tool_call(number, error.clone()));
        if !is_tools {
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

    /// The one run under way whose id stands in the line.
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

    fn announce(&mut self) {
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

fn run_id_of(params: &RawValue) -> Option<String> {
    #[derive(Deserialize)]
    struct Named {
        #[serde(default)]
        run_id: Option<String>,
    }
    serde_json::from_str::<Named>(params.get()).ok().and_then(|named| named.run_id)
}
