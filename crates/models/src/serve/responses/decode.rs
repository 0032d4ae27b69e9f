//! Decodes requests of the Responses wire.
//!
//! Invariant: a namespaced tool has one name, `NAMESPACE.NAME`, among the tools and in the history.

use super::super::json::{args, list, text};
use super::super::segments::{Segments, drop_plain};
use super::super::{DecodedRequest, Streaming, chat, json};
use crate::{ModelRequest, ToolSpec};
use greenroom_protocol::api::models::{ModelMessage, ModelToolCall};
use greenroom_protocol::{MessageContent, Role};
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
        returns_reasoning: false,
    };
    drop_plain(&mut decoded.request.messages);
    list(body, "tools").iter().for_each(|tool| take_tool(&mut decoded, tool));
    Ok(decoded)
}

/// Adjacent calls, and what follows reasoning, belong to one assistant message.
fn take(messages: &mut Vec<ModelMessage>, message: Option<ModelMessage>) {
    let Some(mut message) = message else { return };
    let only_thought = |last: &ModelMessage| last.content.is_none() && last.tool_calls.is_empty();
    match messages.last_mut() {
        Some(last)
            if (last.role, message.role) == (Role::Assistant, Role::Assistant)
                && (only_thought(last) || !message.tool_calls.is_empty()) =>
        {
            last.tool_calls.append(&mut message.tool_calls);
            last.content = last.content.take().or(message.content);
            Segments::append(last, message.segments);
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
            if role == Role::Assistant {
                let mut segments = Segments::default();
                let content = message.content.as_ref();
                segments.text(&content.map(MessageContent::text).unwrap_or_default());
                message.segments = Some(segments.into_all());
            }
            Ok(Some(message))
        }
        "reasoning" => {
            let mut segments = Segments::default();
            let parts = list(item, "summary").iter().chain(list(item, "content"));
            let texts: Vec<&str> = parts.filter_map(|part| text(part, "text")).collect();
            segments.reasoning(&texts.join("\n\n"), text(item, "encrypted_content"));
            let mut message = ModelMessage::text(Role::Assistant, "");
            message.content = None;
            message.segments = Some(segments.into_all());
            Ok(message.segments.as_ref().is_some_and(|it| !it.is_empty()).then_some(message))
        }
        "function_call" | "custom_tool_call" => {
            let name = text(item, "name").unwrap_or_default();
            let name = text(item, "namespace").map_or(name.to_owned(), |space| joined(space, name));
            let call = ModelToolCall {
                id: text(item, "call_id").unwrap_or_default().to_owned(),
                name,
                args: match text(item, "input") {
                    // Text, in the shape of the tool that stands for it.
                    Some(input) => json!({"input": input}),
                    None => args(text(item, "arguments").unwrap_or("{}")),
                },
                args_text: None,
                args_error: None,
            };
            let mut segments = Segments::default();
            segments.call(&call);
            let mut message = ModelMessage::text(Role::Assistant, "");
            message.segments = Some(segments.into_all());
            message.tool_calls.push(call);
            Ok(Some(message))
        }
        "function_call_output" | "custom_tool_call_output" => {
            let mut message = ModelMessage::text(Role::Tool, "");
            message.tool_call_id = text(item, "call_id").map(str::to_owned);
            message.content = chat::content(item.get("output").unwrap_or(&Value::Null))?;
            Ok(Some(message))
        }
        // Other items that clients send back.
        _ => Ok(None),
    }
}
