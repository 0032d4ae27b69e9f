//! After a tool has answered: the canonical output, and the text for the model (seed 004 §6, §7).
//!
//! Invariant: deterministic; derived from `result` and the call; the text omits nothing.

use crate::project_cli::TOOL_NAME;
use crate::{Status, ToolAgentOutput, ToolFailure, ToolOutput, ui};
use greenroom_protocol::Object;
use serde_json::{Value, json};

/// The canonical output of a call.
///
/// Attachments must be stored before; `result` refers to what they became.
pub fn finish(
    tool_name: &str,
    tool_call_id: &str,
    tool_call_args: &Object,
    output: ToolOutput,
) -> ToolAgentOutput {
    let ToolOutput { status, result, error, attachments: _ } = output;
    // A failure without a reason gets one.
    let error = match status {
        Status::Failure => Some(error.unwrap_or_else(|| {
            ToolFailure::new("TOOL_FAILED", "the tool failed without saying why")
        })),
        _ => error,
    };
    let ui_hints = match (tool_name, status) {
        (TOOL_NAME, Status::Success | Status::Partial) => ui::hints(tool_call_id, &result),
        _ => None,
    };
    ToolAgentOutput {
        tool_name: tool_name.to_owned(),
        tool_call_id: tool_call_id.to_owned(),
        tool_call_args: tool_call_args.clone(),
        status,
        result,
        error,
        ui_hints,
    }
}

/// The text for the model: the complete JSON of `result`, or the error.
pub fn content(output: &ToolAgentOutput) -> String {
    match (output.status, &output.error) {
        (Status::Failure, Some(error)) => failed(error).to_string(),
        _ => output.result.to_string(),
    }
}

fn failed(error: &ToolFailure) -> Value {
    json!({"status": Status::Failure, "error": error})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args() -> Object {
        let args = json!({"module": "calendar", "method": "read", "input": {"mode": "event", "event_id": "evt_123"}});
        args.as_object().cloned().unwrap()
    }

    #[test]
    fn the_text_for_the_model_is_the_whole_result_and_nothing_of_the_ui() {
        let result = json!({"module": "calendar", "method": "read", "data": {"id": "evt_123", "title": "Project sync"}});
        let output = finish(TOOL_NAME, "call_1", &args(), ToolOutput::success(result.clone()));
        assert_eq!(output.tool_name, "project_cli");
        assert_eq!(output.tool_call_id, "call_1");
        assert_eq!(output.tool_call_args, args());
        assert_eq!(output.status, Status::Success);
        assert_eq!(output.result, result);
        assert_eq!(output.error, None);
        assert!(output.ui_hints.is_some());
        let text = content(&output);
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), result);
    }

    #[test]
    fn a_failure_carries_everything_that_helps_to_correct_it() {
        let failure = ToolFailure::new(
            "INVALID_ACTION_INPUT",
            "calendar.read input does not match method schema",
        )
        .detail("module", "calendar")
        .detail("method", "read")
        .detail("input_schema", json!({"mode": "string enum(day|range|event)"}));
        let output = finish(TOOL_NAME, "call_1", &args(), ToolOutput::failure(failure));
        assert_eq!(output.ui_hints, None);
        assert_eq!(
            serde_json::from_str::<Value>(&content(&output)).unwrap(),
            json!({
                "status": "failure",
                "error": {
                    "code": "INVALID_ACTION_INPUT",
                    "message": "calendar.read input does not match method schema",
                    "module": "calendar",
                    "method": "read",
                    "input_schema": {"mode": "string enum(day|range|event)"},
                },
            })
        );
    }

    #[test]
    fn a_failure_without_a_reason_gets_one() {
        let output = ToolOutput { status: Status::Failure, ..ToolOutput::success(Value::Null) };
        let output = finish("files.read", "call_1", &Object::new(), output);
        assert_eq!(output.error.unwrap().code, "TOOL_FAILED");
    }

    #[test]
    fn only_the_project_cli_has_a_ui() {
        let result = json!({"module": "calendar", "method": "read", "data": {"id": "evt_123", "title": "x"}});
        let output = finish("files.read", "call_1", &Object::new(), ToolOutput::success(result));
        assert_eq!(output.ui_hints, None);
        assert_eq!(content(&output), output.result.to_string());
    }
}
