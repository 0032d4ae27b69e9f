//! From the updates of a turn to results of the run.
//!
//! Invariant: no IO. Text before a tool call is a completed message of its own, so that the transcript has the order
//! of the turn; unknown updates change nothing.

use crate::tool_calls::{ToolCall, cut};
use greenroom_sdk::protocol::MessageContent;
use greenroom_sdk::{Message, Object, RunResult, Value, json};
use std::collections::HashMap;

/// Longest list of steps.
const STEPS_MAX: usize = 100;

/// What one update leads to.
#[derive(Debug)]
pub(crate) enum Output {
    Delta(String),
    Result(RunResult),
}

/// A turn so far.
#[derive(Debug, Default)]
pub(crate) struct Turn {
    text: String,
    thoughts: String,
    calls: HashMap<String, ToolCall>,
    /// Ids of calls, in order.
    order: Vec<String>,
    usage: Object,
    has_begun: bool,
}

impl Turn {
    pub(crate) fn update(&mut self, update: &Value) -> Vec<Output> {
        self.has_begun = true;
        match update["sessionUpdate"].as_str().unwrap_or_default() {
            "agent_message_chunk" => match block_text(&update["content"]) {
                text if text.is_empty() => Vec::new(),
                text => {
                    self.text.push_str(&text);
                    vec![Output::Delta(text)]
                }
            },
            "agent_thought_chunk" => {
                self.thoughts.push_str(&block_text(&update["content"]));
                Vec::new()
            }
            "tool_call" | "tool_call_update" => {
                let Some(id) = update["toolCallId"].as_str() else { return Vec::new() };
                let call = self.call(id);
                call.update(update);
                let results = call.results();
                self.after_text(results)
            }
            "plan" => vec![Output::Result(plan(update))],
            "usage_update" => {
                self.spend(update);
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    /// The call that a question is about, with what the question says of it.
    pub(crate) fn asked(&mut self, tool_call: &Value) -> (ToolCall, Vec<Output>) {
        self.has_begun = true;
        let id = tool_call["toolCallId"].as_str().unwrap_or("call").to_owned();
        let call = self.call(&id);
        call.update(tool_call);
        let started: Vec<RunResult> = call.begin().into_iter().collect();
        let call = call.clone();
        (call, self.after_text(started))
    }

    /// The last message, and the ends of calls that have none.
    pub(crate) fn end(&mut self, response: &Value) -> Vec<Output> {
        let order = std::mem::take(&mut self.order);
        let open: Vec<RunResult> =
            order.iter().filter_map(|id| self.calls.get_mut(id)?.end()).collect();
        if let Some(usage) = response.get("usage").filter(|usage| usage.is_object()) {
            for (name, key) in TOKENS {
                if let Some(tokens) = usage[name].as_u64() {
                    self.usage.insert(key.to_owned(), tokens.into());
                }
            }
        }
        let mut outputs: Vec<Output> = open.into_iter().map(Output::Result).collect();
        outputs.extend(self.message());
        outputs
    }

    /// Whether nothing was said or done.
    pub(crate) fn is_silent(&self) -> bool {
        !self.has_begun
    }

    /// Tokens and cost, as far as the harness says.
    pub(crate) fn usage(&self) -> Option<Object> {
        (!self.usage.is_empty()).then(|| self.usage.clone())
    }

    fn call(&mut self, id: &str) -> &mut ToolCall {
        if !self.calls.contains_key(id) {
            self.order.push(id.to_owned());
        }
        self.calls.entry(id.to_owned()).or_insert_with(|| ToolCall::new(id))
    }

    /// The results, after the text that precedes them.
    fn after_text(&mut self, results: Vec<RunResult>) -> Vec<Output> {
        if results.is_empty() {
            return Vec::new();
        }
        let message = self.message();
        message.into_iter().chain(results.into_iter().map(Output::Result)).collect()
    }

    fn message(&mut self) -> Option<Output> {
        if self.text.trim().is_empty() {
            return None;
        }
        let (text, thoughts) = (std::mem::take(&mut self.text), std::mem::take(&mut self.thoughts));
        let segments = (!thoughts.is_empty()).then(|| {
            vec![
                json!({"type": "reasoning", "text": thoughts}),
                json!({"type": "text", "text": text}),
            ]
        });
        let content = MessageContent::Text(text);
        let message = Message { content, segments, ..Message::assistant("") };
        Some(Output::Result(RunResult::message_of(message)))
    }

    fn spend(&mut self, update: &Value) {
        let cost = &update["cost"];
        if let Some(amount) = cost["amount"].as_f64()
            && cost["currency"].as_str().is_none_or(|currency| currency == "USD")
        {
            self.usage.insert("cost_usd".to_owned(), amount.into());
        }
        for (name, key) in [("used", "context_tokens"), ("size", "context_window")] {
            if let Some(tokens) = update[name].as_u64() {
                self.usage.insert(key.to_owned(), tokens.into());
            }
        }
    }
}

/// Tokens of a turn: the names of the protocol, and ours.
const TOKENS: [(&str, &str); 4] = [
    ("inputTokens", "input_tokens"),
    ("outputTokens", "output_tokens"),
    ("cachedReadTokens", "cached_input_tokens"),
    ("totalTokens", "total_tokens"),
];

fn plan(update: &Value) -> RunResult {
    let step = |entry: &Value| {
        json!({"content": cut(entry["content"].as_str().unwrap_or_default(), 2000),
            "status": entry["status"].as_str().unwrap_or("pending"),
            "priority": entry["priority"].as_str().unwrap_or("medium")})
    };
    let entries = update["entries"].as_array().into_iter().flatten();
    let mut data = Object::new();
    data.insert("entries".to_owned(), entries.take(STEPS_MAX).map(step).collect());
    RunResult::other("plan.updated", data)
}

/// The text of a content block; media are named.
fn block_text(block: &Value) -> String {
    let text = |name: &str| block[name].as_str().unwrap_or_default().to_owned();
    match block["type"].as_str() {
        Some("text") => text("text"),
        Some("resource_link") => format!("[{}]({})", text("name"), text("uri")),
        Some("image") => "[image]".to_owned(),
        Some("audio") => "[audio]".to_owned(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kinds of outputs, in order.
    fn kinds(outputs: &[Output]) -> Vec<String> {
        let kind = |output: &Output| match output {
            Output::Delta(text) => format!("delta {text}"),
            Output::Result(result) => result.kind().to_owned(),
        };
        outputs.iter().map(kind).collect()
    }

    fn chunk(kind: &str, text: &str) -> Value {
        json!({"sessionUpdate": kind, "content": {"type": "text", "text": text}})
    }

    #[test]
    fn text_before_a_call_is_a_message_of_its_own() {
        let mut turn = Turn::default();
        turn.update(&chunk("agent_thought_chunk", "hm"));
        assert_eq!(kinds(&turn.update(&chunk("agent_message_chunk", "I look"))), ["delta I look"]);
        let call = json!({"sessionUpdate": "tool_call", "toolCallId": "1", "title": "Read",
            "status": "in_progress"});
        assert_eq!(kinds(&turn.update(&call)), ["message.completed", "tool.call.started"]);
        let done =
            json!({"sessionUpdate": "tool_call_update", "toolCallId": "1", "status": "completed"});
        assert_eq!(kinds(&turn.update(&done)), ["tool.call.completed"]);
        turn.update(&chunk("agent_message_chunk", "it is 5"));
        assert_eq!(kinds(&turn.end(&Value::Null)), ["message.completed"]);
    }

    #[test]
    fn what_is_unknown_or_odd_changes_nothing() {
        let mut turn = Turn::default();
        for update in [
            json!(null),
            json!([]),
            json!({"sessionUpdate": "new_thing"}),
            json!({"sessionUpdate": "tool_call"}),
            json!({"sessionUpdate": "agent_message_chunk"}),
        ] {
            assert!(turn.update(&update).is_empty(), "{update}");
        }
        assert_eq!(kinds(&turn.update(&json!({"sessionUpdate": "plan"}))), ["plan.updated"]);
        assert!(turn.end(&Value::Null).is_empty() && turn.usage().is_none());
    }

    #[test]
    fn tokens_and_cost_have_our_names() {
        let mut turn = Turn::default();
        let cost = json!({"amount": 0.5, "currency": "USD"});
        turn.update(
            &json!({"sessionUpdate": "usage_update", "used": 10, "size": 100, "cost": cost}),
        );
        turn.end(&json!({"usage": {"inputTokens": 7, "outputTokens": 2}}));
        let expected = json!({"context_tokens": 10, "context_window": 100, "cost_usd": 0.5,
            "input_tokens": 7, "output_tokens": 2});
        assert_eq!(turn.usage().map(Value::Object), Some(expected));
    }
}
