//! Translates messages to models and their answers, to LangBot's form and back.
//!
//! Invariant: arguments of a tool call are text in LangBot's form and JSON in ours; text that is not JSON
//! stays text, so that the call is not carried out.

use super::content::{message_content, text_of};
use serde_json::{Map, Value, json};

/// Carries the segments of an answer, for models that need their reasoning back.
const SEGMENTS: &str = "greenroom_segments";

/// LangBot's messages in the form of `models.*`.
pub(crate) fn to_model(messages: &Value) -> Value {
    match messages {
        Value::Array(messages) => messages.iter().map(message).collect(),
        other => other.clone(),
    }
}

/// LangBot's functions as tools of `models.*`.
pub(crate) fn tools(functions: &Value) -> Option<Value> {
    let functions = functions.as_array().filter(|functions| !functions.is_empty())?;
    let tool = |function: &Value| {
        json!({"name": function["name"], "description": function["description"],
            "parameters": function["parameters"]})
    };
    Some(functions.iter().map(tool).collect())
}

/// An answer of `models.invoke` as `{message, usage}`.
pub(crate) fn answer(response: &Value) -> Value {
    let segments = response["segments"].as_array().map_or(&[][..], Vec::as_slice);
    let of_kind = |kind: &'static str| segments.iter().filter(move |part| part["type"] == kind);
    let text: String = of_kind("text").filter_map(|part| part["text"].as_str()).collect();
    let calls: Vec<Value> =
        of_kind("tool_call").map(|part| tool_call(&part["tool_call"])).collect();
    let mut message = json!({"role": "assistant", "content": text});
    if !calls.is_empty() {
        message["tool_calls"] = calls.into();
    }
    if of_kind("reasoning").next().is_some() {
        message["provider_specific_fields"] = json!({ SEGMENTS: segments });
    }
    let mut answer = json!({"message": message});
    if let Some(usage) = usage(&response["metadata"]["usage"]) {
        answer["usage"] = usage;
    }
    answer
}

/// Usage under LangBot's names; ours are kept.
pub(crate) fn usage(usage: &Value) -> Option<Value> {
    let mut counts: Map<String, Value> = usage.as_object()?.clone();
    for (ours, theirs) in
        [("input_tokens", "prompt_tokens"), ("output_tokens", "completion_tokens")]
    {
        if let Some(count) = counts.get(ours).cloned() {
            counts.entry(theirs).or_insert(count);
        }
    }
    counts.remove("type");
    let number = |key: &str| counts.get(key).and_then(Value::as_u64);
    if let (None, Some(sum)) =
        (number("total_tokens"), number("prompt_tokens").zip(number("completion_tokens")))
    {
        counts.insert("total_tokens".to_owned(), (sum.0 + sum.1).into());
    }
    Some(Value::Object(counts))
}

/// Usage under our names; LangBot's are kept.
pub(crate) fn usage_from_langbot(usage: &Value) -> Option<Value> {
    let mut counts: Map<String, Value> = usage.as_object()?.clone();
    counts.retain(|_, count| !count.is_null());
    for (theirs, ours) in
        [("prompt_tokens", "input_tokens"), ("completion_tokens", "output_tokens")]
    {
        if let Some(count) = counts.get(theirs).cloned() {
            counts.entry(ours).or_insert(count);
        }
    }
    Some(Value::Object(counts))
}

/// A model's tool call in LangBot's form.
pub(crate) fn tool_call(call: &Value) -> Value {
    let arguments = match call["args_text"].as_str() {
        Some(text) => text.to_owned(),
        None => call["args"].to_string(),
    };
    json!({"id": call["id"], "type": "function",
        "function": {"name": call["name"], "arguments": arguments}})
}

fn message(message: &Value) -> Value {
    let mut ours = Map::new();
    let role = message["role"].as_str().unwrap_or_default();
    ours.insert("role".to_owned(), role.into());
    let content = match role {
        // A tool result is text to a model.
        "tool" => text_of(&message["content"]).map_or(Value::Null, Value::from),
        _ => message_content(&message["content"]),
    };
    ours.insert("content".to_owned(), content);
    for key in ["tool_call_id", "name"] {
        if let Some(text) = message[key].as_str() {
            ours.insert(key.to_owned(), text.into());
        }
    }
    if let Some(calls) = message["tool_calls"].as_array() {
        ours.insert("tool_calls".to_owned(), calls.iter().map(model_call).collect());
    }
    if let Some(segments) = message["provider_specific_fields"].get(SEGMENTS) {
        ours.insert("segments".to_owned(), segments.clone());
    }
    Value::Object(ours)
}

fn model_call(call: &Value) -> Value {
    let function = &call["function"];
    let text = function["arguments"].as_str().unwrap_or("{}");
    let text = if text.trim().is_empty() { "{}" } else { text };
    match serde_json::from_str::<Value>(text) {
        Ok(args) => json!({"id": call["id"], "name": function["name"], "args": args}),
        Err(error) => json!({"id": call["id"], "name": function["name"], "args": null,
            "args_text": text, "args_error": error.to_string()}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_with_a_tool_goes_to_the_model_as_it_was() {
        let messages = json!([
            {"role": "user", "content": [{"type": "text", "text": "hi"}], "tool_calls": null},
            {"role": "assistant", "content": null, "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "add", "arguments": "{\"a\":1}"}},
                {"id": "c2", "type": "function", "function": {"name": "add", "arguments": "{a"}}]},
            {"role": "tool", "content": [{"type": "text", "text": "2"}], "tool_call_id": "c1", "name": "add"},
        ]);
        let ours = to_model(&messages);
        assert_eq!(ours[0], json!({"role": "user", "content": [{"type": "text", "text": "hi"}]}));
        assert_eq!(ours[1]["content"], Value::Null);
        assert_eq!(ours[1]["tool_calls"][0], json!({"id": "c1", "name": "add", "args": {"a": 1}}));
        assert_eq!(ours[1]["tool_calls"][1]["args_text"], "{a");
        assert_eq!(
            ours[2],
            json!({"role": "tool", "content": "2", "tool_call_id": "c1", "name": "add"})
        );
    }

    #[test]
    fn an_answer_has_its_text_its_calls_and_its_tokens() {
        let response = json!({"segments": [
            {"type": "reasoning", "text": "hm"}, {"type": "text", "text": "a"}, {"type": "text", "text": "b"},
            {"type": "tool_call", "tool_call": {"id": "c1", "name": "add", "args": {"a": 1}}}],
            "metadata": {"usage": {"input_tokens": 3, "output_tokens": 4}}});
        let answered = answer(&response);
        assert_eq!(answered["message"]["content"], "ab");
        assert_eq!(
            answered["message"]["tool_calls"],
            json!([{"id": "c1", "type": "function", "function": {"name": "add", "arguments": "{\"a\":1}"}}])
        );
        assert_eq!(
            answered["usage"],
            json!({"input_tokens": 3, "output_tokens": 4, "prompt_tokens": 3, "completion_tokens": 4,
                "total_tokens": 7})
        );
        // Its reasoning comes back with the message.
        let back = to_model(&json!([answered["message"]]));
        assert_eq!(back[0]["segments"], response["segments"]);
    }
}
