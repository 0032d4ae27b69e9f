//! Decodes requests of the Responses wire.
//!
//! Invariant: a namespaced tool has one name, `NAMESPACE.NAME`, among the tools and in the history.

use super::super::json::{args, list, text};
use super::super::{DecodedRequest, Streaming, chat, json};
use crate::{ModelRequest, ToolSpec};
use greenroom_protocol::Role;
use greenroom_protocol::api::models::{ModelMessage, ModelToolCall};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

pub(in super::super) fn decode(body: &Value) -> Result<DecodedRequest, String> {
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
        _ => return Err("`input` must be a string or a list".to_owned()),
    }
    let mut decoded = DecodedRequest {
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
    list(body, "tools").iter().for_each(|tool| take_tool(&mut decoded, tool));
    Ok(decoded)
}

/// Adjacent calls belong to one assistant message.
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

fn take_tool(decoded: &mut DecodedRequest, tool: &Value) {
    match text(tool, "type") {
        Some("function") => decoded.request.tools.extend(chat::tool_spec(tool)),
        Some("custom") => {
            let Some(name) = text(tool, "name") else { return };
            decoded.freeform.insert(name.to_owned());
            let input = json!({"type": "object", "properties": {"input": {"type": "string"}}});
            decoded.request.tools.push(ToolSpec {
                name: name.to_owned(),
                description: text(tool, "description").map(str::to_owned),
                parameters: input,
            });
        }
        Some("namespace") => {
            let Some(namespace) = text(tool, "name") else { return };
            for tool in list(tool, "tools").iter().filter_map(chat::tool_spec) {
                let ours = joined(namespace, &tool.name);
                decoded.namespaced.insert(ours.clone(), (namespace.to_owned(), tool.name.clone()));
                decoded.request.tools.push(ToolSpec { name: ours, ..tool });
            }
        }
        // Provider-side tools such as web search: scripts have none.
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
                other => return Err(format!("unknown `role` {other:?}")),
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
        // Reasoning and other items that clients send back.
        _ => Ok(None),
    }
}
