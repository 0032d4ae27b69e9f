//! Translates actions of a plugin to methods of the host's proxy, and their answers back.
//!
//! Invariant: an action is checked, metered and recorded as a method of the proxy; an unknown action is
//! refused with a code, never left unanswered.

use super::messages::{self, to_model};
use super::records::{self, Caller};
use greenroom_protocol::{AgentAPIError, ErrorCode};
use serde_json::{Map, Value, json};

/// Items of a page at most; LangBot gives fewer than asked for instead of refusing.
const PAGE_MAX: u64 = 100;

/// An action as a call of the proxy.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct HostCall {
    pub(crate) method: &'static str,
    pub(crate) params: Value,
    pub(crate) reply: Reply,
}

/// How the answer is rendered.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Reply {
    AsIs,
    Nothing,
    Success,
    /// `{success: deleted}`.
    Deleted,
    /// Under this key.
    Under(&'static str),
    Message,
    /// Chunk by chunk.
    Stream,
    Tool,
    ToolResult,
    Passages,
    History,
    /// Newest first.
    HistoryBackward,
    SearchHits {
        query: String,
    },
    Event,
    Events,
    /// Of one page.
    StateKeys,
    /// Of all pages.
    StorageKeys,
    StorageValue,
    /// With the answer of `artifacts.metadata`.
    Range {
        artifact_id: String,
    },
    Steering,
    Run,
    Runs,
    RunEvents,
}

/// Translates an action.
pub(crate) fn translate(action: &str, data: &Value) -> Result<HostCall, AgentAPIError> {
    let found = resources(action, data)
        .or_else(|| facts(action, data))
        .or_else(|| kept(action, data))
        .or_else(|| runs(action, data));
    found.ok_or_else(|| unknown(action))
}

/// Models, tools, knowledge and the platform.
fn resources(action: &str, data: &Value) -> Option<HostCall> {
    Some(match action {
        "invoke_llm" => host_call("models.invoke", model_call(data), Reply::Message),
        "invoke_llm_stream" => host_call("models.stream", model_call(data), Reply::Stream),
        "invoke_rerank" => {
            let mut params = same(data, &["query", "documents", "top_k"]);
            params["model_id"] = data["rerank_model_uuid"].clone();
            host_call("models.rerank", params, Reply::AsIs)
        }
        "invoke_embedding" => {
            let keys = [("embedding_model_uuid", "model_id"), ("texts", "inputs")];
            host_call("models.embed", pick(data, &keys), Reply::AsIs)
        }
        "count_tokens" => host_call("models.count_tokens", token_count(data), Reply::AsIs),
        "get_tool_detail" => host_call("tools.get_detail", same(data, &["tool_name"]), Reply::Tool),
        "call_tool" => {
            let keys = ["tool_name", "parameters", "tool_call_id"];
            host_call("tools.call", same(data, &keys), Reply::ToolResult)
        }
        "retrieve_knowledge_base" | "retrieve_knowledge" => {
            let keys = ["kb_id", "query_text", "top_k", "filters"];
            host_call("knowledge.retrieve", same(data, &keys), Reply::Passages)
        }
        "call_platform_api" | "send_message" | "reply_message" => {
            host_call("platform.request_action", platform(action, data), Reply::Under("result"))
        }
        _ => return None,
    })
}

