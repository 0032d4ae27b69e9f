//! Translates results of a run to AG-UI events.
//!
//! Invariant: pure and deterministic: every id is derived from the run and a sequence number, so a client that
//! reconnects sees the ids it knows. Open messages are closed before the end, and nothing follows the end.

mod messages;
mod parts;
mod patch;
mod progress;
mod reasoning;
mod state;
mod tools;

use super::event::{Event, Interrupt, Outcome, TokenUsage};
use super::input::Profile;
use greenroom_protocol::Payload;
use greenroom_protocol::error::run_code;
use greenroom_protocol::interaction::INTERACTION;
use greenroom_protocol::payload::{ArtifactCreated, Message, RunCompleted, RunFailed};
use greenroom_protocol::result::kind;
use greenroom_store::types::ResultRecord;
use messages::Messages;
pub(crate) use patch::apply as applied;
use progress::Progress;
use serde_json::{Map, Value, json};
use state::ClientState;
use tools::Calls;

/// The field of a result's data, or of a message's metadata, with the sub-agent that it is of.
const SUBAGENT_ID: &str = "subagent_id";

#[derive(Debug, Clone)]
pub(crate) struct Stream {
    pub(crate) thread_id: String,
    /// The client's run id.
    pub(crate) agui_run_id: String,
    /// The host's run id.
    pub(crate) run_id: String,
    pub(crate) profile: Profile,
    /// The client's id of the catalogue of cards.
    pub(crate) catalogue: &'static str,
}

/// What a stream repeats of a run that began earlier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Repeats {
    All,
    Rest,
}

#[derive(Debug)]
pub(crate) struct Translator {
    stream: Stream,
    messages: Messages,
    calls: Calls,
    state: ClientState,
    progress: Progress,
    /// An action was requested, which may wait for approval after the run has ended.
    pub(crate) action_requested: bool,
    ended: bool,
}

impl Translator {
    /// A translator for a client with these messages and this state. Its messages of this run are sent again.
    pub(crate) fn new(stream: Stream, messages: Vec<Value>, state: Value) -> Self {
        let calls = Calls::new(&messages, &stream);
        let messages = Messages::new(messages, &stream.run_id);
        let progress = Progress::new(&stream.run_id);
        Self {
            messages,
            calls,
            state: ClientState::new(state),
            progress,
            action_requested: false,
            ended: false,
            stream,
        }
    }

    /// The run began with this state of the client, before the state that it sends now.
    pub(crate) fn began_with(&mut self, state: Value, repeats: Repeats) {
        match repeats {
            Repeats::All => self.state.repeat_from(state),
            Repeats::Rest => self.state.continue_from(state),
        }
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

    /// Removes the client's messages of this run, if it has any.
    pub(crate) fn take_back(&self) -> Option<Event> {
        self.messages.client_has_own.then(|| self.messages.snapshot())
    }

    /// `recorded` is the host's record of a tool call; it takes precedence over what the runner reports.
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
        self.messages.author = self.author(record);
        match payload {
            Payload::MessageDelta(delta) => self.messages.delta(delta.chunk, number, &mut out),
            Payload::MessageCompleted(completed) => {
                self.messages.completed(&completed.message, number, &mut out);
                self.asked(&completed.message, number, &mut out);
            }
            Payload::ToolCallStarted(call) => {
                self.messages.close(&mut out);
                self.calls.started(&call, number, &mut self.messages, &mut out);
            }
            Payload::ToolCallCompleted(call) => {
                self.messages.close(&mut out);
                self.calls.completed(&call, (number, recorded), &mut self.messages, &mut out);
            }
            Payload::ArtifactCreated(artifact) => out.push(artifact_event(&artifact)),
            Payload::StateUpdated(update) => self.state.update(&update, &mut out),
            Payload::ActionRequested(_) => {
                self.action_requested = true;
                out.push(custom(record));
            }
            Payload::RunCompleted(completed) => self.completed(&completed, record, &mut out),
            Payload::RunFailed(failed) => self.failed(&failed, &mut out),
            Payload::Unknown => self.shown(record, &mut out),
        }
        out
    }

    /// The open sub-agent that a result is of. Clients that know sub-agents know the field.
    fn author(&self, record: &ResultRecord) -> Option<String> {
        let text = record.data.get();
        if !text.contains(SUBAGENT_ID) {
            return None;
        }
        let data: Value = serde_json::from_str(text).ok()?;
        let named = [&data, &data["message"]["metadata"]].map(|at| at[SUBAGENT_ID].as_str());
        named.into_iter().flatten().find(|id| self.progress.has_open(id)).map(str::to_owned)
    }

