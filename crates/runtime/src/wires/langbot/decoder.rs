//! Decodes what a LangBot plugin writes: responses, streams of results, and actions.
//!
//! Invariant: a line that is not a message harms nothing; it is logged, since stdout belongs to the wire. Pieces
//! that do not fit together are corrupt, as on every wire; a long message that is left unfinished, as the SDK
//! leaves one whose run is cancelled, is dropped when the next message begins.

use super::actions::{self, Reply};
use super::chunks::{Assembly, Joined};
use super::frames::{self, Frame};
use super::numbers::without_nan;
use super::records::Caller;
use super::replies::{self, Replied};
use super::serve::{Action, StreamOptions, timeout_of};
use super::{RunnerProfile, Session, results};
use crate::connection::{Connection, Streamed};
use crate::run::Run;
use crate::wires::{Adapter, Call, Inbound, head};
use greenroom_protocol::result::kind;
use greenroom_protocol::wire::RpcError;
use greenroom_protocol::{AgentAPIError, ErrorCode, RawResult, RunnerId};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::sync::Arc;

type Take<'t> = &'t mut dyn FnMut(Inbound<'_>);

pub(crate) struct Decoder {
    session: Arc<Session>,
    /// A long message of which some pieces have come.
    assembly: Option<Assembly>,
    /// The SDK itself prints one line of text, in one of several languages; Python flushes it at any time.
    has_greeted: bool,
}

impl Decoder {
    pub(in crate::wires) fn new(session: Arc<Session>) -> Self {
        Self { session, assembly: None, has_greeted: false }
    }

    pub(in crate::wires) fn reset(&mut self) {
        self.assembly = None;
    }

    pub(in crate::wires) fn decode(
        &mut self,
        connection: &Connection,
        line: &[u8],
        take: Take<'_>,
    ) {
        // Nearly every line is UTF-8, and the strict check is the fast one.
        let text = match std::str::from_utf8(line) {
            Ok(text) => Cow::Borrowed(text),
            Err(_) => String::from_utf8_lossy(line),
        };
        let text = text.trim_ascii();
        if !text.starts_with('{') {
            return self.text(text, take);
        }
        match serde_json::from_str::<Frame<'_>>(text) {
            Ok(frame) if frame.kind.as_deref().is_some_and(|kind| kind.starts_with("chunk_")) => {
                self.piece(connection, &frame, line, take);
            }
            Ok(frame) => {
                if frame.seq_id.is_some() {
                    self.drop_unfinished(take);
                }
                self.message(connection, text.len(), &frame, take);
            }
            Err(_) if is_message(text.as_bytes()) => match without_nan(text) {
                Some(clean) => self.decode(connection, clean.as_bytes(), take),
                None => self.corrupt("a line that is not a LangBot message", line, take),
            },
            Err(_) => self.text(text, take),
        }
    }

    fn drop_unfinished(&mut self, take: Take<'_>) {
        if self.assembly.take().is_some() {
            take(Inbound::Unexpected("a long message without its end"));
        }
    }

    fn piece(&mut self, connection: &Connection, frame: &Frame<'_>, line: &[u8], take: Take<'_>) {
        if frame.kind.as_deref() == Some("chunk_start") {
            self.drop_unfinished(take);
        }
        match Assembly::take(&mut self.assembly, frame) {
            Joined::Part => {}
            Joined::Broken(reason) => {
                self.corrupt(format!("pieces that do not fit, it {reason}"), line, take);
            }
            Joined::Whole(message) => self.whole(connection, &message, take),
        }
    }

    /// A long message, all pieces of it.
    fn whole(&mut self, connection: &Connection, message: &str, take: Take<'_>) {
        match serde_json::from_str::<Frame<'_>>(message) {
            Ok(frame) => self.message(connection, message.len(), &frame, take),
            Err(_) => match without_nan(message) {
                Some(clean) => self.whole(connection, &clean, take),
                None => self.corrupt("a long message that is not JSON", message.as_bytes(), take),
            },
        }
    }

    fn corrupt(&mut self, what: impl Into<Cow<'static, str>>, line: &[u8], take: Take<'_>) {
        self.assembly = None;
        take(Inbound::Corrupt { what: what.into(), line });
    }

    fn text(&mut self, text: &str, take: Take<'_>) {
        if !text.is_empty() && std::mem::replace(&mut self.has_greeted, true) {
            take(Inbound::Text(text));
        }
    }

    fn message(&self, connection: &Connection, bytes: usize, frame: &Frame<'_>, take: Take<'_>) {
        let data = frame.data.unwrap_or(RawValue::NULL);
        match (frame.seq_id, frame.code, frame.action.as_deref()) {
            (Some(number), Some(code), _) => {
                let is_end = code != 0 || frame.chunk_status.as_deref() == Some("end");
                if is_end
                    && code == 0
                    && let Streamed::To(run) = connection.streamed(number)
                    && profile_of(&run).is_commands
                {
                    // A command has no result of its own for its end.
                    take(Inbound::Result {
                        result: results::completed_run(&run.id),
                        run,
                        bytes: 0,
                    });
                }
                let of = if is_end { Streamed::None } else { connection.streamed(number) };
                match of {
                    Streamed::To(run) => result(&run, data, bytes, take),
                    Streamed::Late => {}
                    Streamed::None => take(response(number, code, frame, data)),
                }
            }
            (Some(number), None, Some(action)) => {
                self.action(connection, number, action, frame, take);
            }
            _ => take(Inbound::Unexpected("a message that is neither an answer nor a request")),
        }
    }

    fn action(
        &self,
        connection: &Connection,
        number: i64,
        action: &str,
        frame: &Frame<'_>,
        take: Take<'_>,
    ) {
        let data = frame.data.unwrap_or(RawValue::NULL);
        let id = number.to_string();
        let field = |key: &str| serde_json::from_str::<Value>(data.get()).ok()?.get(key).cloned();
        let answer = match action {
            "register_plugin" => {
                let registered = self.session.register(data);
                if let Err(error) = &registered {
                    take(Inbound::Failed(format!("could not register: {}", error.message)));
                }
                registered.map(|()| json!({}))
            }
            "get_langbot_version" => Ok(self.session.version()),
            "__ping" | "__heartbeat" => Ok(json!({"alive": true})),
            "__cancel_action" => {
                let call = field("seq_id").unwrap_or_default().to_string();
                return take(Inbound::CancelCall { id: call, answer_to: Some(id) });
            }
            "__stream_ack" => {
                let stream = field("seq_id").unwrap_or_default().to_string();
                let index = field("index").and_then(|index| index.as_u64());
                let accepted = index.is_some_and(|index| self.session.acknowledged(&stream, index));
                Ok(json!({"accepted": accepted}))
            }
            _ => match self.session.listed(action) {
                Some(listed) => Ok(listed),
                None => return self.host_action(connection, id, action, frame, take),
            },
        };
        take(answered(&id, answer));
    }

    /// An action for the host's proxy, or a reply in the form of one.
    fn host_action(
        &self,
        connection: &Connection,
        id: String,
        action: &str,
        frame: &Frame<'_>,
        take: Take<'_>,
    ) {
        let data = frame.data.unwrap_or(RawValue::NULL);
        let data: Value = match serde_json::from_str(data.get()) {
            Ok(data) => data,
            Err(error) => {
                let error = malformed(error);
                return take(Inbound::RefusedCall { id, run_id: None, method: action, error });
            }
        };
        let run_id = data["run_id"].as_str().map(str::to_owned);
        let run = run_id.as_ref().and_then(|id| connection.live_run(id));
        let runner = run_id.as_ref().and_then(|id| connection.runner_of(id));
        let profile = self.session.profile(runner.as_ref().map_or("", RunnerId::runner));
        if let Some(run) = run.as_ref().filter(|_| profile.replies) {
            if let Some(reply) = replies::read(action, &data) {
                return self::reply(run, &id, reply, take);
            }
            let parties = run.wire.event.get();
            if let Some(answer) = parties.and_then(|parties| parties.answer(action, &data)) {
                return take(answered(&id, answer));
            }
        }
        if let Some((run, reply)) = command_reply(connection, action, &data) {
            return self::reply(&run, &id, reply, take);
        }
        let call = match replies::is_only_that(action) {
            true => Err(AgentAPIError::new(
                ErrorCode::Unauthorized,
                match run {
                    Some(_) => "only runners whose `usages` have `event` answer by calls",
                    None => "there is no such live run",
                },
            )),
            false => actions::translate(action, &data),
        };
        let call = call.and_then(|mut call| {
            call.params["run_id"] = data["run_id"].clone();
            let params = to_raw_value(&call.params).map_err(malformed)?;
            Ok((call, params))
        });
        let (call, params) = match call {
            Ok(call) => call,
            Err(error) => return take(Inbound::RefusedCall { id, run_id, method: action, error }),
        };
        let caller = Caller {
            run_id: run_id.clone().unwrap_or_default(),
            dialect: profile.dialect,
            runner_id: runner.map(|id| id.as_str().to_owned()).unwrap_or_default(),
        };
        let method = call.method.into();
        let stream = (call.reply == Reply::Stream).then(|| StreamOptions {
            acknowledges: frame.stream_flow_control == Some(1),
            remove_think: data["remove_think"] == true,
        });
        let (session, timeout) = (self.session.clone(), timeout_of(&data));
        let action = Action { session, run, call, caller, timeout, stream, open: None };
        let adapter = Adapter::Langbot(Box::new(action));
        take(Inbound::Call(Call { id, run_id, method, params, adapter }));
    }
}

