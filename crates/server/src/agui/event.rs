//! The AG-UI events that the host sends, and their frames.
//!
//! Invariant: a missing field is omitted, never null; a frame is one line of JSON.

use bytes::{BufMut, BytesMut};
use serde::Serialize;
use serde_json::{Map, Value};

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "SCREAMING_SNAKE_CASE", rename_all_fields = "camelCase")]
pub(crate) enum Event {
    RunStarted {
        thread_id: String,
        run_id: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        protocol_version: Option<&'static str>,
        #[serde(skip_serializing_if = "Map::is_empty")]
        metadata: Map<String, Value>,
    },
    RunFinished {
        thread_id: String,
        run_id: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        result: Option<Value>,
        #[serde(skip_serializing_if = "Option::is_none")]
        outcome: Option<Outcome>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        usage: Vec<TokenUsage>,
    },
    RunError {
        message: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        code: Option<String>,
    },
    TextMessageStart {
        message_id: String,
        role: &'static str,
        /// The sub-agent that it is of; other events of the message leave it out.
        #[serde(skip_serializing_if = "Option::is_none")]
        subagent_run_id: Option<String>,
    },
    TextMessageContent {
        message_id: String,
        delta: String,
    },
    TextMessageEnd {
        message_id: String,
    },
    ToolCallStart {
        tool_call_id: String,
        tool_call_name: String,
        parent_message_id: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        subagent_run_id: Option<String>,
    },
    ToolCallArgs {
        tool_call_id: String,
        delta: String,
    },
    ToolCallEnd {
        tool_call_id: String,
    },
    ToolCallResult {
        message_id: String,
        tool_call_id: String,
        role: &'static str,
        content: String,
        metadata: Value,
        #[serde(skip_serializing_if = "Option::is_none")]
        subagent_run_id: Option<String>,
    },
    StateSnapshot {
        snapshot: Value,
    },
    StateDelta {
        delta: Vec<Value>,
    },
    MessagesSnapshot {
        messages: Vec<Value>,
        #[serde(skip_serializing_if = "Map::is_empty")]
        metadata: Map<String, Value>,
    },
    ActivitySnapshot {
        message_id: String,
        activity_type: String,
        content: Value,
        replace: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        subagent_run_id: Option<String>,
    },
    ActivityDelta {
        message_id: String,
        activity_type: String,
        patch: Vec<Value>,
    },
    StepStarted {
        step_name: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        subagent_run_id: Option<String>,
    },
    StepFinished {
        step_name: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        subagent_run_id: Option<String>,
    },
    SubagentStarted {
        subagent_run_id: String,
        name: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        description: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        parent_subagent_run_id: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        parent_tool_call_id: Option<String>,
    },
    SubagentFinished {
        subagent_run_id: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        result: Option<Value>,
    },
    SubagentError {
        subagent_run_id: String,
        message: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        code: Option<String>,
    },
    Custom {
        name: String,
        value: Value,
    },
    ReasoningStart {
        message_id: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        subagent_run_id: Option<String>,
    },
    ReasoningMessageStart {
        message_id: String,
        role: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        subagent_run_id: Option<String>,
    },
    ReasoningMessageContent {
        message_id: String,
        delta: String,
    },
    ReasoningMessageEnd {
        message_id: String,
    },
    ReasoningEnd {
        message_id: String,
    },
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Outcome {
    Success {
        /// Calls of the client's tools that it has to answer.
        #[serde(rename = "pendingToolCallIds", skip_serializing_if = "Vec::is_empty")]
        pending: Vec<String>,
    },
    Interrupt {
        interrupts: Vec<Interrupt>,
    },
    Cancelled,
}

/// A question that must be answered before the run can continue.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Interrupt {
    pub(crate) id: String,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tool_call_id: Option<String>,
    pub(crate) response_schema: Value,
    pub(crate) expires_at: String,
    pub(crate) metadata: Value,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TokenUsage {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) input_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) output_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) total_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reasoning_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cached_input_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cache_write_input_tokens: Option<u64>,
}

impl TokenUsage {
    /// The known counters of a runner's usage; `None` if there are none.
    pub(crate) fn read(usage: &Value) -> Option<Self> {
        let count = |name: &str| usage.get(name).and_then(Value::as_u64);
        let read = Self {
            input_tokens: count("input_tokens"),
            output_tokens: count("output_tokens"),
            total_tokens: count("total_tokens"),
            reasoning_tokens: count("reasoning_tokens"),
            cached_input_tokens: count("cached_input_tokens"),
            cache_write_input_tokens: count("cache_write_input_tokens"),
        };
        (read != Self::default()).then_some(read)
    }
}

impl Event {
    /// Writes the event as an SSE frame; with a sequence number a client can resume after it.
    pub(crate) fn write(&self, out: &mut BytesMut, number: Option<i64>) {
        if let Some(number) = number {
            out.put_slice(format!("id: {number}\n").as_bytes());
        }
        out.put_slice(b"data: ");
        // Serialization cannot fail: string keys and finite numbers only.
        let _ = serde_json::to_writer((&mut *out).writer(), self);
        out.put_slice(b"\n\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn absent_fields_are_left_out() {
        let finished = Event::RunFinished {
            thread_id: "t".into(),
            run_id: "r".into(),
            result: None,
            outcome: None,
            usage: Vec::new(),
        };
        let written = json!({"type": "RUN_FINISHED", "threadId": "t", "runId": "r"});
        assert_eq!(json!(finished), written);
        let error = Event::RunError { message: "no".into(), code: None };
        assert_eq!(json!(error), json!({"type": "RUN_ERROR", "message": "no"}));
    }

    #[test]
    fn a_frame_is_one_line_whatever_is_in_it() {
        let mut out = BytesMut::new();
        let delta = "a\r\nb\u{2028}".to_owned();
        Event::TextMessageContent { message_id: "m".into(), delta }.write(&mut out, Some(7));
        let frame = std::str::from_utf8(&out).unwrap();
        assert_eq!(
            frame,
            "id: 7\ndata: {\"type\":\"TEXT_MESSAGE_CONTENT\",\"messageId\":\"m\",\
             \"delta\":\"a\\r\\nb\u{2028}\"}\n\n"
        );
    }

    #[test]
    fn usage_is_what_is_known_of_it() {
        let usage = json!({"input_tokens": 3, "output_tokens": 0, "cost_usd": 0.1});
        let read = TokenUsage::read(&usage).unwrap();
        assert_eq!(json!(read), json!({"inputTokens": 3, "outputTokens": 0}));
        assert_eq!(TokenUsage::read(&json!({})), None);
    }
}
