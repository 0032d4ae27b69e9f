//! What one answer of the model comes to.
//!
//! Invariant: the ids of a run's calls differ, whatever providers make of them.

use crate::event;
use greenroom_sdk::protocol::MessageContent;
use greenroom_sdk::{ModelMessage, ModelToolCall, Object, Role, Value};
use std::collections::HashSet;

#[derive(Debug, Default)]
pub(crate) struct Turn {
    pub(crate) text: String,
    pub(crate) calls: Vec<ModelToolCall>,
    /// The answer as the provider gave it; empty where nobody knows.
    pub(crate) segments: Vec<Object>,
    pub(crate) finish_reason: Option<String>,
}

impl Turn {
    /// The turn as the next request repeats it.
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

    /// Neither words nor calls nor anything to look at.
    pub(crate) fn is_empty(&self) -> bool {
        self.text.trim().is_empty() && self.calls.is_empty() && !self.has_media()
    }

    /// The segments that say more than the text does.
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

    /// Calls tools by the names that `meant` knows better.
    pub(crate) fn correct(&mut self, meant: impl Fn(&str) -> Option<String>) {
        for call in &mut self.calls {
            let Some(name) = meant(&call.name) else { continue };
            let shown = self.segments.iter_mut().filter_map(|segment| segment.get_mut("tool_call"));
            for segment in shown.filter(|shown| shown["id"] == call.id.as_str()) {
                segment["name"] = name.as_str().into();
            }
            call.name = name;
        }
    }

    /// Gives calls whose id was used before in the run another one.
    pub(crate) fn distinguish(&mut self, used: &mut HashSet<String>) {
        // A call and its segment stand at the same place among those of one id.
        let shown = self.segments.iter_mut().filter_map(|segment| segment.get_mut("tool_call"));
        let mut shown: Vec<&mut Value> = shown.collect();
        for call in &mut self.calls {
            let old = call.id.clone();
            let segment = shown.iter().position(|shown| shown["id"] == old.as_str());
            let segment = segment.map(|at| shown.remove(at));
            let mut count = 1;
            while call.id.is_empty() || !used.insert(call.id.clone()) {
                count += 1;
                call.id = format!("{}-{count}", if old.is_empty() { "call" } else { &old });
            }
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
    use greenroom_sdk::json;

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
        turn.distinguish(&mut used);
        let ids: Vec<&str> = turn.calls.iter().map(|call| call.id.as_str()).collect();
        assert_eq!(ids, ["a-2", "a-2-2", "b", "b-2", "call-2"]);
        let told: Vec<&Value> = turn.segments.iter().map(|one| &one["tool_call"]["id"]).collect();
        assert_eq!(told, ids, "in their order");
    }

    #[test]
    fn reasoning_and_pictures_are_shown_beside_the_text_and_calls_are_not() {
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