/// The reply of a command, and its run: commands name their run by the number of its request.
fn command_reply(
    connection: &Connection,
    action: &str,
    data: &Value,
) -> Option<(Arc<Run>, Result<Replied, AgentAPIError>)> {
    let number = data["query_id"].as_i64().filter(|_| action == "reply_message")?;
    let Streamed::To(run) = connection.streamed(number) else { return None };
    let is_command = profile_of(&run).is_commands;
    is_command.then(|| (run, replies::chain(&data["message_chain"])))
}

fn profile_of(run: &Run) -> RunnerProfile {
    run.wire.profile.get().copied().unwrap_or_default()
}

fn response<'a>(number: i64, code: i64, frame: &Frame<'_>, data: &'a RawValue) -> Inbound<'a> {
    let response = match code {
        0 => Ok(data),
        code => {
            let message = frame.message.as_deref().unwrap_or("no reason was given");
            Err(RpcError { code, message: with_advice(message), data: None })
        }
    };
    Inbound::Response { number, response }
}

/// One result of a run, which may become several.
fn result(run: &Arc<Run>, data: &RawValue, bytes: usize, take: Take<'_>) {
    let results = results::translate(&run.id, data, &mut run.wire.card(), profile_of(run));
    let count = results.len();
    for (index, mut result) in results.into_iter().enumerate() {
        let is_start = result.kind == kind::TOOL_CALL_STARTED;
        if (is_start || result.kind == kind::TOOL_CALL_COMPLETED)
            && let Some(data) = &result.data
        {
            if replies::is_reported(data) {
                // The reply itself is among the results.
                return;
            }
            if let Some(paired) = run.wire.pairing().report(is_start, data) {
                result.data = Some(paired);
            }
        }
        let own = result.data.as_ref().map_or(0, |data| data.get().len());
        let bytes = if index + 1 == count { bytes } else { own };
        take(Inbound::Result { run: run.clone(), result, bytes });
    }
}

