//! Translates results of a LangBot runner.
//!
//! Invariant: a result belongs to the run whose request it answers, whatever id it contains; a malformed one
//! gets a type that the host refuses and records.

use super::card::{Card, Chunk, Step};
use super::content::message_content;
use super::messages::usage_from_langbot;
use super::{RunnerProfile, commands};
use greenroom_protocol::RawResult;
use greenroom_protocol::error::run_code;
use greenroom_protocol::interaction::INTERACTION;
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
/// The action by which a runner asks with a form.
const INTERACTION_REQUESTED: &str = "interaction.requested";
const ROLES: [&str; 4] = ["system", "user", "assistant", "tool"];

#[derive(Deserialize)]
struct LangbotResult<'a> {
    #[serde(default)]
    run_id: Option<String>,
    #[serde(default, borrow, rename = "type")]
    kind: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    data: Option<&'a RawValue>,
    /// Instead of a type: what a command returns.
    #[serde(default)]
    command_response: Option<Value>,
    #[serde(default)]
    usage: Option<Value>,
    #[serde(default)]
    sequence: Option<i64>,
    #[serde(default)]
    timestamp: Option<i64>,
}

/// The results of this run that say the same to our readers.
pub(crate) fn translate(
    run_id: &str,
    data: &RawValue,
    card: &mut Card,
    profile: RunnerProfile,
) -> Vec<RawResult> {
    let Ok(item) = serde_json::from_str::<LangbotResult<'_>>(data.get()) else {
        return vec![bare(run_id, MALFORMED)];
    };
    if item.run_id.as_deref().is_some_and(|named| named != run_id) {
        return vec![bare(run_id, FOREIGN)];
    }
    if let Some(returned) = &item.command_response {
        return returned_by_command(run_id, returned);
    }
    let Some(result_kind) = item.kind.as_deref() else { return vec![bare(run_id, MALFORMED)] };
    let sequence = item.sequence.filter(|sequence| *sequence >= 0);
    let same = || Parts { steps: Vec::new(), rest: Some(item.data.map(ToOwned::to_owned)) };
    let question = item.data.filter(|_| profile.asks && result_kind == kind::ACTION_REQUESTED);
    let question = question.and_then(question_of);
    let result_kind = if question.is_some() { kind::MESSAGE_COMPLETED } else { result_kind };
    let parts = match result_kind {
        _ if card.is_repeated(sequence) => same(),
        _ if question.is_some() => {
            let rest = question.and_then(|message| to_raw_value(&message).ok());
            Parts { steps: card.finish(), rest: Some(rest) }
        }
        kind::MESSAGE_DELTA => delta(item.data, card).unwrap_or_else(same),
        kind::MESSAGE_COMPLETED => completed(item.data, card).unwrap_or_else(same),
        kind::RUN_COMPLETED => ended(item.data, card).unwrap_or_else(same),
        kind::RUN_FAILED => Parts { steps: card.end(), rest: Some(item.data.map(failure)) },
        _ => same(),
    };
    let result = |kind: &str, data| RawResult {
        run_id: run_id.to_owned(),
        kind: kind.to_owned(),
        data,
        sequence: None,
        timestamp: item.timestamp,
        usage: None,
    };
    let step = |step: &Step| match step {
        Step::Delta(data) => result(kind::MESSAGE_DELTA, to_raw_value(data).ok()),
        Step::Completed(data) => result(kind::MESSAGE_COMPLETED, to_raw_value(data).ok()),
    };
    let mut results: Vec<RawResult> = parts.steps.iter().map(step).collect();
    results.extend(parts.rest.map(|data| result(result_kind, data)));
    // One number for one result of the runner: the last has it, as it has what was counted.
    if let Some(last) = results.last_mut() {
        last.sequence = sequence;
        let usage = item.usage.as_ref().and_then(usage_from_langbot);
        last.usage = usage.and_then(|usage| to_raw_value(&usage).ok());
    }
    results
}

/// The message of a request for an interaction: its text is for readers without forms.
fn question_of(data: &RawValue) -> Option<Value> {
    let data: Value = serde_json::from_str(data.get()).ok()?;
    let request = &data["payload"];
    let text = request["fallback_text"].as_str().filter(|text| !text.trim().is_empty())?;
    if data["action"] != INTERACTION_REQUESTED {
        return None;
    }
    Some(json!({"message": {"role": "assistant", "content": text,
        "metadata": {INTERACTION: request}}}))
}

/// A return value of a command as a message.
fn returned_by_command(run_id: &str, returned: &Value) -> Vec<RawResult> {
    let message = commands::content(returned)
        .map(|content| json!({"message": {"role": "assistant", "content": content}}));
    let data = message.and_then(|message| to_raw_value(&message).ok());
    data.map(|data| RawResult { data: Some(data), ..bare(run_id, kind::MESSAGE_COMPLETED) })
        .into_iter()
        .collect()
}

