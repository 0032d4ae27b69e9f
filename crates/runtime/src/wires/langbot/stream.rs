//! Streams of models to a plugin: our items as LangBot's chunks, with flow control.
//!
//! Invariant: a plugin that acknowledges has at most `STREAM_WINDOW` unacknowledged chunks; a tool call is
//! one chunk.

use super::messages::{tool_call, usage};
use serde_json::{Value, json};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// Unacknowledged chunks that the SDK accepts at most.
const STREAM_WINDOW: u64 = 8;

/// One streaming call.
#[derive(Debug)]
pub(crate) struct Flow {
    counts: Mutex<Counts>,
    taken: Notify,
    acknowledges: bool,
    remove_think: bool,
}

#[derive(Debug, Default)]
struct Counts {
    sent: u64,
    acknowledged: u64,
}

impl Flow {
    pub(crate) fn new(acknowledges: bool, remove_think: bool) -> Self {
        Self { counts: Mutex::default(), taken: Notify::new(), acknowledges, remove_think }
    }

    /// The number of the next chunk, once there is room for it; none for a plugin that does not acknowledge.
    pub(crate) async fn next(&self) -> Option<u64> {
        if !self.acknowledges {
            return None;
        }
        loop {
            let taken = self.taken.notified();
            tokio::pin!(taken);
            taken.as_mut().enable();
            {
                let mut counts = self.counts();
                if counts.sent - counts.acknowledged < STREAM_WINDOW {
                    counts.sent += 1;
                    return Some(counts.sent);
                }
            }
            taken.await;
        }
    }

    /// The plugin acknowledges everything up to `index`; returns whether that is possible.
    pub(crate) fn acknowledge(&self, index: u64) -> bool {
        let mut counts = self.counts();
        let is_known = (counts.acknowledged..=counts.sent).contains(&index);
        if is_known {
            counts.acknowledged = index;
        }
        drop(counts);
        self.taken.notify_waiters();
        is_known
    }

    /// An item as a chunk, if it has one.
    pub(crate) fn chunk(&self, item: &Value) -> Option<Value> {
        let chunk = |fields: Value| {
            let mut chunk = json!({"role": "assistant"});
            if let (Some(chunk), Value::Object(fields)) = (chunk.as_object_mut(), fields) {
                chunk.extend(fields);
            }
            Some(json!({ "chunk": chunk }))
        };
        match item["type"].as_str().unwrap_or_default() {
            "text_delta" => chunk(json!({"content": item["text"]})),
            "reasoning_delta" if self.remove_think => None,
            "reasoning_delta" => {
                chunk(json!({"provider_specific_fields": {"reasoning_content": item["text"]}}))
            }
            "tool_call_end" => chunk(json!({"tool_calls": [tool_call(item)]})),
            "media" => {
                chunk(json!({"content": [super::content::to_langbot(&element(&item["segment"]))]}))
            }
            "usage" => usage(item).map(|usage| json!({ "usage": usage })),
            "finish" => chunk(json!({"content": "", "is_final": true})),
            _ => None,
        }
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A segment of an answer as a message element.
fn element(segment: &Value) -> Value {
    let mut element = segment.clone();
    let data = segment["data"].as_str().unwrap_or_default();
    let key = if data.contains("://") { "url" } else { "data_base64" };
    if !data.is_empty() {
        element[key] = data.into();
    }
    element
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_plugin_that_acknowledges_gets_no_more_than_it_has_room_for() {
        let flow = Flow::new(true, false);
        for number in 1..=STREAM_WINDOW {
            assert_eq!(flow.next().await, Some(number));
        }
        assert!(futures_util::poll!(std::pin::pin!(flow.next())).is_pending());
        assert!(!flow.acknowledge(STREAM_WINDOW + 1));
        assert!(flow.acknowledge(4));
        assert_eq!(flow.next().await, Some(STREAM_WINDOW + 1));
        assert!(!flow.acknowledge(3));
        assert_eq!(Flow::new(false, false).next().await, None);
    }

    #[test]
    fn items_are_chunks_and_reasoning_goes_where_nobody_takes_it_for_the_answer() {
        let flow = Flow::new(true, false);
        let chunk = |item: Value| flow.chunk(&item).unwrap_or_default();
        assert_eq!(
            chunk(json!({"type": "text_delta", "text": "a"})),
            json!({"chunk": {"role": "assistant", "content": "a"}})
        );
        assert_eq!(
            chunk(json!({"type": "tool_call_end", "id": "c", "name": "add", "args": {"a": 1}})),
            json!({"chunk": {"role": "assistant", "tool_calls": [{"id": "c", "type": "function",
                "function": {"name": "add", "arguments": "{\"a\":1}"}}]}})
        );
        assert_eq!(
            chunk(json!({"type": "tool_call_delta", "id": "c", "args_text": "{"})),
            Value::Null
        );
        assert_eq!(chunk(json!({"type": "usage", "input_tokens": 1}))["usage"]["prompt_tokens"], 1);
        let reasoning = json!({"type": "reasoning_delta", "text": "hm"});
        assert_eq!(chunk(reasoning.clone())["chunk"].get("content"), None);
        assert_eq!(Flow::new(true, true).chunk(&reasoning), None);
    }
}
