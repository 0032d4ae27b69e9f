//! Chunks of a streamed chat completion, or a complete one from a server that does not stream.
//!
//! Invariant: calls are identified by index, or by id without one; only the first choice is used; the finish
//! waits for the chunk with the usage.

use super::WIRE;
use crate::ModelError;
use crate::assembly::{Assembly, CallPart, Reason};
use crate::wires::{Flow, count, list, text};
use serde_json::{Value, json};

/// Fields for reasoning: DeepSeek and most others; vLLM and OpenRouter.
const REASONING_FIELDS: [&str; 2] = ["reasoning_content", "reasoning"];

#[derive(Debug, Default)]
pub(crate) struct Decoder {
    /// The field of reasoning that is still open.
    field: Option<&'static str>,
    /// OpenRouter's opaque reasoning data, not emitted yet.
    details: Vec<Value>,
}

impl Decoder {
    pub(in crate::wires) fn event(
        &mut self,
        event: &Value,
        into: &mut Assembly,
    ) -> Result<Flow, ModelError> {
        into.note("provider_model", event.get("model"));
        into.note("provider_response_id", event.get("id"));
        if let Some(usage) = event.get("usage").filter(|usage| usage.is_object()) {
            self::usage(usage, into);
        }
        let first = |choice: &&Value| count(choice, "index").unwrap_or(0) == 0;
        let Some(choice) = list(event, "choices").iter().find(first) else {
            return Ok(Flow::More);
        };
        let delta = choice.get("delta").filter(|delta| delta.is_object());
        let whole = choice.get("message").filter(|_| delta.is_none());
        if let Some(delta) = delta.or(whole) {
            self.delta(delta, into)?;
        }
        if let Some(raw) = text(choice, "finish_reason").filter(|raw| !raw.is_empty()) {
            self.close_reasoning(into)?;
            into.complete(reason(raw), raw);
        }
        match whole {
            Some(_) => Ok(Flow::Over),
            None => Ok(Flow::More),
        }
    }

    fn delta(&mut self, delta: &Value, into: &mut Assembly) -> Result<(), ModelError> {
        self.details.extend(list(delta, "reasoning_details").iter().cloned());
        for field in REASONING_FIELDS {
            if let Some(reasoning) = text(delta, field).filter(|text| !text.is_empty()) {
                self.field = Some(field);
                into.reasoning(reasoning)?;
                break;
            }
        }
        let calls = list(delta, "tool_calls");
        for field in ["content", "refusal"] {
            let Some(text) = text(delta, field).filter(|text| !text.is_empty()) else { continue };
            self.close_reasoning(into)?;
            into.text(text)?;
        }
        if !calls.is_empty() {
            self.close_reasoning(into)?;
        }
        for call in calls {
            call_part(call, into)?;
        }
        Ok(())
    }

    /// Emits the data of the preceding reasoning.
    pub(in crate::wires) fn close_reasoning(
        &mut self,
        into: &mut Assembly,
    ) -> Result<(), ModelError> {
        let details = std::mem::take(&mut self.details);
        match (self.field.take(), details.is_empty()) {
            (None, true) => Ok(()),
            (_, false) => into.reasoning_data(json!({"wire": WIRE, "details": details})),
            (Some(field), true) => into.reasoning_data(json!({"wire": WIRE, "field": field})),
        }
    }
}

fn call_part(call: &Value, into: &mut Assembly) -> Result<(), ModelError> {
    let function = call.get("function").unwrap_or(&Value::Null);
    let key = count(call, "index").map(|index| index.to_string());
    let args = match function.get("arguments") {
        Some(Value::String(args)) => args.clone(),
        Some(Value::Null) | None => String::new(),
        // Some servers send arguments as an object instead of text.
        Some(other) => other.to_string(),
    };
    into.call_part(CallPart {
        key: key.as_deref(),
        id: text(call, "id"),
        name: text(function, "name"),
        args: &args,
    })
}

fn usage(usage: &Value, into: &mut Assembly) {
    let detail = |of: &str, name: &str| usage.get(of).and_then(|details| count(details, name));
    let known = &mut into.usage;
    known.input = count(usage, "prompt_tokens").or(known.input);
    known.output = count(usage, "completion_tokens").or(known.output);
    known.total = count(usage, "total_tokens").or(known.total);
    known.cached = detail("prompt_tokens_details", "cached_tokens")
        .or_else(|| count(usage, "prompt_cache_hit_tokens"))
        .or(known.cached);
    known.reasoning = detail("completion_tokens_details", "reasoning_tokens").or(known.reasoning);
}

fn reason(raw: &str) -> Reason {
    match raw {
        "tool_calls" | "function_call" => Reason::ToolCalls,
        "length" | "max_tokens" | "model_length" => Reason::Length,
        "content_filter" | "sensitive" => Reason::ContentFilter,
        "error" | "network_error" | "insufficient_system_resource" => Reason::Error,
        _ => Reason::Stop,
    }
}
