//! One result of a run (seed 000 §7.1).
//!
//! `AgentRunResult` is for readers; `RawResult` is a result as received from a runner, with unparsed data, so that
//! deltas pass through the host without being rebuilt.
//!
//! Invariant: a parsed `sequence` is a non-negative integer.

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
    /// From a runner: its own counter. To a reader: the host's sequence number, increasing with gaps.
    #[serde(default, deserialize_with = "crate::number::count")]
    #[schemars(range(min = 0))]
    pub sequence: Option<i64>,
    /// Unix seconds.
    #[serde(default, deserialize_with = "crate::number::whole")]
    pub timestamp: Option<i64>,
    /// Our addition, to readers only: when the host received the result, RFC 3339 with milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<String>,
    /// With `run.completed`: tokens and cost, as far as known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Object>,
    /// The runner's own `sequence`.
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
    pub fn parse(json: &str) -> serde_json::Result<Self> {
        object::from_str(json)
    }
}

/// The stable result types, and those of the host itself.
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
    /// Written by the host only: a new attempt starts, discard earlier results.
    pub const RUN_RESTARTED: &str = "run.restarted";

    /// Shown to readers as they come and stored with the run; the host does not act on them.
    pub const REASONING_DELTA: &str = "reasoning.delta";
    pub const TOOL_CALL_DELTA: &str = "tool.call.delta";
    pub const STEP_STARTED: &str = "step.started";
    pub const STEP_FINISHED: &str = "step.finished";
    pub const ACTIVITY_SNAPSHOT: &str = "activity.snapshot";
    pub const ACTIVITY_DELTA: &str = "activity.delta";
    pub const SUBAGENT_STARTED: &str = "subagent.started";
    pub const SUBAGENT_FINISHED: &str = "subagent.finished";
    pub const SUBAGENT_FAILED: &str = "subagent.failed";
    pub const CLIENT_STATE_SNAPSHOT: &str = "client.state.snapshot";
    pub const CLIENT_STATE_DELTA: &str = "client.state.delta";
    /// The list of steps of a harness: stored with the run and shown, not acted on.
    pub const PLAN_UPDATED: &str = "plan.updated";

    /// A log line of a LangBot runner: stored with the run, not acted on.
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

    /// Types that are known and only shown.
    pub const SHOWN: [&str; 13] = [
        REASONING_DELTA,
        PLAN_UPDATED,
        TOOL_CALL_DELTA,
        STEP_STARTED,
        STEP_FINISHED,
        ACTIVITY_SNAPSHOT,
        ACTIVITY_DELTA,
        SUBAGENT_STARTED,
        SUBAGENT_FINISHED,
        SUBAGENT_FAILED,
        CLIENT_STATE_SNAPSHOT,
        CLIENT_STATE_DELTA,
        PROCESSOR_LOG,
    ];
}
