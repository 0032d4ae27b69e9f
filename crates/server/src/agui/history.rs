//! A transcript as AG-UI messages, with tool cards, reasoning and activities.
//!
//! Invariant: message ids and call ids are unique, and every tool result follows its call.

mod work;

pub(crate) use work::Work;

use super::card;
use super::event::Event;
use greenroom_config::BasePath;
use serde_json::{Map, Value, json};
use std::collections::{HashMap, HashSet};
use work::Position;

/// The complete messages of a client, cards included.
pub(crate) fn snapshot(messages: Vec<Value>) -> Event {
    let client = json!({"authoritativeActivityTypes": [card::ACTIVITY]});
    let metadata = Map::from_iter([("@ag-ui/client".to_owned(), client)]);
    Event::MessagesSnapshot { messages, metadata }
}

/// What messages depend on besides their items.
#[derive(Clone, Copy)]
pub(crate) struct Look<'a> {
    pub(crate) base: &'a BasePath,
    /// The client's id of the catalogue of cards.
    pub(crate) catalogue: &'static str,
    /// What runs showed of their work, by run.
    pub(crate) works: &'a HashMap<String, Work>,
}

pub(crate) fn messages(items: &[Value], look: Look<'_>) -> Vec<Value> {
    let mut calls = Calls::default();
    let mut positions: HashMap<&str, Position> = HashMap::new();
    let runs = items.iter().map(|item| item["run_id"].as_str().unwrap_or_default());
    let last: HashMap<&str, usize> = runs.enumerate().map(|(index, run)| (run, index)).collect();
    let mut all = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let run_id = item["run_id"].as_str().unwrap_or_default();
        let Some(work) = look.works.get(run_id) else {
            all.extend(message(item, look, &mut calls));
            continue;
        };
        let position = positions.entry(run_id).or_default();
        let is_input = item["role"] == "user" || item["role"] == "event";
        let author = match is_input {
            true => None,
            false => work.before(item, position, &mut all),
        };
        let own = message(item, look, &mut calls).into_iter();
        all.extend(own.map(|mut message| {
            work::attribute(&mut message, author.clone());
            message
        }));
        if last.get(run_id) == Some(&index) {
            work.rest(position, &mut all);
        }
    }
    all
}

/// The ids of calls so far.
#[derive(Default)]
struct Calls {
    used: HashSet<String>,
    /// The client's ids of its own tools' calls, by the runner's.
    pending: HashMap<String, String>,
}

fn message(item: &Value, look: Look<'_>, calls: &mut Calls) -> Vec<Value> {
    let (id, text) = (&item["item_id"], item["text"].as_str().unwrap_or_default());
    match item["role"].as_str() {
        Some("user") => {
            // The client's own id, so that it can edit the message.
            let id = item["metadata"]["client_message_id"].as_str().map_or(id.clone(), Value::from);
            vec![json!({"id": id, "role": "user", "content": content(item, text, look.base)})]
        }
        // It only records something for later runs.
        Some("assistant") if text.is_empty() => Vec::new(),
        Some("event") => results(item, calls),
        Some(role @ ("assistant" | "system")) => {
            vec![json!({"id": id, "role": role, "content": text})]
        }
        Some("tool") => tool(item, text, look.catalogue, calls),
        _ => Vec::new(),
    }
}

/// Plain text unless there are other parts; stored files are referenced by artifact.
fn content(item: &Value, text: &str, base: &BasePath) -> Value {
    let segments = item["segments"].as_array().map(Vec::as_slice).unwrap_or_default();
    let parts: Vec<Value> = segments.iter().filter_map(|segment| part(segment, base)).collect();
    match parts.iter().any(|part| part["type"] != "text") {
        true => parts.into(),
        false => text.into(),
    }
}

fn part(segment: &Value, base: &BasePath) -> Option<Value> {
    let kind = match segment["type"].as_str()? {
        "text" => return Some(json!({"type": "text", "text": segment["text"].as_str()?})),
        kind @ ("image" | "audio" | "video") => kind,
        "file" => "document",
        _ => return None,
    };
    let mut source = match (&segment["artifact_id"], &segment["url"], &segment["data_base64"]) {
        (Value::String(id), _, _) => {
            json!({"type": "url", "value": format!("{}/v1/artifacts/{id}", base.as_str())})
        }
        (_, Value::String(url), _) => json!({"type": "url", "value": url}),
        (_, _, Value::String(data)) => json!({"type": "data", "value": data}),
        _ => return None,
    };
    if let Some(mime_type) = segment["mime_type"].as_str() {
        source["mimeType"] = mime_type.into();
    }
    Some(json!({"type": kind, "source": source}))
}

