//! Tools of plugin processes: named `RUNNER.tool`, after the entry of the configuration that starts them.
//!
//! Invariant: the identity that a process claims is not used; whatever it does, a call has one output.

use crate::toolbox::Invocation;
use crate::{Source, Status, Tool, ToolFailure, ToolOutput};
use greenroom_protocol::wire::{CallToolResult, PluginTool};
use greenroom_runtime::{PluginToolCall, PluginToolError, Runtime};
use serde_json::{Value, json};
use std::time::Duration;

/// For a tool that declares none.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Every tool of every process.
pub(crate) fn tools(runtime: &Runtime) -> Vec<Tool> {
    let lists = runtime.tools();
    let tools = |list: &greenroom_runtime::PluginTools| {
        let runner = list.runner.clone();
        list.tools.iter().map(|tool| described(&runner, tool)).collect::<Vec<Tool>>()
    };
    lists.iter().flat_map(tools).collect()
}

fn described(runner: &str, tool: &PluginTool) -> Tool {
    Tool {
        name: format!("{runner}.{}", tool.name),
        description: tool.description.clone().unwrap_or_default(),
        input_schema: Value::Object(tool.input_schema.clone()),
        output_schema: tool.output_schema.clone().map(Value::Object),
        source: Source::Plugin(runner.to_owned()),
        risk: tool.risk,
        timeout: tool.timeout_s.map_or(TIMEOUT, |seconds| Duration::from_secs(seconds.into())),
    }
}

pub(crate) async fn call(runtime: &Runtime, runner: &str, call: &Invocation<'_>) -> ToolOutput {
    let name = &call.entry.tool.name;
    let own = name.strip_prefix(runner).and_then(|rest| rest.strip_prefix('.')).unwrap_or(name);
    let asked = PluginToolCall {
        tool_name: own.to_owned(),
        parameters: call.args.clone(),
        tool_call_id: call.tool_call_id.to_owned(),
        run_id: Some(call.run_id.to_owned()),
        caller: call.caller.clone(),
        deadline: call.deadline,
    };
    match runtime.call_tool(runner, asked, call.cancel.clone()).await {
        Ok(answer) => output(answer),
        Err(error) => ToolOutput::failure(failure(&error)),
    }
}

fn output(answer: CallToolResult) -> ToolOutput {
    let CallToolResult { result, content, error, .. } = answer;
    match error {
        Some(error) => {
            let read = serde_json::from_value::<ToolFailure>(error.clone());
            let told = |_| match &error {
                Value::String(message) => ToolFailure::new("TOOL_FAILED", message.clone()),
                other => ToolFailure::new("TOOL_FAILED", other.to_string()),
            };
            let failure = read.unwrap_or_else(told);
            ToolOutput { status: Status::Failure, result, ..ToolOutput::failure(failure) }
        }
        // A tool that returns only text means it as its result.
        None => match (result, content) {
            (Value::Null, Some(text)) => ToolOutput::success(json!({"text": text})),
            (result, _) => ToolOutput::success(result),
        },
    }
}

fn failure(error: &PluginToolError) -> ToolFailure {
    let code = match error {
        PluginToolError::Unavailable { .. } => "UNAVAILABLE",
        PluginToolError::Crashed { .. } => "CRASHED",
        PluginToolError::Refused { .. } => "TOOL_FAILED",
        PluginToolError::TimedOut => "TIMEOUT",
        PluginToolError::TooLarge { .. } => "OUTPUT_TOO_LARGE",
        PluginToolError::Cancelled => "CANCELLED",
        PluginToolError::Protocol { .. } => "INVALID_OUTPUT",
    };
    ToolFailure::new(code, error.to_string())
}
