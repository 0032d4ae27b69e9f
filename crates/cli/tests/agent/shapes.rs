//! Requests on the wires of three providers, and what makes their messages valid.
//!
//! Invariant: the checks know the providers' rules, not ours: every call has exactly one result, directly
//! behind it.

use serde_json::Value;
use std::collections::HashSet;

/// The wires that are looked at: a provider of the configuration each.
pub(crate) const PROVIDERS: [&str; 3] = ["openai", "anthropic", "gemini"];

/// The messages of a request, whatever the wire calls them, without marks for caches.
pub(crate) fn messages(request: &Value) -> Vec<Value> {
    let key = if request.get("contents").is_some() { "contents" } else { "messages" };
    let mut messages = request[key].as_array().unwrap().clone();
    messages.iter_mut().for_each(without_marks);
    messages
}

/// Panics unless a provider of this name takes the messages.
pub(crate) fn check(provider: &str, request: &Value) {
    let messages = messages(request);
    let mut seen = HashSet::new();
    let mut open: Vec<String> = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        let (calls, results) = ids(provider, message);
        if !open.is_empty() || !results.is_empty() {
            let answered: Vec<String> = match provider {
                // One message per result.
                "openai" => open.drain(..results.len().min(open.len())).collect(),
                _ => std::mem::take(&mut open),
            };
            assert_eq!(answered, results, "message {at} of {messages:#?}");
        }
        assert!(open.is_empty() || calls.is_empty(), "message {at} of {messages:#?}");
        assert!(calls.iter().all(|id| seen.insert(id.clone())), "an id twice in {messages:#?}");
        open.extend(calls);
    }
    assert!(open.is_empty(), "calls without a result at the end of {messages:#?}");
}

/// The calls that a message makes, and those that it answers.
pub(crate) fn ids(provider: &str, message: &Value) -> (Vec<String>, Vec<String>) {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    match provider {
        "openai" => {
            let calls = list(&message["tool_calls"]).iter().map(|call| text(&call["id"])).collect();
            let is_result = message["role"] == "tool";
            let result = is_result.then(|| text(&message["tool_call_id"]));
            (calls, result.into_iter().collect())
        }
        "anthropic" => {
            let blocks = list(&message["content"]);
            let of = |kind: &str, key: &str| {
                let blocks = blocks.iter().filter(|block| block["type"] == kind);
                blocks.map(|block| text(&block[key])).collect::<Vec<_>>()
            };
            let results = of("tool_result", "tool_use_id");
            // Results come first in their message.
            let first = blocks.iter().take_while(|block| block["type"] == "tool_result").count();
            assert_eq!(first, results.len(), "{message}");
            (of("tool_use", "id"), results)
        }
        _ => {
            let parts = list(&message["parts"]);
            let of = |key: &str| {
                let parts = parts.iter().filter_map(|part| part.get(key));
                parts.map(|part| text(&part["id"])).collect::<Vec<_>>()
            };
            (of("functionCall"), of("functionResponse"))
        }
    }
}

/// Every request begins with the one before it.
pub(crate) fn check_prefixes(requests: &[Value]) {
    for pair in requests.windows(2) {
        let (before, after) = (messages(&pair[0]), messages(&pair[1]));
        let begins = after.get(..before.len()).unwrap_or_default();
        assert_eq!(begins, before, "the request does not begin with the one before it");
        for key in ["system", "systemInstruction", "tools"] {
            assert_eq!(pair[0].get(key), pair[1].get(key), "{key}");
        }
    }
}

fn without_marks(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.remove("cache_control");
            fields.values_mut().for_each(without_marks);
        }
        Value::Array(items) => items.iter_mut().for_each(without_marks),
        _ => {}
    }
}
