//! Requests of the Responses wire.
//!
//! Invariant: a tool in a namespace has one name of ours, `NAMESPACE.NAME`, in what is offered and in the
//! history.

use super::super::json::{args, list, text};
use super::super::{Asked, Streaming, chat, json};
use crate::{ModelRequest, ToolSpec};
use greenroom_protocol::Role;
use greenroom_protocol::api::models::{ModelMessage, ModelToolCall};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

pub(in super::super) fn decode(body: &Value) -> Result<Asked, String> {
    let mut messages = Vec::new();
    if let Some(instructions) = text(body, "instructions") {
        messages.push(ModelMessage::text(Role::System, instructions));
    }
    match body.get("input") {
        Some(Value::String(said)) => messages.push(ModelMessage::text(Role::User, said.clone())),
        Some(Value::Array(items)) => {
            for item in items {
                take(&mut messages, message(item)?);
            }
        }
        _ => return Err("`input` is neither a text nor a list".to_owned()),
    }
    let mut asked = Asked {
        request: ModelRequest { messages, tools: Vec::new(), options: options(body) },
        model: text(body, "model").unwrap_or("scripted").to_owned(),
        streaming: match body.get("stream") == Some(&Value::Bool(true)) {
            true => Streaming::Events,
            false => Streaming::No,
        },
        usage_wanted: true,
        namespaced: BTreeMap::new(),
        freeform: BTreeSet::new(),
    };
    list(body, "tools").iter().for_each(|tool| take_tool(&mut asked, tool));
    Ok(asked)
}

/// Calls that stand side by side belong to one message of the model.
fn take(messages: &mut Vec<ModelMessage>, message: Option<ModelMessage>) {
    let Some(mut message) = message else { return };
    match messages.last_mut() {
        Some(last) if last.role == Role::Assistant && !message.tool_calls.is_empty() => {
            last.tool_calls.append(&mut message.tool_calls);
        }
        _ => messages.push(message),
    }
}

fn options(body: &Value) -> greenroom_protocol::Object {
    let mut options = json::options(body, &["model", "input", "instructions", "stream"]);
    if let Some(format) = body.pointer("/text/format") {
        options.insert("response_format".to_owned(), format.clone());
    }
    options
}

fn take_tool(asked: &mut Asked, tool: &Value) {
    match text(tool, "type") {
        Some("function") => asked.request.tools.extend(chat::tool_spec(tool)),
        Some("custom") => {
            let Some(name) = text(tool, "name") else { return };
            asked.freeform.insert(name.to_owned());
            let input = json!({"type": "object", "properties": {"input": {"type": "string"}}});
            asked.request.tools.push(ToolSpec {
                name: name.to_owned(),
                description: text(tool, "description").map(str::to_owned),
                parameters: input,
            });
        }
        Some("namespace") => {
            let Some(namespace) = text(tool, "name") else { return };
            for tool in list(tool, "tools").iter().filter_map(chat::tool_spec) {
                let ours = joined(namespace, &tool.name);
                asked.namespaced.insert(ours.clone(), (namespace.to_owned(), tool.name.clone()));
                asked.request.tools.push(ToolSpec { name: ours, ..tool });
            }
        }
        // Tools of the provider's own, such as web search: a script has none.
        _ => {}
    }
}

fn joined(namespace: &str, name: &str) -> String {
    format!("{namespace}.{name}")
}

fn message(item: &Value) -> Result<Option<ModelMessage>, String> {
    match text(item, "type").unwrap_or("message") {
        "message" => {
            let role = match text(item, "role") {
                Some("system" | "developer") => Role::System,
                Some("user") => Role::User,
                Some("assistant") => Role::Assistant,
                other => return Err(format!("`role` is {other:?}")),
            };
            let mut message = ModelMessage::text(role, "");
            message.content = chat::content(item.get("content").unwrap_or(&Value::Null))?;
            Ok(Some(message))
        }
        "function_call" | "custom_tool_call" => {
            let name = text(item, "name").unwrap_or_default();
            let name = text(item, "namespace").map_or(name.to_owned(), |space| joined(space, name));
            let mut message = ModelMessage::text(Role::Assistant, "");
            message.tool_calls.push(ModelToolCall {
                id: text(item, "call_id").unwrap_or_default().to_owned(),
                name,
                args: args(text(item, "arguments").or(text(item, "input")).unwrap_or("{}")),
                args_text: None,
                args_error: None,
            });
            Ok(Some(message))
        }
        "function_call_output" | "custom_tool_call_output" => {
            let mut message = ModelMessage::text(Role::Tool, "");
            message.tool_call_id = text(item, "call_id").map(str::to_owned);
            message.content = chat::content(item.get("output").unwrap_or(&Value::Null))?;
            Ok(Some(message))
        }
        // Reasoning that is handed back, and what else a client keeps.
        _ => Ok(None),
    }
}
