//! Run results: one constructor for each of the nine stable types, and for those that are only shown.
//!
//! Invariant: the host accepts what these constructors build; run id and sequence number are added when the result is
//! sent.

use crate::RunFailure;
use base64::Engine;
use greenroom_protocol::payload::{
    ActionRequested, ArtifactCreated, Message, MessageChunk, MessageCompleted, MessageDelta,
    RunCompleted, StateScope, StateUpdated, ToolCallCompleted, ToolCallStarted,
};
use greenroom_protocol::result::kind;
use greenroom_protocol::{Object, Role};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use std::borrow::Cow;

/// One result, before it is numbered.
#[derive(Debug, Clone)]
pub struct RunResult {
    pub(crate) kind: Cow<'static, str>,
    pub(crate) data: Box<RawValue>,
    pub(crate) usage: Option<Object>,
}

impl RunResult {
    /// `message.delta`: a piece of the reply.
    pub fn delta(text: impl Into<String>) -> Self {
        let chunk = MessageChunk {
            role: Role::Assistant,
            content: text.into(),
            message_id: None,
            replace: false,
        };
        Self::of(kind::MESSAGE_DELTA, &MessageDelta { chunk })
    }

    /// `message.completed` with text.
    pub fn message(text: impl Into<String>) -> Self {
        Self::message_of(Message::assistant(text))
    }

    /// `message.completed` with parts, segments or metadata.
    pub fn message_of(message: Message) -> Self {
        Self::of(kind::MESSAGE_COMPLETED, &MessageCompleted { message })
    }

    /// `tool.call.started`.
    pub fn tool_started(
        call_id: impl Into<String>,
        tool: impl Into<String>,
        parameters: impl Into<Value>,
    ) -> Self {
        let call = ToolCallStarted {
            tool_call_id: call_id.into(),
            tool_name: tool.into(),
            parameters: parameters.into(),
        };
        Self::of(kind::TOOL_CALL_STARTED, &call)
    }

    /// `tool.call.completed` with the tool's result.
    pub fn tool_completed(
        call_id: impl Into<String>,
        tool: impl Into<String>,
        result: impl Into<Value>,
    ) -> Self {
        let call = ToolCallCompleted {
            tool_call_id: call_id.into(),
            tool_name: tool.into(),
            result: result.into(),
            error: Value::Null,
        };
        Self::of(kind::TOOL_CALL_COMPLETED, &call)
    }

    /// `tool.call.completed` with the tool's error.
    pub fn tool_failed(
        call_id: impl Into<String>,
        tool: impl Into<String>,
        error: impl Into<Value>,
    ) -> Self {
        let call = ToolCallCompleted {
            tool_call_id: call_id.into(),
            tool_name: tool.into(),
            result: Value::Null,
            error: error.into(),
        };
        Self::of(kind::TOOL_CALL_COMPLETED, &call)
    }

    /// `artifact.created` with inline content.
    pub fn artifact(name: &str, mime_type: &str, bytes: &[u8]) -> Self {
        Self::artifact_of(ArtifactCreated {
            artifact_id: None,
            name: Some(name.to_owned()),
            mime_type: Some(mime_type.to_owned()),
            size_bytes: Some(bytes.len() as u64),
            sha256: None,
            content_base64: Some(base64::engine::general_purpose::STANDARD.encode(bytes)),
            metadata: None,
        })
    }

    /// `artifact.created` with the given fields, such as an existing id.
    pub fn artifact_of(artifact: ArtifactCreated) -> Self {
        Self::of(kind::ARTIFACT_CREATED, &artifact)
    }

    /// `state.updated`; a null value removes the key.
    pub fn state(scope: StateScope, key: impl Into<String>, value: impl Into<Value>) -> Self {
        let update = StateUpdated { scope, key: key.into(), value: value.into() };
        Self::of(kind::STATE_UPDATED, &update)
    }

    /// `action.requested`.
    pub fn action(action: impl Into<String>, target: Object, payload: Object) -> Self {
        let request =
            ActionRequested { action: action.into(), target: Some(target), payload: Some(payload) };
        Self::of(kind::ACTION_REQUESTED, &request)
    }

    /// `run.completed`, sent automatically when a run returns `Ok`.
    pub fn completed(finish_reason: impl Into<String>) -> Self {
        let completed = RunCompleted { finish_reason: Some(finish_reason.into()), message: None };
        Self::of(kind::RUN_COMPLETED, &completed)
    }

    /// `run.failed`, sent automatically when a run returns `Err`.
    pub fn failed(failure: RunFailure) -> Self {
        Self::of(kind::RUN_FAILED, &failure.into_payload())
    }

    /// `reasoning.delta`: a piece of reasoning, before the text that it leads to.
    pub fn reasoning(text: impl Into<String>) -> Self {
        Self::shown(kind::REASONING_DELTA, json!({"text": text.into()}))
    }

    /// `tool.call.delta`: a piece of a call's arguments; `tool_started` with the same id ends them.
    pub fn tool_delta(
        call_id: impl Into<String>,
        tool: impl Into<String>,
        args_text: impl Into<String>,
    ) -> Self {
        let piece = json!({"tool_call_id": call_id.into(), "tool_name": tool.into(),
            "args_text": args_text.into()});
        Self::shown(kind::TOOL_CALL_DELTA, piece)
    }

    /// `step.started`.
    pub fn step_started(name: impl Into<String>) -> Self {
        Self::shown(kind::STEP_STARTED, json!({"step_name": name.into()}))
    }

    /// `step.finished`.
    pub fn step_finished(name: impl Into<String>) -> Self {
        Self::shown(kind::STEP_FINISHED, json!({"step_name": name.into()}))
    }

    /// `client.state.snapshot`: replaces the state of the client that sent the event.
    pub fn client_state(state: impl Into<Value>) -> Self {
        Self::shown(kind::CLIENT_STATE_SNAPSHOT, json!({"state": state.into()}))
    }

    /// `client.state.delta`: a JSON patch (RFC 6902) of that state.
    pub fn client_state_patch(operations: Vec<Value>) -> Self {
        Self::shown(kind::CLIENT_STATE_DELTA, json!({"patch": operations}))
    }

    /// A result type unknown to this SDK; the host stores it without acting on it.
    pub fn other(kind: impl Into<String>, data: Object) -> Self {
        Self { kind: Cow::Owned(kind.into()), data: raw(&data), usage: None }
    }

    /// Tokens and cost, with `run.completed`.
    pub fn with_usage(mut self, usage: Object) -> Self {
        self.usage = Some(usage);
        self
    }

    /// Its type, such as `message.delta`.
    pub fn kind(&self) -> &str {
        &self.kind
    }

    pub(crate) fn is_terminal(&self) -> bool {
        self.kind == kind::RUN_COMPLETED || self.kind == kind::RUN_FAILED
    }

    fn shown(kind: &'static str, data: Value) -> Self {
        Self::of(kind, &data)
    }

    fn of(kind: &'static str, payload: &impl Serialize) -> Self {
        Self { kind: Cow::Borrowed(kind), data: raw(payload), usage: None }
    }
}

fn raw(payload: &impl Serialize) -> Box<RawValue> {
    to_raw_value(payload).expect("payloads have text keys and finite numbers, so they serialise")
}