/// Results of the client's own tools.
fn results(item: &Value, calls: &mut Calls) -> Vec<Value> {
    let mut messages = Vec::new();
    for (index, result) in item["results"].as_array().into_iter().flatten().enumerate() {
        let called = result["tool_call_id"].as_str().and_then(|id| calls.pending.remove(id));
        let Some(call_id) = called else { continue };
        let own = format!("{}.{index}", item["item_id"].as_str().unwrap_or_default());
        let id = result["message_id"].as_str().unwrap_or(&own);
        let mut message = json!({"id": id, "role": "tool", "toolCallId": call_id,
            "content": result["content"]});
        if let Some(error) = result.get("error") {
            message["error"] = error.clone();
        }
        messages.push(message);
    }
    messages
}

fn tool(item: &Value, text: &str, catalogue: &str, calls: &mut Calls) -> Vec<Value> {
    let used = &mut calls.used;
    let item_id = item["item_id"].as_str().unwrap_or_default();
    let metadata = card::metadata(item["metadata"].clone(), catalogue);
    let output = &metadata["tool_agent_output"];
    let named = output["tool_call_id"].as_str().unwrap_or(item_id);
    let call_id = match used.insert(named.to_owned()) {
        true => named.to_owned(),
        false => format!("{named}.{item_id}"),
    };
    used.insert(call_id.clone());
    let name = output["tool_name"].as_str().unwrap_or("tool");
    let arguments = match &output["tool_call_args"] {
        Value::Null => "{}".to_owned(),
        arguments => arguments.to_string(),
    };
    let call = json!({"id": format!("{item_id}.call"), "role": "assistant", "toolCalls": [
        {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}]});
    if output["status"] == "pending" {
        calls.pending.insert(named.to_owned(), call_id);
        return vec![call];
    }
    let card = card::activity_message(&call_id, &metadata);
    let result = json!({"id": item_id, "role": "tool", "toolCallId": call_id, "content": text,
        "metadata": metadata});
    [Some(call), Some(result), card].into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transcript_includes_images_and_cards() {
        let output = json!({"tool_name": "project_cli", "tool_call_id": "c1", "status": "success",
            "tool_call_args": {"a": 1}, "result": {"ok": true}, "error": null});
        let schema = json!({"format": "a2ui", "operations": [{"x": 1}]});
        let kept = json!({"tool_name": "project_cli", "tool_call_id": "c1", "status": "success",
            "tool_call_args": {"a": 1}, "result": {"ok": true}});
        let tool = json!({"item_id": "i3", "role": "tool", "text": "{\"ok\":true}",
            "metadata": {"tool_agent_output": output, "ui_schema": schema, "tool_name": "x"}});
        let mut again = tool.clone();
        again["item_id"] = "i4".into();
        let items = [
            json!({"item_id": "i1", "role": "user", "text": "look", "segments": [
                {"type": "text", "text": "look"},
                {"type": "image", "artifact_id": "art_1", "mime_type": "image/png"}]}),
            json!({"item_id": "i2", "role": "assistant", "text": "a cat", "segments": []}),
            tool,
            again,
            json!({"item_id": "i5", "role": "event", "text": null}),
        ];
        let metadata = json!({"tool_agent_output": kept, "ui_schema": schema});
        let call = |item: &str, id: &str| {
            json!({"id": format!("{item}.call"), "role": "assistant", "toolCalls": [{"id": id,
                "type": "function", "function": {"name": "project_cli", "arguments": "{\"a\":1}"}}]})
        };
        let result = |item: &str, id: &str| {
            json!({"id": item, "role": "tool", "toolCallId": id, "content": "{\"ok\":true}",
                "metadata": metadata})
        };
        let shown = |id: &str| {
            json!({"id": format!("a2ui-surface-{id}"), "role": "activity",
                "activityType": "a2ui-surface", "content": {"a2ui_operations": [{"x": 1}]}})
        };
        assert_eq!(
            messages(
                &items,
                Look { base: &BasePath::default(), catalogue: "", works: &HashMap::new() }
            ),
            [
                json!({"id": "i1", "role": "user", "content": [{"type": "text", "text": "look"},
                    {"type": "image", "source": {"type": "url", "value": "/v1/artifacts/art_1",
                        "mimeType": "image/png"}}]}),
                json!({"id": "i2", "role": "assistant", "content": "a cat"}),
                call("i3", "c1"),
                result("i3", "c1"),
                shown("c1"),
                call("i4", "c1.i4"),
                result("i4", "c1.i4"),
                shown("c1.i4"),
            ]
        );
    }
}