    /// A result that is only shown, or of an unknown type.
    fn shown(&mut self, record: &ResultRecord, out: &mut Vec<Event>) {
        let data: Value = serde_json::from_str(record.data.get()).unwrap_or_default();
        let text = |key: &str| data[key].as_str().unwrap_or_default();
        let number = record.sequence;
        match record.kind.as_ref() {
            kind::REASONING_DELTA => {
                if !text("text").is_empty() {
                    self.messages.thought(text("text"), number, out);
                }
            }
            kind::TOOL_CALL_DELTA => {
                let piece = (text("tool_call_id"), text("tool_name"), text("args_text"));
                if !piece.0.is_empty() && !piece.1.is_empty() {
                    self.messages.close(out);
                    self.calls.piece(piece, number, &mut self.messages, out);
                }
            }
            kind::CLIENT_STATE_SNAPSHOT => {
                self.state.replace(data.get("state").cloned().unwrap_or_default(), out);
            }
            kind::CLIENT_STATE_DELTA => {
                self.state.patch(data["patch"].as_array().cloned().unwrap_or_default(), out);
            }
            other => {
                let by = (&data, self.messages.author.clone());
                match self.progress.take(other, by, |id| self.calls.client_id(id)) {
                    Some(events) => {
                        self.messages.close(out);
                        out.extend(events);
                    }
                    None => out.push(custom(record)),
                }
            }
        }
    }

    /// The form of a message whose text asks the same; the client answers it with `forwardedProps.interaction`.
    fn asked(&mut self, message: &Message, number: i64, out: &mut Vec<Event>) {
        let Some(request) = message.metadata.as_ref().and_then(|about| about.get(INTERACTION))
        else {
            return;
        };
        self.messages.close(out);
        let value = json!({"run_id": self.stream.run_id, "message_id": self.messages.id(number),
            "request": request});
        out.push(Event::Custom { name: "interaction.requested".to_owned(), value });
    }

    /// Ends everything that is open.
    pub(crate) fn close(&mut self) -> Vec<Event> {
        let mut out = Vec::new();
        self.close_into(&mut out);
        out
    }

    fn close_into(&mut self, out: &mut Vec<Event>) {
        self.messages.close(out);
        self.calls.close(&mut self.messages, out);
        self.progress.close(out);
    }

    fn success(&self) -> Option<Outcome> {
        let pending = self.calls.pending();
        (self.stream.profile == Profile::One).then_some(Outcome::Success { pending })
    }

    /// Ends the stream because an approval is needed first. The host's run continues.
    pub(crate) fn interrupted(&mut self, interrupts: Vec<Interrupt>) -> Vec<Event> {
        let mut out = self.close();
        out.extend(self.state.snapshot());
        out.push(self.messages.snapshot());
        out.push(self.finished(None, Some(Outcome::Interrupt { interrupts }), Vec::new()));
        out
    }

    /// Ends the stream for a reason other than the run's own result.
    pub(crate) fn abort(&mut self, code: &str, message: impl Into<String>) -> Vec<Event> {
        let mut out = self.close();
        self.ended = true;
        out.push(Event::RunError { message: message.into(), code: Some(code.to_owned()) });
        out
    }

    /// Ends the stream of a completed run whose results were removed.
    pub(crate) fn finish(&mut self) -> Vec<Event> {
        let mut out = self.close();
        let outcome = self.success();
        let result = json!({"run_id": self.stream.run_id});
        out.push(self.finished(Some(result), outcome, Vec::new()));
        out
    }

    /// The client's id of a tool call.
    pub(crate) fn call_id(&self, tool_call_id: &str) -> Option<String> {
        self.calls.client_id(tool_call_id)
    }

    /// The sub-agent of the last complete message.
    pub(crate) fn completed_by(&self) -> Option<&str> {
        self.messages.completed_by.as_deref()
    }

    fn completed(&mut self, done: &RunCompleted, record: &ResultRecord, out: &mut Vec<Event>) {
        if let Some(message) = done.message.as_ref().filter(|_| !self.messages.saw_complete) {
            self.messages.completed(message, record.sequence, out);
        }
        self.close_into(out);
        let mut result = json!({"run_id": self.stream.run_id});
        if let Some(reason) = &done.finish_reason {
            result["finish_reason"] = reason.as_str().into();
        }
        let usage = record.usage.as_ref().and_then(|usage| serde_json::from_str(usage.get()).ok());
        let usage = usage.as_ref().and_then(TokenUsage::read);
        let outcome = self.success();
        out.push(self.finished(Some(result), outcome, usage.into_iter().collect()));
    }

    fn failed(&mut self, failed: &RunFailed, out: &mut Vec<Event>) {
        self.close_into(out);
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

    /// A new attempt starts: everything sent of the earlier one is taken back.
    fn restarted(&mut self, record: &ResultRecord, out: &mut Vec<Event>) {
        self.close_into(out);
        self.calls.clear();
        if self.messages.clear() {
            out.push(self.messages.snapshot());
        }
        self.state.restart(out);
        out.push(custom(record));
    }
}

fn artifact_event(artifact: &ArtifactCreated) -> Event {
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

/// A result that AG-UI has no event for.
fn custom(record: &ResultRecord) -> Event {
    let value = serde_json::from_str(record.data.get()).unwrap_or_default();
    Event::Custom { name: record.kind.to_string(), value }
}

#[cfg(test)]
mod tests;