/// History, events and artifacts.
fn facts(action: &str, data: &Value) -> Option<HostCall> {
    let text = |key: &str| data[key].as_str().unwrap_or_default().to_owned();
    Some(match action {
        "history_page" => {
            let params = history_page(data);
            let is_backward = params["direction"] == "backward";
            let reply = if is_backward { Reply::HistoryBackward } else { Reply::History };
            host_call("langbot.history_page", params, reply)
        }
        "history_search" => {
            let found = Reply::SearchHits { query: text("query") };
            host_call("history.search", same(data, &["query", "filters", "top_k"]), found)
        }
        "event_get" => host_call("events.get", same(data, &["event_id"]), Reply::Event),
        "event_page" => host_call("events.page", event_page(data), Reply::Events),
        "artifact_metadata" => {
            host_call("artifacts.metadata", same(data, &["artifact_id"]), Reply::AsIs)
        }
        "artifact_read" => {
            let keys = [("artifact_id", "artifact_id"), ("offset", "offset"), ("limit", "length")];
            let range = Reply::Range { artifact_id: text("artifact_id") };
            host_call("artifacts.read_range", pick(data, &keys), range)
        }
        "steering_pull" => host_call("steering.pull", steering(data), Reply::Steering),
        _ => return None,
    })
}

/// State and storage.
fn kept(action: &str, data: &Value) -> Option<HostCall> {
    Some(match action {
        "state_get" => host_call("state.get", same(data, &["scope", "key"]), Reply::AsIs),
        "state_set" => host_call("state.set", state_value(data), Reply::Success),
        "state_delete" => host_call("state.delete", same(data, &["scope", "key"]), Reply::Deleted),
        "state_list" => {
            host_call("state.list", same(data, &["scope", "prefix", "limit"]), Reply::StateKeys)
        }
        _ => return storage(action, data),
    })
}

/// Methods that only this wire has.
fn runs(action: &str, data: &Value) -> Option<HostCall> {
    let target = || same(data, &["target_run_id"]);
    Some(match action {
        "get_prompt" => host_call("langbot.get_prompt", json!({}), Reply::AsIs),
        "get_config_file" => {
            host_call("langbot.get_config_file", same(data, &["file_key"]), Reply::AsIs)
        }
        "run_get" => host_call("langbot.run_get", target(), Reply::Run),
        "run_list" => {
            let keys = ["conversation_id", "statuses", "before_cursor", "limit"];
            host_call("langbot.run_list", same(data, &keys), Reply::Runs)
        }
        "run_events_page" => {
            let keys = ["target_run_id", "before_cursor", "after_cursor", "limit", "direction"];
            host_call("langbot.run_events_page", same(data, &keys), Reply::RunEvents)
        }
        "run_cancel" => {
            host_call("langbot.run_cancel", same(data, &["target_run_id", "reason"]), Reply::Run)
        }
        "run_append_result" => host_call("langbot.run_append_result", target(), Reply::AsIs),
        "run_finalize" => host_call("langbot.run_finalize", target(), Reply::AsIs),
        _ => return None,
    })
}

fn host_call(method: &'static str, params: Value, reply: Reply) -> HostCall {
    HostCall { method, params, reply }
}

/// Picks fields of `data` under their own names; null is left out.
fn same(data: &Value, keys: &[&str]) -> Value {
    let keys: Vec<(&str, &str)> = keys.iter().map(|key| (*key, *key)).collect();
    pick(data, &keys)
}

