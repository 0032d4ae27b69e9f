//! What the spans of the host contain, by the GenAI semantic conventions of OpenTelemetry.
//!
//! Invariant: names, ids, counts and codes only; no text of a message, argument or result.

use super::Attribute::{Number, Text, Texts};
use super::{Attribute, Kind, Span};
use crate::context::Identity;
use crate::host::Shared;
use greenroom_models::ModelSettings;
use greenroom_store::commands::{RecordModelCall, Terminal};
use serde_json::Value;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A tool call that ended.
pub(crate) struct ToolSpan<'a> {
    pub(crate) tool: &'a str,
    pub(crate) tool_call_id: &'a str,
    pub(crate) took: Duration,
    /// The code of its failure.
    pub(crate) error: Option<String>,
}

impl Shared {
    /// One attempt of a run, from its start to its end.
    pub(crate) fn trace_run(&self, identity: &Identity, terminal: &Terminal, took: Duration) {
        let Some(trace) = self.trace(identity) else { return };
        let mut attributes = vec![
            ("gen_ai.operation.name", Text("invoke_agent".to_owned())),
            ("gen_ai.provider.name", Text("greenroom".to_owned())),
            ("gen_ai.agent.id", Text(identity.runner_id.clone())),
            ("gen_ai.agent.name", Text(identity.agent.clone())),
            ("greenroom.workspace.id", Text(identity.workspace_id.clone())),
            ("greenroom.run.id", Text(identity.run_id.clone())),
            ("greenroom.run.attempt", Number(identity.attempt)),
            ("greenroom.run.status", Text(terminal.status.as_str().to_owned())),
            ("greenroom.event.id", Text(identity.event_id.clone())),
        ];
        let conversation = identity.conversation_id.clone();
        attributes.extend(conversation.map(|id| ("gen_ai.conversation.id", Text(id))));
        attributes.extend(usage(terminal.usage.as_deref()));
        self.send_span(Span {
            id: trace.run(),
            parent: trace.sender(),
            name: format!("invoke_agent {}", identity.agent),
            kind: Kind::Internal,
            started: began(took),
            took,
            attributes: with_error(attributes, terminal.error.as_ref().map(|error| &*error.code)),
            error: terminal.error.as_ref().map(|error| error.code.clone()),
            trace,
        });
    }

    pub(crate) fn trace_model_call(
        &self,
        identity: &Identity,
        model: &ModelSettings,
        call: &RecordModelCall,
    ) {
        let Some(trace) = self.trace(identity) else { return };
        let operation = match call.method.as_ref() {
            "models.embed" => "embeddings",
            "models.rerank" => "rerank",
            _ => "chat",
        };
        let took = Duration::from_millis(u64::try_from(call.duration_ms).unwrap_or(0));
        let is_finish =
            matches!(&*call.outcome, "stop" | "length" | "tool_calls" | "content_filter");
        let failed = !is_finish && call.outcome != "ok";
        let mut attributes = vec![
            ("gen_ai.operation.name", Text(operation.to_owned())),
            ("gen_ai.provider.name", Text(model.provider_name.clone())),
            ("gen_ai.request.model", Text(model.model.clone())),
            ("greenroom.model.name", Text(model.name.clone())),
            ("greenroom.run.id", Text(call.run_id.clone())),
        ];
        if is_finish {
            attributes.push(("gen_ai.response.finish_reasons", Texts(vec![call.outcome.clone()])));
        }
        attributes.extend(usage(call.usage.as_deref()));
        self.send_span(Span {
            id: trace.call(&call.call_id),
            parent: Some(trace.run()),
            name: format!("{operation} {}", model.model),
            kind: Kind::Client,
            started: began(took),
            took,
            attributes: with_error(attributes, failed.then_some(&*call.outcome)),
            error: failed.then(|| call.outcome.clone()),
            trace,
        });
    }

    pub(crate) fn trace_tool_call(&self, identity: &Identity, call: ToolSpan<'_>) {
        let Some(trace) = self.trace(identity) else { return };
        let attributes = vec![
            ("gen_ai.operation.name", Text("execute_tool".to_owned())),
            ("gen_ai.tool.name", Text(call.tool.to_owned())),
            ("gen_ai.tool.call.id", Text(call.tool_call_id.to_owned())),
            ("gen_ai.tool.type", Text("function".to_owned())),
            ("greenroom.run.id", Text(identity.run_id.clone())),
        ];
        self.send_span(Span {
            id: trace.call(call.tool_call_id),
            parent: Some(trace.run()),
            name: format!("execute_tool {}", call.tool),
            kind: Kind::Internal,
            started: began(call.took),
            took: call.took,
            attributes: with_error(attributes, call.error.as_deref()),
            error: call.error,
            trace,
        });
    }
}

/// When something that took so long and ends now began.
fn began(took: Duration) -> SystemTime {
    SystemTime::now().checked_sub(took).unwrap_or(UNIX_EPOCH)
}

type Attributes = Vec<(&'static str, Attribute)>;

fn with_error(mut attributes: Attributes, code: Option<&str>) -> Attributes {
    attributes.extend(code.map(|code| ("error.type", Text(code.to_owned()))));
    attributes
}

/// The token counts of a usage object.
fn usage(json: Option<&str>) -> Attributes {
    let usage: Value = json.and_then(|json| serde_json::from_str(json).ok()).unwrap_or_default();
    let count = |keys: [&str; 2]| keys.iter().find_map(|key| usage.get(*key)?.as_i64());
    let input = count(["input_tokens", "prompt_tokens"]).map(Number);
    let output = count(["output_tokens", "completion_tokens"]).map(Number);
    let input = input.map(|count| ("gen_ai.usage.input_tokens", count));
    let output = output.map(|count| ("gen_ai.usage.output_tokens", count));
    input.into_iter().chain(output).collect()
}
