//! What calls of models took: one row per call, and sums per day and agent.
//!
//! Invariant: a sum is that of its rows since the day began; what is not known is not counted as nothing.

use crate::sql::Tx;
use crate::{StoreError, params};

/// One call of a model, as it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordModelCall {
    pub workspace_id: String,
    pub run_id: String,
    pub agent: String,
    pub model: String,
    pub method: &'static str,
    /// How it ended: a finish reason or an error code.
    pub outcome: String,
    /// Usage as JSON text, where the provider gave one.
    pub usage: Option<String>,
    /// In and out together, where they are known.
    pub tokens: Option<i64>,
    /// Millionths of a dollar, where they are known.
    pub cost_micro: Option<i64>,
    /// What it counts as in the sums, which budgets are held against.
    pub charged_micro: i64,
    pub duration_ms: i64,
    /// Days since 1970, UTC.
    pub day: i64,
    pub now_ms: i64,
}

impl RecordModelCall {
    pub(super) fn execute(&self, tx: &mut dyn Tx) -> Result<bool, StoreError> {
        tx.execute(
            "INSERT INTO model_calls (workspace_id, run_id, model, method, outcome, usage, tokens,
                 cost_micro, duration_ms, created_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
            params![
                &self.workspace_id,
                &self.run_id,
                &self.model,
                self.method,
                &self.outcome,
                &self.usage,
                self.tokens,
                self.cost_micro,
                self.duration_ms,
                self.now_ms
            ],
        )?;
        tx.execute(
            "INSERT INTO spend (workspace_id, day, agent, model, calls, unpriced, tokens, cost_micro)
             VALUES (?1, ?2, ?3, ?4, 1, ?5, ?6, ?7)
             ON CONFLICT (workspace_id, day, agent, model) DO UPDATE SET
                 calls = spend.calls + 1, unpriced = spend.unpriced + excluded.unpriced,
                 tokens = spend.tokens + excluded.tokens,
                 cost_micro = spend.cost_micro + excluded.cost_micro",
            params![
                &self.workspace_id,
                self.day,
                &self.agent,
                &self.model,
                i64::from(self.cost_micro.is_none()),
                self.tokens.unwrap_or(0),
                self.charged_micro
            ],
        )?;
        Ok(true)
    }
}