/// Renders an answer of the host for the plugin.
pub(crate) fn render(
    reply: &Reply,
    caller: &Caller,
    answer: &Value,
) -> Result<Value, AgentAPIError> {
    let items = || answer["items"].as_array().map_or(&[][..], Vec::as_slice);
    let keys = || items().iter().map(|item| item["key"].clone()).collect::<Value>();
    Ok(match reply {
        Reply::AsIs | Reply::Stream | Reply::StorageKeys | Reply::Range { .. } => answer.clone(),
        Reply::Nothing => json!({}),
        Reply::Success => json!({"success": true}),
        Reply::Deleted => json!({"success": answer["deleted"]}),
        Reply::Under(key) => json!({ *key: answer }),
        Reply::Message => messages::answer(answer),
        Reply::Tool => {
            json!({"tool": {"name": answer["tool_name"], "description": answer["description"],
            "human_desc": answer["description"], "parameters": answer["parameters"],
            "metadata": answer["metadata"]}})
        }
        Reply::ToolResult => json!({"result": tool_result(answer)?}),
        Reply::Passages => {
            let passages = items().iter().enumerate();
            json!({"results": passages.map(|(at, item)| records::passage(at, item)).collect::<Value>()})
        }
        Reply::History => records::page(answer, records::transcript),
        Reply::HistoryBackward => {
            let mut page = records::page(answer, records::transcript);
            if let Some(items) = page["items"].as_array_mut() {
                items.reverse();
            }
            page
        }
        Reply::SearchHits { query } => {
            let mut found = records::page(answer, records::transcript);
            found["total_count"] = items().len().into();
            found["query"] = query.as_str().into();
            found
        }
        Reply::Event => records::event(answer),
        Reply::Events => records::page(answer, records::event),
        Reply::StateKeys => json!({"keys": keys(), "has_more": answer["has_more"]}),
        Reply::StorageValue => match answer["data_base64"].as_str() {
            Some(data) => json!({"value_base64": data}),
            None => return Err(AgentAPIError::new(ErrorCode::NotFound, "there is no such key")),
        },
        Reply::Steering => records::page(answer, |item| records::steering(item, caller)),
        Reply::Run => records::run(answer),
        Reply::Runs => records::page(answer, records::run),
        Reply::RunEvents => records::page(answer, records::run_event),
    })
}

fn unknown(action: &str) -> AgentAPIError {
    let action: String = action.chars().take(100).collect();
    let message = format!("this host does not know the action `{}`", action.escape_debug());
    AgentAPIError::new(ErrorCode::InvalidArgument, message).detail("reason", "unknown_action")
}

/// Picks fields of `data` under other names; null is left out.
fn pick(data: &Value, keys: &[(&str, &str)]) -> Value {
    let picked = keys.iter().filter_map(|(theirs, ours)| {
        let value = data.get(*theirs).filter(|value| !value.is_null())?;
        Some(((*ours).to_owned(), value.clone()))
    });
    Value::Object(picked.collect())
}

fn model_call(data: &Value) -> Value {
    let mut params = pick(data, &[("llm_model_uuid", "model_id"), ("extra_args", "extra_args")]);
    params["messages"] = to_model(&data["messages"]);
    if let Some(level) = reasoning(&data["reasoning_level"]) {
        params["extra_args"]["reasoning"] = level;
    }
    if let Some(tools) = messages::tools(&data["funcs"]) {
        params["tools"] = tools;
    }
    params
}

/// A reasoning level as an option of ours; a level that is none of LangBot's is refused by the model.
fn reasoning(level: &Value) -> Option<Value> {
    Some(match level.as_str()? {
        "" | "provider_default" => return None,
        "disabled" => "none".into(),
        "enabled" => "medium".into(),
        "xhigh" | "max" => "high".into(),
        other => other.into(),
    })
}

/// Functions are counted as text.
fn token_count(data: &Value) -> Value {
    let mut params = pick(data, &[("llm_model_uuid", "model_id")]);
    params["messages"] = to_model(&data["messages"]);
    if let Some(tools) = messages::tools(&data["funcs"]) {
        params["text"] = tools.to_string().into();
    }
    params
}

/// LangBot reads forward only from a cursor, and backward in every other case; the other cursor is ignored.
fn history_page(data: &Value) -> Value {
    let mut params = pick(data, &[("conversation_id", "conversation_id")]);
    let with =
        ["include_artifacts", "include_attachments"].iter().find_map(|key| data[*key].as_bool());
    params["include_artifacts"] = with.unwrap_or_default().into();
    if let Some(limit) = data["limit"].as_u64() {
        params["limit"] = limit.clamp(1, PAGE_MAX).into();
    }
    let cursor = |key: &str| data[key].as_str().filter(|cursor| !cursor.is_empty());
    match (data["direction"].as_str(), cursor("before_cursor"), cursor("after_cursor")) {
        (Some("forward"), _, Some(after)) => {
            params["direction"] = "forward".into();
            params["after_cursor"] = after.into();
        }
        (Some("forward"), ..) | (_, None, _) => params["direction"] = "backward".into(),
        (_, Some(before), _) => {
            params["direction"] = "backward".into();
            params["before_cursor"] = before.into();
        }
    }
    params
}

