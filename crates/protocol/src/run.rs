//! A run as the API shows it (CONTRACT §2).
//!
//! Invariant: a run that is not open has `finished_at`; a terminal status is final.

use crate::Object;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    Queued,
    Running,
    Completed,
    Failed,
    Cancelled,
    Timeout,
}

impl RunStatus {
    /// In the order of the declaration: `status as usize` is an index into it.
    pub const ALL: [RunStatus; 6] = [
        RunStatus::Queued,
        RunStatus::Running,
        RunStatus::Completed,
        RunStatus::Failed,
        RunStatus::Cancelled,
        RunStatus::Timeout,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            RunStatus::Queued => "queued",
            RunStatus::Running => "running",
            RunStatus::Completed => "completed",
            RunStatus::Failed => "failed",
            RunStatus::Cancelled => "cancelled",
            RunStatus::Timeout => "timeout",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == text)
    }

    /// The statuses that end a run.
    pub fn ended() -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(|status| !status.is_open())
    }

    pub fn is_open(self) -> bool {
        matches!(self, RunStatus::Queued | RunStatus::Running)
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunError {
    pub code: String,
    pub message: String,
    #[serde(default)]
    pub retryable: bool,
}

/// Total cost of a run's model calls.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ModelCalls {
    #[schemars(range(min = 0))]
    pub calls: i64,
    /// Calls of unknown cost: without reported usage, or with a model without a price. Not included in `cost_usd`.
    #[schemars(range(min = 0))]
    pub unpriced: i64,
    /// Input and output together, as far as reported; null if unknown.
    pub tokens: Option<i64>,
    /// US dollars at the configured prices; null if unknown.
    pub cost_usd: Option<f64>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunView {
    pub run_id: String,
    pub event_id: String,
    pub agent: String,
    pub runner_id: String,
    pub conversation_id: Option<String>,
    pub workspace_id: String,
    pub status: RunStatus,
    pub attempt: i64,
    /// RFC 3339, as are the next two.
    pub created_at: String,
    pub started_at: Option<String>,
    pub finished_at: Option<String>,
    pub error: Option<RunError>,
    pub usage: Option<Object>,
    pub last_sequence: i64,
    /// The runner's sandbox, e.g. `landlock:7`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub isolation: Option<String>,
    /// The run's model calls as counted by the host; not in lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_calls: Option<ModelCalls>,
    #[serde(flatten)]
    pub extra: Object,
}

/// How the runs of one conversation follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Queue {
    Serial,
    Parallel,
    /// Like serial, but messages go to the active run if it accepts them.
    Steer,
    Replace,
}

/// Which runs of its conversation a run with the queue `replace` cancels.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Replaces {
    /// Those of its own agent.
    #[default]
    Agent,
    /// All of them.
    Conversation,
}

impl Queue {
    pub fn as_str(self) -> &'static str {
        match self {
            Queue::Serial => "serial",
            Queue::Parallel => "parallel",
            Queue::Steer => "steer",
            Queue::Replace => "replace",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        [Queue::Serial, Queue::Parallel, Queue::Steer, Queue::Replace]
            .into_iter()
            .find(|queue| queue.as_str() == text)
    }
}

/// What happens to a run that a host shutdown or crash interrupted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnInterrupt {
    Fail,
    Retry,
}

impl OnInterrupt {
    pub fn as_str(self) -> &'static str {
        match self {
            OnInterrupt::Fail => "fail",
            OnInterrupt::Retry => "retry",
        }
    }
}
