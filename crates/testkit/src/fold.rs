//! The text of a run, assembled from results as a client does.
//!
//! Invariant: deltas are appended or replace what is unfinished, `message.completed` replaces them, `run.restarted` clears everything.

use greenroom_protocol::AgentRunResult;
use greenroom_protocol::payload::{DeltaRef, MessageCompleted};
use greenroom_protocol::result::kind;
use serde_json::Value;

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Fold {
    /// Complete messages in order; those without text are omitted.
    pub messages: Vec<String>,
    /// Deltas that no message covers yet.
    pub unfinished: String,
    /// The attempts that `run.restarted` announced.
    pub restarts: Vec<i64>,
    pub terminal: Option<AgentRunResult>,
}

impl Fold {
    pub fn of<'a>(results: impl IntoIterator<Item = &'a AgentRunResult>) -> Self {
        let mut fold = Self::default();
        for result in results {
            fold.push(result);
        }
        fold
    }

    pub fn push(&mut self, result: &AgentRunResult) {
        let data = Value::Object(result.data.clone());
        match result.kind.as_str() {
            kind::MESSAGE_DELTA => {
                let text = data.to_string();
                let delta = DeltaRef::parse(&text).expect("a delta that readers can read");
                if delta.replace {
                    self.unfinished.clear();
                }
                self.unfinished.push_str(&delta.content);
            }
            kind::MESSAGE_COMPLETED => {
                let completed: MessageCompleted =
                    serde_json::from_value(data).expect("a message that readers can read");
                self.unfinished.clear();
                self.finish(completed.message.content.text().to_string());
            }
            kind::RUN_RESTARTED => {
                self.messages.clear();
                self.unfinished.clear();
                self.restarts.push(data["attempt"].as_i64().expect("a number"));
            }
            kind::RUN_COMPLETED | kind::RUN_FAILED => {
                let unfinished = std::mem::take(&mut self.unfinished);
                self.finish(unfinished);
                self.terminal = Some(result.clone());
            }
            _ => {}
        }
    }

    fn finish(&mut self, message: String) {
        if !message.is_empty() {
            self.messages.push(message);
        }
    }
}
