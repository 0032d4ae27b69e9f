//! The tool calls of one turn: each gets exactly one result.
//!
//! Invariant: what a model wrote that is no JSON is never executed; a call that fails is told as what it is.

use greenroom_sdk::{
    AgentAPIError, ModelMessage, ModelToolCall, Role, RunCtx, RunFailure, RunResult,
    ToolCallParams, ToolCallResult, Value, json,
};

/// Carries a call out and gives what the model is told of it.
pub(crate) async fn call(ctx: &RunCtx, asked: &ModelToolCall) -> Result<ModelMessage, RunFailure> {
    ctx.emit(RunResult::tool_started(&asked.id, &asked.name, asked.args.clone())).await?;
    let answered = match (&asked.args, &asked.args_error) {
        (Value::Object(args), None) => {
            let params = ToolCallParams {
                tool_name: asked.name.clone(),
                parameters: args.clone(),
                tool_call_id: Some(asked.id.clone()),
            };
            ctx.tools().call_with(params).await.map_err(told)
        }
        (_, problem) => Err(malformed(asked, problem.as_deref())),
    };
    // A run that is over has nobody to tell.
    if ctx.is_cancelled() {
        return Err(RunFailure::cancelled());
    }
    let (done, content) = match answered {
        Ok(ToolCallResult { result, content, error: None, .. }) => {
            let content = content.unwrap_or_else(|| result.to_string());
            (RunResult::tool_completed(&asked.id, &asked.name, result), content)
        }
        Ok(ToolCallResult { content, error: Some(error), .. }) => {
            let content = content.unwrap_or_else(|| failure(&error));
            (RunResult::tool_failed(&asked.id, &asked.name, error), content)
        }
        Err(error) => {
            let content = failure(&error);
            (RunResult::tool_failed(&asked.id, &asked.name, error), content)
        }
    };
    ctx.emit(done).await?;
    Ok(result(&asked.id, &asked.name, content))
}

/// The message that answers a call.
pub(crate) fn result(id: &str, name: &str, content: String) -> ModelMessage {
    ModelMessage {
        tool_call_id: Some(id.to_owned()),
        name: Some(name.to_owned()),
        ..ModelMessage::text(Role::Tool, content)
    }
}

fn failure(error: &Value) -> String {
    json!({"status": "failure", "error": error}).to_string()
}

/// A refusal of the host, with what helps to call again.
fn told(error: AgentAPIError) -> Value {
    let mut told = json!({"code": error.code, "message": error.message});
    if !error.details.is_empty() {
        told["details"] = Value::Object(error.details);
    }
    told
}

fn malformed(asked: &ModelToolCall, problem: Option<&str>) -> Value {
    let reason = problem.unwrap_or("the arguments are not an object");
    json!({"code": "invalid_arguments", "message": format!("the arguments are not valid: {reason}"),
        "arguments": asked.args_text, "hint": "call again with one JSON object"})
}
