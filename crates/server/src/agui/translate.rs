//! Results of a run as AG-UI events.
//!
//! Invariant: pure, and the same results give the same events: every id is made of the run and the number of a
//! result, so a client that comes back meets the messages it knows. What is open is closed before the end, and
//! nothing comes behind the end.

mod messages;
mod state;
mod tools;

use super::event::{Event, Interrupt, Outcome, TokenUsage};
use super::input::Profile;
use greenroom_protocol::Payload;
use greenroom_protocol::error::run_code;
use greenroom_protocol::payload::{ArtifactCreated, RunCompleted, RunFailed};
use greenroom_protocol::result::kind;
use greenroom_store::types::ResultRecord;
use messages::Messages;
use serde_json::{Map, Value, json};
use state::ClientState;
use tools::Calls;

/// Whose stream it is.
#[derive(Debug, Clone)]
pub(crate) struct Stream {
    pub(crate) thread_id: String,
    /// The run as the client calls it.
    pub(crate) agui_run_id: String,
    /// The host's run.
    pub(crate) run_id: String,
    pub(crate) profile: Profile,
}

#[derive(Debug)]
pub(crate) struct Translator {
    stream: Stream,
    messages: Messages,
    calls: Calls,
    state: ClientState,
    /// An action was asked for, which may wait for an answer beyond the run.
    pub(crate) asked: bool,
    ended: bool,
}

impl Translator {
    /// A client has these messages and this state. What it has of this very run is told anew.
    pub(crate) fn new(stream: Stream, messages: Vec<Value>, state: Value) -> Self {
        let calls = Calls::new(&messages, &stream.run_id);
        let messages = Messages::new(messages, &stream.run_id);
        Self { messages, calls, state: ClientState::new(state), asked: false, ended: false, stream }
    }

    pub(crate) fn stream(&self) -> &Stream {
        &self.stream
    }

    pub(crate) fn is_over(&self) -> bool {
        self.ended
    }

    pub(crate) fn started(&self) -> Event {
        let about = json!({"run_id": self.stream.run_id});
        Event::RunStarted {
            thread_id: self.stream.thread_id.clone(),
            run_id: self.stream.agui_run_id.clone(),
            protocol_version: (self.stream.profile == Profile::One).then_some("1.0"),
            metadata: Map::from_iter([("greenroom".to_owned(), about)]),
        }
    }

    /// Takes back what the client has of this run already, if it has anything.
    pub(crate) fn reset(&self) -> Option<Event> {
        self.messages.client_knows_some.then(|| self.messages.snapshot())
    }

    /// The host's own record of a call is what is shown of it, where there is one.
    pub(crate) fn take(&mut self, record: &ResultRecord, recorded: Option<Value>) -> Vec<Event> {
        let mut out = Vec::new();
        if self.ended {
            return out;
        }
        if record.kind == kind::RUN_RESTARTED {
            self.restarted(record, &mut out);
            return out;
        }
        let Ok(payload) = Payload::parse(&record.kind, Some(record.data.get())) else {
            return out;
        };
        let number = record.sequence;
        match payload {
            Payload::MessageDelta(delta) => self.messages.delta(delta.chunk, number, &mut out),
            Payload::MessageCompleted(completed) => {
                self.messages.completed(&completed.message, number, &mut out);
            }
            Payload::ToolCallStarted(call) => {
                self.messages.close(&mut out);
                self.calls.started(&call, number, &mut self.messages, &mut out);
            }
            Payload::ToolCallCompleted(call) => {
                self.messages.close(&mut out);
                self.calls.completed(&call, (number, recorded), &mut self.messages, &mut out);
            }
            Payload::ArtifactCreated(artifact) => out.push(shown(&artifact)),
            Payload::StateUpdated(update) => self.state.update(&update, &mut out),
            Payload::ActionRequested(_) => {
                self.asked = true;
                out.push(custom(record));
            }
            Payload::RunCompleted(completed) => self.completed(&completed, record, &mut out),
            Payload::RunFailed(failed) => self.failed(&failed, &mut out),
            Payload::Unknown => out.push(custom(record)),
        }
        out
    }

    /// Closes what is open, as the end of a stream does.
    pub(crate) fn close(&mut self) -> Vec<Event> {
        let mut out = Vec::new();
        self.messages.close(&mut out);
        out
    }

