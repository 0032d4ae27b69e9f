//! An audit record as the API shows it: one per runner call.
//!
//! Invariant: names, sizes and times only; never parameters or results.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One call: caller, method, outcome, size, time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AuditView {
    /// The run, or the run id that a call without a live run claimed; null if it had none.
    #[serde(default)]
    pub run_id: Option<String>,
    #[serde(default)]
    pub attempt: Option<i64>,
    #[serde(default)]
    pub agent: Option<String>,
    /// The runner's name in the configuration.
    pub runner: String,
    /// `author/name`.
    pub plugin: String,
    /// The id of the run's runner; null if the call had no live run.
    #[serde(default)]
    pub runner_id: Option<String>,
    /// As requested; it need not exist.
    pub method: String,
    /// Such as a model, a tool, an artifact or a key.
    #[serde(default)]
    pub resource: Option<String>,
    #[serde(default)]
    pub scope: Option<String>,
    /// Who decided on a tool call: `agent` or `user`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authority: Option<String>,
    /// `ok`, or the error code.
    pub code: String,
    pub bytes_in: i64,
    pub bytes_out: i64,
    pub duration_us: i64,
    /// RFC 3339.
    pub at: String,
}