/// The end of a command's run.
pub(super) fn completed_run(run_id: &str) -> RawResult {
    let data = to_raw_value(&json!({"finish_reason": "stop"})).ok();
    RawResult { data, ..bare(run_id, kind::RUN_COMPLETED) }
}

/// One result of a runner, taken apart.
struct Parts {
    steps: Vec<Step>,
    /// The data of the result itself, if it is still to be sent.
    rest: Option<Option<Box<RawValue>>>,
}

fn bare(run_id: &str, kind: &str) -> RawResult {
    RawResult {
        run_id: run_id.to_owned(),
        kind: kind.to_owned(),
        data: None,
        sequence: None,
        timestamp: None,
        usage: None,
    }
}

/// A chunk; nothing if it is malformed.
fn delta(data: Option<&RawValue>, card: &mut Card) -> Option<Parts> {
    #[derive(Deserialize)]
    struct Data<'a> {
        #[serde(borrow)]
        chunk: Chunk<'a>,
    }
    let data: Data<'_> = serde_json::from_str(data?.get()).ok()?;
    Some(Parts { steps: card.chunk(&data.chunk)?, rest: None })
}

/// A complete message; nothing if it is malformed.
fn completed(data: Option<&RawValue>, card: &mut Card) -> Option<Parts> {
    let (message, _, files) = message_in(data)?;
    Some(Parts { steps: card.message(&message, files), rest: None })
}

/// The end of a run, perhaps with its message.
fn ended(data: Option<&RawValue>, card: &mut Card) -> Option<Parts> {
    let Some((message, mut rest, files)) = message_in(data) else {
        return Some(Parts { steps: card.end(), rest: Some(data.map(ToOwned::to_owned)) });
    };
    let mut steps = Vec::new();
    if card.is_untouched() {
        rest.insert("message".to_owned(), message_of(&message, files));
    } else if !card.has_completed(&message) {
        steps = card.message(&message, files);
        steps.extend(card.end());
    }
    Some(Parts { steps, rest: Some(to_raw_value(&rest).ok()) })
}

type MessageIn = (Map<String, Value>, Map<String, Value>, Option<Value>);

/// The message of a result, the rest of its data, and its files.
fn message_in(data: Option<&RawValue>) -> Option<MessageIn> {
    let mut data: Map<String, Value> = serde_json::from_str(data?.get()).ok()?;
    let Some(Value::Object(message)) = data.remove("message") else { return None };
    let content = message.get("content").unwrap_or(&Value::Null);
    let is_content = matches!(content, Value::Null | Value::String(_) | Value::Array(_));
    let files = data.remove("file_ids").filter(|files| *files != json!([]));
    is_content.then_some((message, data, files))
}

pub(super) fn message_of(message: &Map<String, Value>, files: Option<Value>) -> Value {
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
pub(super) fn role(role: Option<&str>) -> &str {
    role.filter(|role| ROLES.contains(role)).unwrap_or("assistant")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wires::langbot::Dialect;

    const ASKING: RunnerProfile =
        RunnerProfile { dialect: Dialect::Runner, replies: false, asks: true, is_commands: false };

    fn translated(result: &Value) -> Option<Value> {
        let raw = to_raw_value(result).unwrap();
        let mut results = translate("r1", &raw, &mut Card::default(), ASKING);
        assert!(results.len() <= 1);
        results.pop().map(|result| serde_json::to_value(result).unwrap())
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
    fn a_question_is_a_message_with_its_form() {
        let request =
            json!({"interaction_id": "i1", "title": "Sure?", "fallback_text": "Say yes or no."});
        let item = json!({"run_id": "r1", "type": "action.requested", "sequence": 3,
            "data": {"action": "interaction.requested", "target": null, "payload": request}});
        let message = json!({"role": "assistant", "content": "Say yes or no.",
            "metadata": {"interaction": request}});
        assert_eq!(
            translated(&item),
            Some(json!({"run_id": "r1", "type": "message.completed", "sequence": 3,
                "data": {"message": message}}))
        );
        // A runner that has not declared it asks for an action, which is not granted.
        let raw = to_raw_value(&item).unwrap();
        let kept = translate("r1", &raw, &mut Card::default(), RunnerProfile::default());
        assert_eq!((kept.len(), kept[0].kind.as_str()), (1, "action.requested"));
        // Without a text there is nothing to show where forms are not known.
        let mut mute = item;
        mute["data"]["payload"]["fallback_text"] = " ".into();
        assert_eq!(translated(&mute).unwrap()["type"], "action.requested");
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