    /// Ends the stream because something has to be answered first. The host's run goes on.
    pub(crate) fn interrupted(&mut self, interrupts: Vec<Interrupt>) -> Vec<Event> {
        let mut out = self.close();
        out.extend(self.state.snapshot());
        out.push(self.messages.snapshot());
        out.push(self.finished(None, Some(Outcome::Interrupt { interrupts }), Vec::new()));
        out
    }

    /// Ends the stream for a reason that is not the run's own.
    pub(crate) fn broken(&mut self, code: &str, message: impl Into<String>) -> Vec<Event> {
        let mut out = self.close();
        self.ended = true;
        out.push(Event::RunError { message: message.into(), code: Some(code.to_owned()) });
        out
    }

    /// Ends the stream of a run that completed and whose results are gone.
    pub(crate) fn ended(&mut self) -> Vec<Event> {
        let mut out = self.close();
        let outcome = (self.stream.profile == Profile::One).then_some(Outcome::Success);
        let result = json!({"run_id": self.stream.run_id});
        out.push(self.finished(Some(result), outcome, Vec::new()));
        out
    }

    /// How the client calls a tool call of the runner's.
    pub(crate) fn call_id(&self, tool_call_id: &str) -> Option<String> {
        self.calls.client_id(tool_call_id)
    }

    fn completed(&mut self, done: &RunCompleted, record: &ResultRecord, out: &mut Vec<Event>) {
        if let Some(message) = done.message.as_ref().filter(|_| !self.messages.saw_complete) {
            self.messages.completed(message, record.sequence, out);
        }
        self.messages.close(out);
        let mut result = json!({"run_id": self.stream.run_id});
        if let Some(reason) = &done.finish_reason {
            result["finish_reason"] = reason.as_str().into();
        }
        let usage = record.usage.as_ref().and_then(|usage| serde_json::from_str(usage.get()).ok());
        let usage = usage.as_ref().and_then(TokenUsage::read);
        let outcome = (self.stream.profile == Profile::One).then_some(Outcome::Success);
        out.push(self.finished(Some(result), outcome, usage.into_iter().collect()));
    }

    fn failed(&mut self, failed: &RunFailed, out: &mut Vec<Event>) {
        self.messages.close(out);
        if failed.code == run_code::CANCELLED && self.stream.profile == Profile::One {
            let result = json!({"run_id": self.stream.run_id});
            out.push(self.finished(Some(result), Some(Outcome::Cancelled), Vec::new()));
            return;
        }
        self.ended = true;
        let (code, message) = (Some(failed.code.clone()), failed.text().to_owned());
        out.push(Event::RunError { message, code });
    }

    fn finished(
        &mut self,
        result: Option<Value>,
        outcome: Option<Outcome>,
        usage: Vec<TokenUsage>,
    ) -> Event {
        self.ended = true;
        let (thread_id, run_id) = (self.stream.thread_id.clone(), self.stream.agui_run_id.clone());
        Event::RunFinished { thread_id, run_id, result, outcome, usage }
    }

    /// A new attempt begins: what was told of the earlier one is taken back.
    fn restarted(&mut self, record: &ResultRecord, out: &mut Vec<Event>) {
        self.messages.close(out);
        if self.messages.forget() {
            out.push(self.messages.snapshot());
        }
        out.push(custom(record));
    }
}

fn shown(artifact: &ArtifactCreated) -> Event {
    let mut value = json!({});
    let size = artifact.size_bytes.map(Value::from);
    let text = |text: &Option<String>| text.clone().map(Value::from);
    let url = artifact.artifact_id.as_ref().map(|id| format!("/v1/artifacts/{id}").into());
    let fields = [
        ("artifact_id", text(&artifact.artifact_id)),
        ("name", text(&artifact.name)),
        ("mime_type", text(&artifact.mime_type)),
        ("size_bytes", size),
        ("sha256", text(&artifact.sha256)),
        ("metadata", artifact.metadata.clone().map(Value::Object)),
        ("url", url),
    ];
    for (name, field) in fields {
        if let Some(field) = field {
            value[name] = field;
        }
    }
    Event::Custom { name: kind::ARTIFACT_CREATED.to_owned(), value }
}

/// What AG-UI has no event for.
fn custom(record: &ResultRecord) -> Event {
    let value = serde_json::from_str(record.data.get()).unwrap_or_default();
    Event::Custom { name: record.kind.to_string(), value }
}

#[cfg(test)]
mod tests;
