//! One response of the model.
//!
//! Invariant: call ids of a run are unique, whatever providers send; the host accepts the arguments, in results and in
//! the next request.

use crate::event;
use crate::stream::unique;
use greenroom_sdk::protocol::{MessageContent, NESTING_MAX, nesting_depth};
use greenroom_sdk::{ModelMessage, ModelToolCall, Object, Role, Value, json};
use std::collections::HashSet;

/// Maximum nesting of arguments: a request adds some levels.
const ARGS_LEVELS_MAX: usize = NESTING_MAX - 12;
/// Limit for the arguments of one call, and of all calls of a turn. The host accepts results up to 1 MiB.
const ARGS_BYTES_MAX: usize = 960 * 1024;
const ALL_ARGS_BYTES_MAX: usize = 2 * ARGS_BYTES_MAX;

#[derive(Debug, Default)]
pub(crate) struct Turn {
    pub(crate) text: String,
    pub(crate) calls: Vec<ModelToolCall>,
    /// The provider's segments; empty if unknown.
    pub(crate) segments: Vec<Object>,
    pub(crate) finish_reason: Option<String>,
}

impl Turn {
    /// The turn as a message of the next request.
    pub(crate) fn message(&self) -> ModelMessage {
        let content = (!self.text.is_empty()).then(|| MessageContent::Text(self.text.clone()));
        let mut message = ModelMessage {
            content,
            tool_calls: self.calls.clone(),
            segments: (!self.segments.is_empty()).then(|| self.segments.clone()),
            ..ModelMessage::text(Role::Assistant, "")
        };
        event::escape_answer(&mut message);
        message
    }

    /// No text, calls or media.
    pub(crate) fn is_empty(&self) -> bool {
        self.text.trim().is_empty() && self.calls.is_empty() && !self.has_media()
    }

    /// The provider could not read it: usually a malformed tool call.
    pub(crate) fn is_unreadable(&self) -> bool {
        self.is_empty() && self.finish_reason.as_deref() == Some("error")
    }

    /// Segments other than text and calls.
    pub(crate) fn shown_segments(&self) -> Option<Vec<Value>> {
        let says_more = |segment: &Object| !matches!(kind(segment), "text" | "tool_call");
        let shown: Vec<Value> = self
            .segments
            .iter()
            .filter(|segment| kind(segment) != "tool_call")
            .cloned()
            .map(Value::Object)
            .collect();
        self.segments.iter().any(says_more).then_some(shown)
    }

    fn has_media(&self) -> bool {
        self.segments.iter().any(|one| matches!(kind(one), "image" | "audio" | "video" | "ui"))
    }

    /// Corrects tool names.
    pub(crate) fn correct_names(&mut self, resolve_name: impl Fn(&str) -> Option<String>) {
        for call in &mut self.calls {
            let Some(name) = resolve_name(&call.name) else { continue };
            let shown = self.segments.iter_mut().filter_map(|segment| segment.get_mut("tool_call"));
            for segment in shown.filter(|shown| shown["id"] == call.id.as_str()) {
                segment["name"] = name.as_str().into();
            }
            call.name = name;
        }
    }

    /// Removes oversized arguments: such a call is not executed and has an error.
    pub(crate) fn limit_arguments(&mut self) {
        let mut all_bytes = 0;
        for call in &mut self.calls {
            let written = call.args_text.clone().unwrap_or_else(|| call.args.to_string());
            let reason = match written.len() {
                bytes if bytes > ARGS_BYTES_MAX => format!("more than {ARGS_BYTES_MAX} bytes"),
                bytes if all_bytes + bytes > ALL_ARGS_BYTES_MAX => {
                    format!("more than {ALL_ARGS_BYTES_MAX} bytes in all calls of one answer")
                }
                _ if nesting_depth(call.args.to_string().as_bytes()) > ARGS_LEVELS_MAX => {
                    format!("nested deeper than {ARGS_LEVELS_MAX} levels")
                }
                bytes => {
                    all_bytes += bytes;
                    continue;
                }
            };
            call.args = json!({"left_out": format!("the arguments were {reason}")});
            call.args_text = None;
            call.args_error = Some(format!("they are {reason}"));
            let shown = self.segments.iter_mut().filter_map(|segment| segment.get_mut("tool_call"));
            for segment in shown.filter(|shown| shown["id"] == call.id.as_str()) {
                *segment = json!(call);
            }
        }
    }

