//! What a LangBot plugin writes: answers, streams of results, and actions that it asks for.
//!
//! Invariant: a line that is none of these harms nobody: whoever prints to standard output is told so. Frames
//! that do not fit together end what is under way, as corrupt ones do on every wire; a long message that is
//! left unfinished, as the SDK leaves one whose run is cancelled, is forgotten when the next one begins.

use super::{QUOTE_CHARS, Reader, whose};
use crate::connection::Streamed;
use crate::run::Run;
use crate::wires::Codec;
use crate::wires::langbot::actions::{self, Asked, Reply};
use crate::wires::langbot::chunks::{Assembly, Joined};
use crate::wires::langbot::frames::Frame;
use crate::wires::langbot::records::About;
use crate::wires::langbot::replies::{self, Replied};
use crate::wires::langbot::serve::{OpenStream, Serving, timeout_of};
use crate::wires::langbot::stream::Flow;
use crate::wires::langbot::{Session, results};
use greenroom_protocol::result::kind;
use greenroom_protocol::wire::RpcError;
use greenroom_protocol::{AgentAPIError, ErrorCode, RawResult, RunnerId};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::sync::Arc;

impl Reader {
    pub(super) fn take_plugins(&mut self, line: &[u8]) {
        // Nearly every line is text, which is quickly told.
        let text = match std::str::from_utf8(line) {
            Ok(text) => Cow::Borrowed(text),
            Err(_) => String::from_utf8_lossy(line),
        };
        let text = text.trim_ascii();
        if !text.starts_with('{') {
            return self.printed(text);
        }
        match serde_json::from_str::<Frame<'_>>(text) {
            Ok(frame) if frame.kind.as_deref().is_some_and(|kind| kind.starts_with("chunk_")) => {
                self.piece(&frame, line);
            }
            Ok(frame) => {
                if frame.seq_id.is_some() {
                    self.begin();
                }
                self.message(text.len(), &frame);
            }
            Err(_) if whose::is_plugins(text.as_bytes()) => {
                self.corrupt("a line that is not a LangBot message", line);
            }
            Err(_) => self.printed(text),
        }
    }

    /// Another message begins: pieces of one that has no end are of no use, and further ones fit nowhere.
    fn begin(&mut self) {
        if self.assembly.take().is_some() {
            self.warn("a long message without its end");
        }
    }

    fn piece(&mut self, frame: &Frame<'_>, line: &[u8]) {
        if frame.kind.as_deref() == Some("chunk_start") {
            self.begin();
        }
        match Assembly::take(&mut self.assembly, frame) {
            Joined::Part => {}
            Joined::Broken(reason) => {
                self.corrupt(&format!("pieces that do not fit, it {reason}"), line);
            }
            Joined::Whole(message) => match serde_json::from_str::<Frame<'_>>(&message) {
                Ok(frame) => self.message(message.len(), &frame),
                Err(_) => self.corrupt("a long message that is not JSON", message.as_bytes()),
            },
        }
    }

    /// Text on standard output, which belongs to the wire.
    fn printed(&mut self, text: &str) {
        let Codec::Langbot(session) = &self.connection.codec else { return };
        if !text.is_empty() && !session.is_greeting() {
            let text = self.connection.cleaner.quote(text, QUOTE_CHARS);
            self.warn(&format!("text on standard output, which is not read: {text:?}"));
        }
    }

    fn message(&mut self, bytes: usize, frame: &Frame<'_>) {
        let data = frame.data.unwrap_or(RawValue::NULL);
        match (frame.seq_id, frame.code, frame.action.as_deref()) {
            (Some(number), Some(code), _) => self.answered(number, code, frame, data, bytes),
            (Some(number), None, Some(action)) => self.asked(number, action, frame, data),
            _ => self.warn("a message that is neither an answer nor a request"),
        }
    }

    fn answered(
        &mut self,
        number: i64,
        code: i64,
        frame: &Frame<'_>,
        data: &RawValue,
        bytes: usize,
    ) {
        let is_end = code != 0 || frame.chunk_status.as_deref() == Some("end");
        if !is_end {
            match self.connection.streamed(number) {
                Streamed::To(run) => return self.told(&run, data, bytes),
                Streamed::Late => return,
                Streamed::None => {}
            }
        }
        let answer = match code {
            0 => Ok(data),
            code => {
                let message = frame.message.as_deref().unwrap_or("no reason was given");
                Err(RpcError { code, message: with_advice(message), data: None })
            }
        };
        // Results that came before the answer belong before the end of the run.
        self.announce();
        if !self.connection.answered(number, answer) {
            self.warn("an answer to nothing that was asked");
        }
    }

    /// One result of a run.
    fn told(&mut self, run: &Arc<Run>, data: &RawValue, bytes: usize) {
        let Some(mut result) = results::translate(&run.id, data) else { return };
        let is_start = result.kind == kind::TOOL_CALL_STARTED;
        if (is_start || result.kind == kind::TOOL_CALL_COMPLETED)
            && let Some(told) = &result.data
        {
            if replies::is_told(told) {
                // The answer itself is among the results.
                return;
            }
            if let Some(paired) = run.pairing().tell(is_start, told) {
                result.data = Some(paired);
            }
        }
        self.offer(run.clone(), result, bytes);
    }

    fn asked(&mut self, number: i64, action: &str, frame: &Frame<'_>, data: &RawValue) {
        let connection = self.connection.clone();
        let Codec::Langbot(session) = &connection.codec else { return };
        let id = number.to_string();
        let field = |key: &str| serde_json::from_str::<Value>(data.get()).ok()?.get(key).cloned();
        let answer = match action {
            "register_plugin" => session.register(data).map(|()| json!({})).inspect_err(|error| {
                connection.replace(format!("could not register: {}", error.message));
            }),
            "get_langbot_version" => Ok(session.version()),
            "__ping" | "__heartbeat" => Ok(json!({"alive": true})),
            "__cancel_action" => {
                let given_up = field("seq_id")
                    .and_then(|number| connection.lock().calls.remove(&number.to_string()));
                Ok(json!({"cancelled": given_up.inspect(|call| call.abort()).is_some()}))
            }
            "__stream_ack" => {
                let stream = field("seq_id").unwrap_or_default().to_string();
                let index = field("index").and_then(|index| index.as_u64());
                let accepted = index.is_some_and(|index| session.acknowledged(&stream, index));
                Ok(json!({"accepted": accepted}))
            }
            _ => return self.call_host(session, &id, action, frame, data),
        };
        let answer = answer.and_then(|answer| to_raw_value(&answer).map_err(malformed));
        connection.send_or_replace(connection.codec.answer(&id, answer));
    }

    /// An action that the host's proxy answers. Nothing of it is kept until it is carried out.
    fn call_host(
        &mut self,
        session: &Session,
        id: &str,
        action: &str,
        frame: &Frame<'_>,
        data: &RawValue,
    ) {
        let data: Value = match serde_json::from_str(data.get()) {
            Ok(data) => data,
            Err(error) => return self.refuse(id, None, action, malformed(error)),
        };
        let run_id = data["run_id"].as_str();
        let run = run_id.and_then(|id| self.connection.live_run(id));
        let runner = run_id.and_then(|id| self.connection.runner_of(id));
        let profile = session.profile(runner.as_ref().map_or("", RunnerId::runner));
        if let Some(run) = run.as_ref().filter(|_| profile.replies)
            && let Some(reply) = replies::read(action, &data)
        {
            return self.reply(run, id, reply);
        }
        if replies::is_only_that(action) {
            let message = match run {
                Some(_) => "only runners whose `usages` have `event` answer by calls",
                None => "there is no such live run",
            };
            let error = AgentAPIError::new(ErrorCode::Unauthorized, message);
            return self.refuse(id, run_id, action, error);
        }
        let asked = actions::translate(action, &data).and_then(|mut asked| {
            asked.params["run_id"] = data["run_id"].clone();
            let params = to_raw_value(&asked.params).map_err(malformed)?;
            Ok((asked, params))
        });
        let (mut asked, params) = match asked {
            Ok(asked) => asked,
            Err(error) => return self.refuse(id, run_id, action, error),
        };
        let about = About {
            run_id: run_id.unwrap_or_default().to_owned(),
            dialect: profile.dialect,
            runner_id: runner.map(|id| id.as_str().to_owned()).unwrap_or_default(),
        };
        let call = self.proxy_call(id, run_id.map(str::to_owned), asked.method, params);
        let acknowledges = frame.stream_flow_control == Some(1);
        self.carry_out(id.to_owned(), call, |connection, call| {
            if let Some(run) = run {
                name_call(&run, &mut asked);
            }
            let stream = (asked.reply == Reply::Stream).then(|| {
                let flow = Flow::new(acknowledges, data["remove_think"] == true);
                OpenStream::new(&connection, id, flow)
            });
            let timeout = timeout_of(&data);
            Serving { connection, call, asked, about, timeout, stream }.serve()
        });
    }

    fn refuse(&mut self, id: &str, run_id: Option<&str>, action: &str, error: AgentAPIError) {
        let run_id = run_id.map(str::to_owned);
        let call = self.proxy_call(id, run_id, action, RawValue::NULL.to_owned());
        let connection = &self.connection;
        connection.proxy.refused(&call, &error);
        connection.send_or_replace(connection.codec.answer(id, Err(error)));
    }

    /// What a runner answers by a call is a message of its run.
    fn reply(&mut self, run: &Arc<Run>, id: &str, reply: Result<Replied, AgentAPIError>) {
        let told = reply.and_then(|reply| {
            let (content, answer) = replies::answer(reply);
            if let Some(result) = content.and_then(|content| message(run, content)) {
                let bytes = result.data.as_ref().map_or(0, |data| data.get().len());
                self.offer(run.clone(), result, bytes);
            }
            to_raw_value(&answer).map_err(malformed)
        });
        self.connection.send_or_replace(self.connection.codec.answer(id, told));
    }
}

/// The result of a run that a reply is.
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

/// Gives a call of a tool the id under which the runner tells of it, unless it comes with one.
fn name_call(run: &Run, asked: &mut Asked) {
    if asked.method == "tools.call" && asked.params.get("tool_call_id").is_none() {
        let tool = asked.params["tool_name"].as_str().unwrap_or_default();
        let fresh = || format!("call_{:016x}", getrandom::u64().unwrap_or_default());
        let id = run.pairing().call(tool, fresh);
        asked.params["tool_call_id"] = id.into();
    }
}

/// What a plugin says went wrong, with what can be done about it where that is known.
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
