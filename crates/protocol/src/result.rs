//! One item of a run's stream (seed 000 §7.1).
//!
//! `AgentRunResult` is what readers see; `RawResult` is the same item as it comes from a runner, with its
//! data unparsed, so that a delta passes through the host without being rebuilt.
//!
//! Invariant: a `sequence` that was read is a whole number from 0 on.

use crate::{Object, object};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AgentRunResult {
    pub run_id: String,
    #[serde(rename = "type")]
    pub kind: String,
    #[serde(default)]
    pub data: Object,
    /// From a runner: its own count. To a reader: the host's number, increasing, gaps allowed.
    #[serde(default, deserialize_with = "crate::number::count")]
    #[schemars(range(min = 0))]
    pub sequence: Option<i64>,
    /// Unix seconds.
    #[serde(default, deserialize_with = "crate::number::whole")]
    pub timestamp: Option<i64>,
    /// Our addition, to readers only: when the host took the result in, RFC 3339 with milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<String>,
    /// Beside `run.completed`: tokens and cost, as far as known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Object>,
    /// The runner's own `sequence`, once the host has numbered the result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runner_sequence: Option<i64>,
    #[serde(flatten)]
    pub extra: Object,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RawResult {
    pub run_id: String,
    #[serde(rename = "type")]
    pub kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Box<RawValue>>,
    #[serde(
        default,
        deserialize_with = "crate::number::count",
        skip_serializing_if = "Option::is_none"
    )]
    pub sequence: Option<i64>,
    #[serde(
        default,
        deserialize_with = "crate::number::whole",
        skip_serializing_if = "Option::is_none"
    )]
    pub timestamp: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Box<RawValue>>,
}

impl RawResult {
    /// Reads one result as it stands on the wire.
    pub fn parse(json: &str) -> serde_json::Result<Self> {
        object::from_str(json)
    }
}

/// The names of the stable result types, and of those the host writes itself.
pub mod kind {
    pub const MESSAGE_DELTA: &str = "message.delta";
    pub const MESSAGE_COMPLETED: &str = "message.completed";
    pub const TOOL_CALL_STARTED: &str = "tool.call.started";
    pub const TOOL_CALL_COMPLETED: &str = "tool.call.completed";
    pub const ARTIFACT_CREATED: &str = "artifact.created";
    pub const STATE_UPDATED: &str = "state.updated";
    pub const ACTION_REQUESTED: &str = "action.requested";
    pub const RUN_COMPLETED: &str = "run.completed";
    pub const RUN_FAILED: &str = "run.failed";
    /// Written by the host only: a new attempt begins, forget what was folded.
    pub const RUN_RESTARTED: &str = "run.restarted";

    /// A line of a LangBot runner's log: kept with the run, acted on by nobody.
    pub const PROCESSOR_LOG: &str = "processor.log";

    pub const STABLE: [&str; 9] = [
        MESSAGE_DELTA,
        MESSAGE_COMPLETED,
        TOOL_CALL_STARTED,
        TOOL_CALL_COMPLETED,
        ARTIFACT_CREATED,
        STATE_UPDATED,
        ACTION_REQUESTED,
        RUN_COMPLETED,
        RUN_FAILED,
    ];
}