    /// Makes call ids unique in the run.
    pub(crate) fn make_ids_unique(&mut self, used: &mut HashSet<String>) {
        // A call and its segment have the same index among those of one id.
        let shown = self.segments.iter_mut().filter_map(|segment| segment.get_mut("tool_call"));
        let mut shown: Vec<&mut Value> = shown.collect();
        for call in &mut self.calls {
            let segment = shown.iter().position(|shown| shown["id"] == call.id.as_str());
            let segment = segment.map(|at| shown.remove(at));
            call.id = unique(&call.id, used);
            if let Some(segment) = segment {
                segment["id"] = call.id.as_str().into();
            }
        }
    }
}

fn kind(segment: &Object) -> &str {
    segment.get("type").and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(id: &str) -> ModelToolCall {
        ModelToolCall {
            id: id.to_owned(),
            name: "clock".to_owned(),
            args: json!({}),
            args_text: None,
            args_error: None,
        }
    }

    #[test]
    fn an_id_that_was_used_before_gets_a_number() {
        let segment = |id: &str| {
            let segment = json!({"type": "tool_call", "tool_call": {"id": id}});
            segment.as_object().cloned().unwrap_or_default()
        };
        let mut used = HashSet::from(["a".to_owned()]);
        let mut turn = Turn {
            calls: vec![call("a"), call("a-2"), call("b"), call("b"), call("")],
            segments: ["a", "a-2", "b", "b", ""].map(segment).to_vec(),
            ..Turn::default()
        };
        turn.make_ids_unique(&mut used);
        let ids: Vec<&str> = turn.calls.iter().map(|call| call.id.as_str()).collect();
        assert_eq!(ids, ["a-2", "a-2-2", "b", "b-2", "call-2"]);
        let segment_ids: Vec<&Value> =
            turn.segments.iter().map(|one| &one["tool_call"]["id"]).collect();
        assert_eq!(segment_ids, ids, "in their order");
    }

    #[test]
    fn oversized_arguments_are_removed_and_the_call_has_an_error() {
        let nested = |levels: usize| (1..levels).fold(json!({}), |inner, _| json!({"a": inner}));
        let long = |bytes: usize| json!({"text": "x".repeat(bytes)});
        let with = |id: &str, args: Value| ModelToolCall { args, ..call(id) };
        let calls = vec![
            with("deepest", nested(ARGS_LEVELS_MAX)),
            with("deep", nested(ARGS_LEVELS_MAX + 1)),
            with("large", long(ARGS_BYTES_MAX - 100)),
            with("too large", long(ARGS_BYTES_MAX)),
            ModelToolCall { args_text: Some("x".repeat(ARGS_BYTES_MAX + 1)), ..call("no JSON") },
            with("second", long(ARGS_BYTES_MAX - 10_000)),
            with("third", long(100_000)),
        ];
        let segment = |call: &ModelToolCall| {
            let segment = json!({"type": "tool_call", "tool_call": call});
            segment.as_object().cloned().unwrap_or_default()
        };
        let segments = calls.iter().map(segment).collect();
        let mut turn = Turn { calls, segments, ..Turn::default() };
        turn.limit_arguments();
        let left_out = turn.calls.iter().filter(|call| call.args_error.is_some());
        let left_out: Vec<&str> = left_out.map(|call| call.id.as_str()).collect();
        assert_eq!(left_out, ["deep", "too large", "no JSON", "third"]);
        let deep = &turn.calls[1];
        assert_eq!(deep.args["left_out"], "the arguments were nested deeper than 88 levels");
        assert_eq!(turn.segments, turn.calls.iter().map(segment).collect::<Vec<_>>());
    }

    #[test]
    fn reasoning_and_images_are_shown_beside_the_text_and_calls_are_not() {
        let segments = [
            json!({"type": "reasoning", "text": "hm"}),
            json!({"type": "text", "text": "yes"}),
            json!({"type": "tool_call", "tool_call": {"id": "a"}}),
        ];
        let segments = segments.iter().filter_map(|one| one.as_object().cloned()).collect();
        let turn = Turn { text: "yes".to_owned(), segments, ..Turn::default() };
        let shown = turn.shown_segments().unwrap_or_default();
        assert_eq!(shown.len(), 2);
        let plain = json!({"type": "text", "text": "yes"}).as_object().cloned();
        let turn = Turn { segments: plain.into_iter().collect(), ..Turn::default() };
        assert_eq!(turn.shown_segments(), None);
    }
}