/// A reply in the form of an action is a message of its run.
fn reply(run: &Arc<Run>, id: &str, reply: Result<Replied, AgentAPIError>, take: Take<'_>) {
    let answer = reply.map(|reply| {
        let (content, answer) = replies::answer(reply);
        if let Some(result) = content.and_then(|content| message(run, content)) {
            run.wire.card().interrupt();
            let bytes = result.data.as_ref().map_or(0, |data| data.get().len());
            take(Inbound::Result { run: run.clone(), result, bytes });
        }
        answer
    });
    take(answered(id, answer));
}

fn answered(id: &str, answer: Result<Value, AgentAPIError>) -> Inbound<'static> {
    let answer = answer.and_then(|answer| to_raw_value(&answer).map_err(malformed));
    Inbound::Answered(frames::answer(id, answer))
}

fn message(run: &Run, content: Value) -> Option<RawResult> {
    let data = json!({"message": {"role": "assistant", "content": content}});
    Some(RawResult {
        run_id: run.id.clone(),
        kind: kind::MESSAGE_COMPLETED.to_owned(),
        data: Some(to_raw_value(&data).ok()?),
        sequence: None,
        timestamp: None,
        usage: None,
    })
}

/// Whether a line that is not valid was meant as a message or as a piece of one.
fn is_message(line: &[u8]) -> bool {
    let is_chunk = |kind: &RawValue| kind.get().starts_with("\"chunk_");
    head::keys(line, &["seq_id", "type"])
        .into_iter()
        .any(|(key, value)| key == "seq_id" || value.is_some_and(is_chunk))
}

/// An error of a plugin, with advice where the cause is known.
fn with_advice(message: &str) -> String {
    let advice = match message.contains("Action run_agent not found") {
        true => "; its SDK knows no `kind: AgentRunner`, write `kind: Runner`",
        false => "",
    };
    format!("{message}{advice}")
}

fn malformed(error: serde_json::Error) -> AgentAPIError {
    AgentAPIError::new(ErrorCode::InvalidArgument, error.to_string())
}

#[cfg(test)]
mod tests;
