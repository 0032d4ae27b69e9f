//! The tools of a run for an MCP client: those of its grant under their names, and the host's own.
//!
//! Invariant: only what the grant covers is listed; a granted tool keeps its name, also against one of the host.

use super::message::RpcError;
use super::own_tools::{self, OwnTool};
use greenroom_host::RunProgram;
use greenroom_protocol::api::Method;
use greenroom_protocol::api::tools::{ToolAuthority, ToolCallParams};
use greenroom_protocol::{Object, ToolResource};
use serde_json::{Value, json};

/// Where Claude Code names the model's id of the call.
const CALL_ID: &str = "claudecode/toolUseId";

/// A call that the client asks for.
pub(super) enum ToolCall {
    Granted(ToolCallParams),
    Own(OwnTool, Object),
}

pub(super) fn all(program: &RunProgram) -> Value {
    let granted = granted(program);
    let is_taken = |tool: &OwnTool| granted.iter().any(|it| it.tool_name == tool.name());
    let own = OwnTool::ALL.into_iter().filter(|tool| tool.is_granted(program) && !is_taken(tool));
    let scopes = program.scopes();
    let own = own.map(|tool| own_tools::described(tool, &scopes));
    json!({"tools": granted.iter().map(described).chain(own).collect::<Vec<_>>()})
}

pub(super) fn find(program: &RunProgram, params: &Value) -> Result<ToolCall, RpcError> {
    let name = params.get("name").and_then(Value::as_str);
    let name = name.ok_or_else(|| RpcError::invalid("`name` is missing"))?;
    let arguments = match params.get("arguments") {
        None | Some(Value::Null) => Object::new(),
        Some(Value::Object(arguments)) => arguments.clone(),
        Some(_) => return Err(RpcError::invalid("`arguments` must be an object")),
    };
    if granted(program).iter().any(|tool| tool.tool_name == name) {
        let id = params.get("_meta").and_then(|meta| meta.get(CALL_ID)).and_then(Value::as_str);
        return Ok(ToolCall::Granted(ToolCallParams {
            tool_name: name.to_owned(),
            parameters: arguments,
            tool_call_id: id.map(str::to_owned),
            authority: ToolAuthority::Agent,
        }));
    }
    let own = OwnTool::ALL.into_iter().find(|tool| tool.name() == name);
    match own.filter(|tool| tool.is_granted(program)) {
        Some(tool) => Ok(ToolCall::Own(tool, arguments)),
        None => {
            let name: String = name.chars().take(100).collect();
            Err(RpcError::invalid(format!("there is no tool `{}`", name.escape_debug())))
        }
    }
}

fn granted(program: &RunProgram) -> Vec<ToolResource> {
    match program.is_granted(Method::ToolsCall) {
        true => program.resources().tools,
        false => Vec::new(),
    }
}

fn described(tool: &ToolResource) -> Value {
    let mut schema = tool.parameters.clone();
    // Required by MCP; a tool may leave it out.
    schema.entry("type").or_insert("object".into());
    let risk = tool.metadata.get("risk").and_then(Value::as_str).unwrap_or_default();
    let mut described = json!({"name": tool.tool_name, "inputSchema": schema,
        "annotations": {"readOnlyHint": risk == "read", "destructiveHint": risk == "destructive"}});
    if let Some(description) = &tool.description {
        described["description"] = description.clone().into();
    }
    described
}
