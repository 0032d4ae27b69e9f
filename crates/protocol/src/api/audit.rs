//! An audit record as the API shows it: one per call of a runner.
//!
//! Invariant: names, sizes and times only; never what was asked or answered.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One call: who, what, how it ended, how much, when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AuditView {
    /// The run, or what a call without a live run claimed to be; null when it named none.
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
    /// As it was asked for; it need not exist.
    pub method: String,
    /// Such as a model, a tool, an artifact or a key.
    #[serde(default)]
    pub resource: Option<String>,
    #[serde(default)]
    pub scope: Option<String>,
    /// On whose word a tool was called: `agent` or `user`.
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
