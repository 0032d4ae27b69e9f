//! The wires that a connection may speak: native JSON-RPC, or LangBot's.
//!
//! Invariant: all that differs between wires is in here. A wire turns what arrives into `Inbound` and what leaves
//! into whole frames; the rest of the crate does not know which wire it is.

mod head;
pub(crate) mod langbot;
mod native;

use crate::connection::Connection;
use crate::handshake::{Introduction, Terms};
use crate::proxy::{NotTaken, ProxyCall};
use crate::run::Run;
use crate::spec::{RunnerSpec, Wire};
use crate::tools::PluginToolCall;
use bytes::Bytes;
use greenroom_protocol::wire::{CallToolResult, RpcError, method};
use greenroom_protocol::{AgentAPIError, AgentRunRequest, RawResult};
use langbot::Session;
use serde::Serialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use tokio::sync::SemaphorePermit;

/// What a runner has sent.
pub(crate) enum Inbound<'a> {
    /// One result of a live run.
    Result { run: Arc<Run>, result: RawResult, bytes: usize },
    /// The response to a request of the host; the response to the request of a run ends the run.
    Response { number: i64, response: Result<&'a RawValue, RpcError> },
    /// A call for the host's proxy.
    Call(Call),
    /// A call that the wire has no method for.
    RefusedCall { id: String, run_id: Option<String>, method: &'a str, error: AgentAPIError },
    /// The runner gives up a call. Some wires want to know whether it was in flight.
    CancelCall { id: String, answer_to: Option<String> },
    /// A request that the wire itself has answered with this frame.
    Answered(Bytes),
    /// Text that is not part of the protocol.
    Text(&'a str),
    /// A message without effect; a clause names it.
    Unexpected(&'static str),
    /// The runner cannot serve; a clause says why.
    Failed(String),
    /// Bytes after which the framing cannot be trusted; a clause names them.
    Corrupt { what: Cow<'static, str>, line: &'a [u8] },
}

/// A call for the host's proxy.
pub(crate) struct Call {
    /// As the runner wrote it.
    pub(crate) id: String,
    pub(crate) run_id: Option<String>,
    pub(crate) method: Cow<'static, str>,
    pub(crate) params: Box<RawValue>,
    pub(crate) adapter: Adapter,
}

/// How a call is served on its wire.
pub(crate) enum Adapter {
    Native,
    Langbot(Box<langbot::serve::Action>),
}

impl Adapter {
    /// The call was admitted: a refused one leaves nothing behind.
    pub(crate) fn admit(&mut self, id: &str) {
        match self {
            Adapter::Native => {}
            Adapter::Langbot(action) => action.admit(id),
        }
    }

    /// Serves the call; the frame is its answer.
    pub(crate) async fn serve(self, connection: &Connection, call: ProxyCall) -> Bytes {
        match self {
            Adapter::Native => {
                let id = call.sink.request_id().to_owned();
                native::answer(&id, connection.proxy.call(call).await)
            }
            Adapter::Langbot(action) => action.serve(connection, call).await,
        }
    }
}

/// What a wire keeps for one run; dropped with the run.
#[derive(Debug, Default)]
pub(crate) struct RunMemory {
    pairing: Mutex<langbot::pairing::Pairing>,
    card: Mutex<langbot::card::Card>,
    profile: OnceLock<langbot::RunnerProfile>,
    /// Of a run that may ask about its event.
    event: OnceLock<langbot::event_tools::EventParties>,
}

impl RunMemory {
    fn pairing(&self) -> MutexGuard<'_, langbot::pairing::Pairing> {
        self.pairing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn card(&self) -> MutexGuard<'_, langbot::card::Card> {
        self.card.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Decodes what arrives on one connection.
pub(crate) enum Decoder {
    Native(native::decoder::Decoder),
    Langbot(langbot::decoder::Decoder),
}

impl Decoder {
    /// Hands what a line contains to `take`, in order.
    pub(crate) fn decode(
        &mut self,
        connection: &Connection,
        line: &[u8],
        take: &mut dyn FnMut(Inbound<'_>),
    ) {
        match self {
            Decoder::Native(decoder) => decoder.decode(connection, line, take),
            Decoder::Langbot(decoder) => decoder.decode(connection, line, take),
        }
    }

    /// Forgets what belongs to earlier lines.
    pub(crate) fn reset(&mut self) {
        match self {
            Decoder::Native(decoder) => decoder.reset(),
            Decoder::Langbot(decoder) => decoder.reset(),
        }
    }
}

/// Encodes what leaves on one connection.
#[derive(Debug)]
pub(crate) enum Codec {
    Native,
    Langbot(Arc<Session>),
}

impl Codec {
    /// For a process that is about to start; adds to its environment what the wire needs.
    pub(crate) fn for_process(
        spec: &RunnerSpec,
        host_version: &str,
        env: &mut BTreeMap<String, String>,
    ) -> Result<Self, String> {
        match spec.wire {
            Wire::Native => Ok(Codec::Native),
            Wire::Langbot => {
                let session =
                    Session::new(&spec.program(), host_version, spec.plugin_config.clone())
                        .map_err(|error| format!("cannot be given a secret: {error}"))?;
                env.insert(langbot::SECRET_VARIABLE.to_owned(), session.secret().to_owned());
                Ok(Codec::Langbot(Arc::new(session)))
            }
        }
    }

    pub(crate) fn decoder(&self) -> Decoder {
        match self {
            Codec::Native => Decoder::Native(native::decoder::Decoder::default()),
            Codec::Langbot(session) => {
                Decoder::Langbot(langbot::decoder::Decoder::new(session.clone()))
            }
        }
    }

    pub(crate) fn wire(&self) -> Wire {
        match self {
            Codec::Native => Wire::Native,
            Codec::Langbot(_) => Wire::Langbot,
        }
    }

    /// Asks a process who it is and what it offers.
    pub(crate) async fn introduce(
        &self,
        connection: &Arc<Connection>,
        terms: &Terms<'_>,
    ) -> Result<Introduction, String> {
        match self {
            Codec::Native => native::handshake::introduce(connection, terms).await,
            Codec::Langbot(session) => {
                langbot::handshake::introduce(connection, session, terms).await
            }
        }
    }

    /// A request of the host under its number.
    pub(crate) fn request(&self, number: i64, method: &str, params: &impl Serialize) -> Bytes {
        match self {
            Codec::Native => native::request(number, method, params),
            Codec::Langbot(_) => langbot::frames::request(number, method, params),
        }
    }

    /// The request that starts a run.
    pub(crate) fn run(&self, number: i64, request: &AgentRunRequest) -> Bytes {
        match self {
            Codec::Native => native::request(number, method::RUN_AGENT, request),
            Codec::Langbot(session) => session.run(number, request),
        }
    }

    /// The answer to the runner's call with this id.
    pub(crate) fn answer(&self, id: &str, answer: Result<Box<RawValue>, AgentAPIError>) -> Bytes {
        match self {
            Codec::Native => native::answer(id, answer),
            Codec::Langbot(_) => langbot::frames::answer(id, answer),
        }
    }

    /// How many runs the other side takes at once.
    pub(crate) fn runs_max(&self) -> usize {
        match self {
            Codec::Native => usize::MAX,
            Codec::Langbot(session) => session.runs_max(),
        }
    }

    /// Tells the runner to stop a run; returns how long it may take.
    pub(crate) fn cancel_run(&self, connection: &Arc<Connection>, stop: &StopRun<'_>) -> Duration {
        match self {
            Codec::Native => {
                let params = serde_json::json!({ "run_id": stop.run_id, "reason": stop.reason });
                connection.send_or_replace(native::notification(method::RUN_CANCEL, &params));
                connection.limits.configured.cancel_grace
            }
            Codec::Langbot(session) => session.cancel_run(connection, stop),
        }
    }

    /// Waits until the other side has room for a call of a tool, which takes it until this is dropped.
    pub(crate) async fn room_for_tool_call(&self) -> Option<SemaphorePermit<'_>> {
        match self {
            Codec::Native => None,
            Codec::Langbot(session) => session.room_for_tool_call().await,
        }
    }

    /// The parameters of a call of a tool.
    pub(crate) fn tool_params(&self, call: &PluginToolCall) -> Box<RawValue> {
        match self {
            Codec::Native => native::tool_params(call),
            Codec::Langbot(_) => langbot::tools::params(call),
        }
    }

    /// Reads the answer to a call of a tool.
    pub(crate) fn tool_answer(&self, answer: &RawValue) -> serde_json::Result<CallToolResult> {
        match self {
            Codec::Native => CallToolResult::parse(answer.get()),
            Codec::Langbot(_) => langbot::tools::answer(answer),
        }
    }

    /// Tells the runner that a request of the host is given up; `own` is the number of this message, where the
    /// wire gives it one.
    pub(crate) fn cancel_request(&self, number: i64, own: i64) -> Bytes {
        match self {
            Codec::Native => {
                let params = serde_json::json!({ "request_id": number });
                native::notification(method::REQUEST_CANCEL, &params)
            }
            Codec::Langbot(_) => {
                let params = serde_json::json!({ "seq_id": number });
                langbot::frames::request(own, "__cancel_action", &params)
            }
        }
    }

    /// Keeps what the wire needs of a run that starts.
    pub(crate) fn remember(&self, memory: &RunMemory, request: &AgentRunRequest) {
        match self {
            Codec::Native => {}
            Codec::Langbot(session) => session.remember(memory, request),
        }
    }

    /// The id and method of a call whose line is too long.
    pub(crate) fn called_by(&self, line: &[u8]) -> Option<(String, String)> {
        match self {
            Codec::Native => native::decoder::called_by(line),
            Codec::Langbot(_) => None,
        }
    }

    /// The number of the request that a broken line responds to.
    pub(crate) fn answered_by(&self, line: &[u8]) -> Option<i64> {
        match self {
            Codec::Native => native::decoder::answered_by(line),
            Codec::Langbot(_) => None,
        }
    }

    /// Sends one item of a streaming call to its caller.
    pub(crate) async fn send_item(
        &self,
        connection: &Connection,
        request_id: &str,
        item: &RawValue,
    ) -> Result<(), NotTaken> {
        connection.outbox.room_for_items().await;
        let frame = match self {
            Codec::Native => Some(native::item(request_id, item)),
            Codec::Langbot(session) => session.item(request_id, item).await,
        };
        frame.map_or(Ok(()), |frame| connection.outbox.push(frame).map_err(|_| NotTaken))
    }
}

/// A run that is to stop.
pub(crate) struct StopRun<'a> {
    /// The request that started it.
    pub(crate) number: i64,
    pub(crate) run_id: &'a str,
    /// The name of its runner.
    pub(crate) runner: &'a str,
    pub(crate) reason: &'a str,
}

/// The command that starts a process.
pub(crate) fn command(spec: &RunnerSpec) -> Vec<String> {
    match spec.wire {
        Wire::Native => spec.command.clone(),
        Wire::Langbot => langbot::command(&spec.command, spec.sandbox),
    }
}
