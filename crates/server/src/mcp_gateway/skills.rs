//! Granted skills as MCP resources: `skill://NAME/PATH`.
//!
//! Invariant: a file is read by a call of the skill tool, so it passes the proxy and is audited like one.

use super::message::RpcError;
use greenroom_host::RunProgram;
use greenroom_protocol::Object;
use greenroom_protocol::api::Method;
use greenroom_protocol::api::tools::{ToolCallParams, ToolCallResult};
use greenroom_tools::skills::TOOL_NAME;
use serde_json::{Value, json};

const SCHEME: &str = "skill://";
const FILE: &str = "SKILL.md";
const MARKDOWN: &str = "text/markdown";

pub(super) fn are_granted(program: &RunProgram) -> bool {
    program.is_granted(Method::ToolsCall) && !cards(program).is_empty()
}

pub(super) fn list(program: &RunProgram) -> Value {
    let cards = if are_granted(program) { cards(program) } else { Vec::new() };
    let resources = cards.iter().filter_map(|card| {
        let name = card.get("name")?.as_str()?;
        Some(json!({"uri": format!("{SCHEME}{name}/{FILE}"), "name": name,
            "description": card.get("description"), "mimeType": MARKDOWN}))
    });
    json!({"resources": resources.collect::<Vec<_>>()})
}

pub(super) fn templates(program: &RunProgram) -> Value {
    let template = json!({"uriTemplate": format!("{SCHEME}{{name}}/{{+path}}"),
        "name": "skill file", "description": "A file of a skill."});
    let all = if are_granted(program) { vec![template] } else { Vec::new() };
    json!({"resourceTemplates": all})
}

pub(super) async fn read(program: &RunProgram, params: &Value) -> Result<Value, RpcError> {
    let uri = params.get("uri").and_then(Value::as_str);
    let uri = uri.ok_or_else(|| RpcError::invalid("`uri` is missing"))?;
    let named = uri.strip_prefix(SCHEME).and_then(|rest| rest.split_once('/'));
    let Some((skill, path)) = named.filter(|_| are_granted(program)) else {
        return Err(RpcError::no_resource("there is no such resource"));
    };
    let args =
        Object::from_iter([("skill".to_owned(), skill.into()), ("path".to_owned(), path.into())]);
    let answer = program.call(Method::ToolsCall, &ToolCallParams::new(TOOL_NAME, args)).await;
    let answer = answer.map_err(|error| RpcError::no_resource(error.message))?;
    let result: ToolCallResult = serde_json::from_str(answer.get())
        .map_err(|_| RpcError::no_resource("the resource cannot be read"))?;
    match result.result.get("content").and_then(Value::as_str) {
        Some(text) => {
            let mime_type = if path.ends_with(".md") { MARKDOWN } else { "text/plain" };
            Ok(json!({"contents": [{"uri": uri, "mimeType": mime_type, "text": text}]}))
        }
        None => Err(RpcError::no_resource("there is no such resource")),
    }
}

/// Name and description of each granted skill.
fn cards(program: &RunProgram) -> Vec<Value> {
    let mut resources = program.resources();
    match resources.extra.remove("skills") {
        Some(Value::Array(cards)) => cards,
        _ => Vec::new(),
    }
}
