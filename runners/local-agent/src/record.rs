//! What a run records with its answer: everything that the transcript lacks to give the next run's model the same bytes.
//!
//! Invariant: recorded values only repeat what the model saw. A run that recorded nothing is restored from the
//! transcript alone.

use crate::turn::Turn;
use greenroom_sdk::{ModelToolCall, Object, ToolResource, Value, json};

/// Limit for the recorded segments of a run; those of later rounds are left out.
const SEGMENTS_BYTES_MAX: usize = 256 * 1024;

#[derive(Debug, Default)]
pub(crate) struct Record {
    /// Call ids of each turn so far; empty for an answer before the last.
    rounds: Vec<Vec<String>>,
    /// Arguments of calls that never reach the host, which therefore does not store them.
    arguments: Object,
    /// Calls whose arguments are not valid, as the model wrote them.
    malformed: Object,
    /// Segments of turns with reasoning, by the index of their round.
    segments: Object,
    segments_bytes: usize,
    /// Warnings in results, by call id.
    warnings: Object,
    /// Events that joined the run, and after how many turns.
    steered: Object,
}

impl Record {
    /// Rounds since the last answer.
    pub(crate) fn open_rounds(&self) -> usize {
        self.rounds.iter().rev().take_while(|calls| !calls.is_empty()).count()
    }

    /// A turn with calls.
    pub(crate) fn round(&mut self, turn: &Turn, granted: &[ToolResource]) {
        let is_own = |call: &&ModelToolCall| granted.iter().all(|tool| tool.tool_name != call.name);
        for call in turn.calls.iter().filter(is_own) {
            self.arguments.insert(call.id.clone(), call.args.clone());
        }
        for call in turn.calls.iter().filter(|call| call.args_error.is_some()) {
            self.malformed.insert(call.id.clone(), json!(call));
        }
        let is_reasoning = |one: &Object| one.get("type").is_some_and(|kind| kind == "reasoning");
        if turn.segments.iter().any(is_reasoning) {
            let segments = json!(turn.segments);
            self.segments_bytes += segments.to_string().len();
            if self.segments_bytes <= SEGMENTS_BYTES_MAX {
                self.segments.insert(self.rounds.len().to_string(), segments);
            }
        }
        self.rounds.push(turn.calls.iter().map(|call| call.id.clone()).collect());
    }

    /// An answer before the last.
    pub(crate) fn answer(&mut self) {
        self.rounds.push(Vec::new());
    }

    pub(crate) fn warnings(&mut self, warnings: Object) {
        self.warnings.extend(warnings);
    }

    pub(crate) fn joined(&mut self, event_id: String) {
        self.steered.insert(event_id, self.rounds.len().into());
    }

    /// The metadata of an answer; `more` are records of other parts of the agent.
    pub(crate) fn metadata(&self, more: [(&str, Value); 2]) -> Object {
        let rounds = match self.rounds.is_empty() {
            true => Value::Null,
            false => json!(self.rounds),
        };
        let objects = [
            ("arguments", &self.arguments),
            ("malformed", &self.malformed),
            ("segments", &self.segments),
            ("warnings", &self.warnings),
            ("steered", &self.steered),
        ];
        let objects = objects.map(|(key, value)| (key, Value::Object(value.clone())));
        let all = [("rounds", rounds)].into_iter().chain(objects).chain(more);
        let is_filled = |value: &Value| match value {
            Value::Null => false,
            Value::Object(object) => !object.is_empty(),
            Value::Array(list) => !list.is_empty(),
            _ => true,
        };
        all.filter(|(_, value)| is_filled(value))
            .map(|(key, value)| (key.to_owned(), value))
            .collect()
    }
}
