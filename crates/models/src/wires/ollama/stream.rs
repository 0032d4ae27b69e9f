//! Lines of a streamed response.
//!
//! Invariant: every call is complete; the line with `done` is the last.

use crate::ModelError;
use crate::assembly::{Assembly, Reason};
use crate::wires::{Flow, count, list, text};
use serde_json::{Value, json};

pub(in crate::wires) fn event(event: &Value, into: &mut Assembly) -> Result<Flow, ModelError> {
    into.note("provider_model", event.get("model"));
    let message = event.get("message").unwrap_or(&Value::Null);
    into.reasoning(text(message, "thinking").unwrap_or_default())?;
    into.text(text(message, "content").unwrap_or_default())?;
    for call in list(message, "tool_calls") {
        let function = call.get("function").unwrap_or(&Value::Null);
        let name = text(function, "name").unwrap_or_default();
        let args = match function.get("arguments") {
            None | Some(Value::Null) => &json!({}),
            Some(args) => args,
        };
        into.complete_call(text(call, "id"), name, args)?;
    }
    if event.get("done") != Some(&true.into()) {
        return Ok(Flow::More);
    }
    into.usage.input = count(event, "prompt_eval_count");
    into.usage.output = count(event, "eval_count");
    let raw = text(event, "done_reason").unwrap_or("stop");
    into.complete(reason(raw), raw);
    Ok(Flow::Over)
}

fn reason(raw: &str) -> Reason {
    match raw {
        "length" => Reason::Length,
        "load" | "unload" => Reason::Error,
        _ => Reason::Stop,
    }
}
