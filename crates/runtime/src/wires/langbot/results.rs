//! Translates results of a LangBot runner.
//!
//! Invariant: a result belongs to the run whose request it answers, whatever id it contains; a malformed one
//! gets a type that the host refuses and records.

use super::content::{message_content, text_of};
use super::messages::usage_from_langbot;
use greenroom_protocol::RawResult;
use greenroom_protocol::error::run_code;
use greenroom_protocol::result::kind;
use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};
use std::borrow::Cow;

/// Types that no result has, so that the host refuses and records them.
const MALFORMED: &str = "malformed result";
const FOREIGN: &str = "result of another run";
/// The SDK's code of a run that it ended at the deadline.
const SDK_TIMEOUT: &str = "runner.timeout";
const ROLES: [&str; 4] = ["system", "user", "assistant", "tool"];

#[derive(Deserialize)]
struct LangbotResult<'a> {
    #[serde(default)]
    run_id: Option<String>,
    #[serde(default, borrow, rename = "type")]
    kind: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    data: Option<&'a RawValue>,
    #[serde(default)]
    usage: Option<Value>,
    #[serde(default)]
    sequence: Option<i64>,
    #[serde(default)]
    timestamp: Option<i64>,
}

/// The result of this run, if it says anything.
pub(crate) fn translate(run_id: &str, data: &RawValue) -> Option<RawResult> {
    let Ok(item) = serde_json::from_str::<LangbotResult<'_>>(data.get()) else {
        return Some(refused(run_id, MALFORMED));
    };
    if item.run_id.as_deref().is_some_and(|named| named != run_id) {
        return Some(refused(run_id, FOREIGN));
    }
    let Some(result_kind) = item.kind else { return Some(refused(run_id, MALFORMED)) };
    let data = match result_kind.as_ref() {
        kind::MESSAGE_DELTA => match delta(item.data) {
            Delta::Text(data) => Some(data),
            Delta::Nothing => return None,
            Delta::Malformed => item.data.map(ToOwned::to_owned),
        },
        kind::MESSAGE_COMPLETED | kind::RUN_COMPLETED => item.data.map(with_message),
        kind::RUN_FAILED => item.data.map(failure),
        _ => item.data.map(ToOwned::to_owned),
    };
    let usage = item.usage.as_ref().and_then(usage_from_langbot);
    Some(RawResult {
        run_id: run_id.to_owned(),
        kind: result_kind.into_owned(),
        data,
        sequence: item.sequence.filter(|sequence| *sequence >= 0),
        timestamp: item.timestamp,
        usage: usage.and_then(|usage| to_raw_value(&usage).ok()),
    })
}

fn refused(run_id: &str, why: &str) -> RawResult {
    RawResult {
        run_id: run_id.to_owned(),
        kind: why.to_owned(),
        data: None,
        sequence: None,
        timestamp: None,
        usage: None,
    }
}

enum Delta {
    Text(Box<RawValue>),
    /// A chunk without text, such as the end of a stream.
    Nothing,
    Malformed,
}

/// A chunk of text, without what the host would have to keep with it.
fn delta(data: Option<&RawValue>) -> Delta {
    #[derive(Deserialize)]
    struct Data<'a> {
        #[serde(borrow)]
        chunk: Chunk<'a>,
    }
    #[derive(Deserialize)]
    struct Chunk<'a> {
        #[serde(default, borrow)]
        role: Option<Cow<'a, str>>,
        #[serde(default)]
        content: Value,
        #[serde(default, borrow)]
        resp_message_id: Option<Cow<'a, str>>,
    }
    let read = data.and_then(|data| serde_json::from_str::<Data<'_>>(data.get()).ok());
    let Some(Data { chunk }) = read else { return Delta::Malformed };
    let text = match &chunk.content {
        Value::Null => return Delta::Nothing,
        content => text_of(content),
    };
    let Some(text) = text else { return Delta::Malformed };
    if text.is_empty() {
        return Delta::Nothing;
    }
    let mut ours = json!({"role": role(chunk.role.as_deref()), "content": text});
    if let Some(id) = chunk.resp_message_id {
        ours["message_id"] = id.into();
    }
    to_raw_value(&json!({"chunk": ours})).map_or(Delta::Malformed, Delta::Text)
}

/// The data with its `message`, if it has one, in our form.
fn with_message(data: &RawValue) -> Box<RawValue> {
    let rewritten =
        serde_json::from_str::<Map<String, Value>>(data.get()).ok().and_then(|mut data| {
            let files = data.remove("file_ids").filter(|files| *files != json!([]));
            if let Some(Value::Object(message)) = data.get("message") {
                let message = message_of(message, files);
                data.insert("message".to_owned(), message);
            }
            to_raw_value(&data).ok()
        });
    rewritten.unwrap_or_else(|| data.to_owned())
}