fn event_page(data: &Value) -> Value {
    let mut params = same(data, &["conversation_id", "event_types", "before_cursor"]);
    if let Some(limit) = data["limit"].as_u64() {
        params["limit"] = limit.clamp(1, PAGE_MAX).into();
    }
    params
}

/// A null is a value here.
fn state_value(data: &Value) -> Value {
    let mut params = pick(data, &[("scope", "scope"), ("key", "key")]);
    params["value"] = data["value"].clone();
    params
}

fn steering(data: &Value) -> Value {
    match data["mode"].as_str() {
        Some("one" | "one-at-a-time") => json!({"limit": 1}),
        _ => pick(data, &[("limit", "limit")]),
    }
}

fn platform(action: &str, data: &Value) -> Value {
    let named = data["action"].as_str().unwrap_or(action);
    let named = if named == "send_message" { "message.send" } else { named };
    let mut target = Map::new();
    for key in ["bot_uuid", "context_tool", "target_type", "target_id"] {
        target.extend(data.get(key).map(|value| (key.to_owned(), value.clone())));
    }
    json!({"action": named, "target": target, "payload": data.get("params").unwrap_or(&json!({}))})
}

fn storage(action: &str, data: &Value) -> Option<HostCall> {
    let areas = [("plugin_storage", "plugin"), ("workspace_storage", "workspace")];
    let (name, area) = areas.into_iter().find(|(name, _)| action.contains(name))?;
    let rest = action.replacen(name, "*", 1);
    let (method, keys, reply): (_, &[(&str, &str)], _) = match rest.as_str() {
        "set_*" => ("storage.set", &[("key", "key"), ("value_base64", "value")], Reply::Nothing),
        "get_*" => ("storage.get", &[("key", "key")], Reply::StorageValue),
        "delete_*" => ("storage.delete", &[("key", "key")], Reply::Nothing),
        "get_*_keys" => ("storage.list", &[], Reply::StorageKeys),
        _ => return None,
    };
    let mut params = pick(data, keys);
    params["area"] = area.into();
    Some(host_call(method, params, reply))
}

/// A tool's result is an object; a tool that failed is an error.
fn tool_result(answer: &Value) -> Result<Value, AgentAPIError> {
    let error = &answer["error"];
    if !error.is_null() {
        let text = error["message"].as_str().or(error.as_str()).map(str::to_owned);
        let message = text.unwrap_or_else(|| error.to_string());
        let code = match error["code"].as_str() {
            Some("METHOD_NOT_ALLOWED") => ErrorCode::Unauthorized,
            Some("INVALID_ACTION_INPUT" | "INVALID_ARGUMENT") => ErrorCode::InvalidArgument,
            _ => ErrorCode::RuntimeError,
        };
        let error = AgentAPIError::new(code, message).detail("tool_error", error.clone());
        return Err(error.detail("content", answer["content"].clone()));
    }
    Ok(match &answer["result"] {
        // What an MCP server says is a list of elements there.
        Value::Object(result) if is_said(result) => result["content"].clone(),
        Value::Object(result) => Value::Object(result.clone()),
        Value::Null => json!({"result": answer["content"]}),
        other => json!({ "result": other }),
    })
}

/// Whether a result is nothing but text elements.
fn is_said(result: &Map<String, Value>) -> bool {
    let content = result.get("content").and_then(Value::as_array).filter(|_| result.len() == 1);
    content.is_some_and(|content| content.iter().all(|element| element["type"] == "text"))
}

#[cfg(test)]
mod tests;