fn message_of(message: &Map<String, Value>, files: Option<Value>) -> Value {
    let content = message_content(message.get("content").unwrap_or(&Value::Null));
    let content = if content.is_null() { "".into() } else { content };
    let mut ours =
        json!({"role": role(message.get("role").and_then(Value::as_str)), "content": content});
    if let Some(id) = message.get("resp_message_id").filter(|id| id.is_string()) {
        ours["message_id"] = id.clone();
    }
    let kept = ["name", "tool_calls", "tool_call_id", "provider_specific_fields"];
    let mut metadata: Map<String, Value> = kept
        .iter()
        .filter_map(|key| Some(((*key).to_owned(), message.get(*key)?.clone())))
        .filter(|(_, value)| !value.is_null())
        .collect();
    metadata.extend(files.map(|files| ("file_ids".to_owned(), files)));
    if !metadata.is_empty() {
        ours["metadata"] = metadata.into();
    }
    ours
}

/// The deadline is the host's, even if the SDK saw it pass first.
fn failure(data: &RawValue) -> Box<RawValue> {
    let read = serde_json::from_str::<Map<String, Value>>(data.get()).ok();
    let late = read.filter(|data| data.get("code").and_then(Value::as_str) == Some(SDK_TIMEOUT));
    let rewritten = late.and_then(|mut data| {
        data.insert("code".to_owned(), run_code::DEADLINE_EXCEEDED.into());
        to_raw_value(&data).ok()
    });
    rewritten.unwrap_or_else(|| data.to_owned())
}

/// LangBot's own roles (`plugin`, `command`) count as the assistant.
fn role(role: Option<&str>) -> &str {
    role.filter(|role| ROLES.contains(role)).unwrap_or("assistant")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn translated(result: &Value) -> Option<Value> {
        let raw = to_raw_value(result).unwrap();
        translate("r1", &raw).map(|result| serde_json::to_value(result).unwrap())
    }

    #[test]
    fn a_chunk_of_text_is_a_delta_and_one_without_text_is_nothing() {
        let chunk = |content: Value| {
            json!({"run_id": "r1", "type": "message.delta", "sequence": 2, "timestamp": null, "usage": null,
                "data": {"chunk": {"resp_message_id": "m1", "role": "assistant", "content": content,
                    "all_content": null, "tool_calls": null, "is_final": false, "msg_sequence": 0}}})
        };
        assert_eq!(
            translated(&chunk("hel".into())),
            Some(json!({"run_id": "r1", "type": "message.delta", "sequence": 2,
                "data": {"chunk": {"role": "assistant", "content": "hel", "message_id": "m1"}}}))
        );
        assert_eq!(
            translated(&chunk(json!([{"type": "text", "text": "a"}]))).unwrap()["data"]["chunk"]["content"],
            "a"
        );
        assert_eq!(translated(&chunk(Value::Null)), None);
        assert_eq!(translated(&chunk("".into())), None);
    }

    #[test]
    fn a_message_keeps_its_media_and_what_only_langbot_knows() {
        let item = translated(&json!({"run_id": "r1", "type": "message.completed", "data": {
            "file_ids": ["f1"],
            "message": {"role": "plugin", "name": null, "resp_message_id": null, "content": [
                {"type": "text", "text": "see"},
                {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}]}}}));
        assert_eq!(
            item.unwrap()["data"],
            json!({"message": {"role": "assistant", "content": [
                {"type": "text", "text": "see"},
                {"type": "image", "url": "https://example.com/a.png"}],
                "metadata": {"file_ids": ["f1"]}}})
        );
    }

    #[test]
    fn the_end_of_a_run_has_its_message_and_its_tokens() {
        let item = translated(&json!({"run_id": "r1", "type": "run.completed",
            "usage": {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7},
            "data": {"finish_reason": "stop", "message": {"role": "assistant", "content": null}}}));
        let item = item.unwrap();
        assert_eq!(
            item["data"],
            json!({"finish_reason": "stop", "message": {"role": "assistant", "content": ""}})
        );
        assert_eq!(item["usage"]["input_tokens"], 3);
        assert_eq!(item["usage"]["output_tokens"], 4);
    }

    #[test]
    fn what_the_sdk_calls_a_timeout_is_the_deadline_and_other_codes_stay() {
        let failed = |code: &str| {
            let result = json!({"run_id": "r1", "type": "run.failed",
                "data": {"error": "no", "code": code, "retryable": true}});
            translated(&result).unwrap()["data"].clone()
        };
        assert_eq!(
            failed("runner.timeout"),
            json!({"error": "no", "code": "deadline_exceeded", "retryable": true})
        );
        assert_eq!(
            failed("acme.quota"),
            json!({"error": "no", "code": "acme.quota", "retryable": true})
        );
    }

    #[test]
    fn what_is_no_result_of_this_run_is_refused_and_never_taken_for_another() {
        for (result, why) in [
            (json!([]), "malformed result"),
            (json!({"run_id": "r1"}), "malformed result"),
            (json!({"run_id": 7, "type": "run.completed"}), "malformed result"),
            (json!({"run_id": "r2", "type": "run.completed", "data": {}}), "result of another run"),
        ] {
            let expected = json!({"run_id": "r1", "type": why});
            assert_eq!(translated(&result), Some(expected), "{result}");
        }
        // The host checks the shape of the data.
        let odd =
            json!({"run_id": "r1", "type": "message.delta", "data": {"chunk": {"content": 5}}});
        assert_eq!(translated(&odd).unwrap()["data"], json!({"chunk": {"content": 5}}));
    }
}
