//! Cost of model calls: reserved before, one row per call after, and sums per day and agent.
//!
//! Invariant: a call is either open or has its one row; a sum is that of the day's rows; unknown usage is not
//! counted as 0.

use super::rates::count_call;
use super::{Command, Postponable};
use crate::sql::{Row, Tx};
use crate::{StoreError, params};
use std::borrow::Cow;

/// Outcome of a call whose host stopped.
pub const INTERRUPTED: &str = "interrupted";

/// A model call that is about to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BeginModelCall {
    pub workspace_id: String,
    pub call_id: String,
    pub run_id: String,
    pub agent: String,
    pub model: String,
    pub method: Cow<'static, str>,
    /// The charge, in millionths of a dollar, if its end is not recorded.
    pub reserved_micro: i64,
    /// Days since 1970, UTC.
    pub day: i64,
    pub epoch: i64,
    pub now_ms: i64,
}

/// Only for a call that costs nothing.
impl Postponable for BeginModelCall {}

impl Command for BeginModelCall {
    type Outcome = bool;

    fn execute(&self, tx: &mut dyn Tx) -> Result<bool, StoreError> {
        let inserted = tx.execute(
            "INSERT INTO model_calls_open (workspace_id, call_id, epoch, run_id, agent, model, method,
                 reserved_micro, day, created_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
             ON CONFLICT (workspace_id, call_id) DO NOTHING",
            params![
                &self.workspace_id,
                &self.call_id,
                self.epoch,
                &self.run_id,
                &self.agent,
                &self.model,
                &*self.method,
                self.reserved_micro,
                self.day,
                self.now_ms
            ],
        )?;
        Ok(inserted > 0)
    }
}

/// One model call, as it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordModelCall {
    pub workspace_id: String,
    /// As it was begun.
    pub call_id: String,
    pub run_id: String,
    pub agent: String,
    pub model: String,
    pub method: Cow<'static, str>,
    /// A finish reason or an error code.
    pub outcome: String,
    /// Usage as JSON text, where the provider gave one.
    pub usage: Option<String>,
    /// In and out together, where they are known.
    pub tokens: Option<i64>,
    /// Millionths of a dollar, where they are known.
    pub cost_micro: Option<i64>,
    /// What it counts as in the sums that budgets limit.
    pub charged_micro: i64,
    pub duration_ms: i64,
    /// Days since 1970, UTC.
    pub day: i64,
    pub now_ms: i64,
}

/// Only for a call that has cost nothing, or whose caller is gone.
impl Postponable for RecordModelCall {}

impl Command for RecordModelCall {
    type Outcome = bool;

    /// False when the call is not open: it was never begun, or has its row.
    fn execute(&self, tx: &mut dyn Tx) -> Result<bool, StoreError> {
        let closed = tx.execute(
            "DELETE FROM model_calls_open WHERE workspace_id = ?1 AND call_id = ?2",
            params![&self.workspace_id, &self.call_id],
        )?;
        if closed == 0 {
            return Ok(false);
        }
        tx.execute(
            "INSERT INTO model_calls (workspace_id, run_id, model, method, outcome, usage, tokens,
                 cost_micro, charged_micro, duration_ms, created_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
            params![
                &self.workspace_id,
                &self.run_id,
                &self.model,
                &*self.method,
                &self.outcome,
                &self.usage,
                self.tokens,
                self.cost_micro,
                self.charged_micro,
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
        count_call(tx, self)?;
        Ok(true)
    }
}

/// Charges calls that an earlier host left open with what was reserved for them; to be executed before the first
/// call. The provider may have charged for them, so a crash does not make a call cheaper.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChargeInterrupted {
    /// This start of the host: calls of earlier ones are charged.
    pub epoch: i64,
    pub calls_max: i64,
}

impl Command for ChargeInterrupted {
    type Outcome = bool;

    /// False when there was none.
    fn execute(&self, tx: &mut dyn Tx) -> Result<bool, StoreError> {
        let rows = tx.query(
            "SELECT workspace_id, call_id, run_id, agent, model, method, reserved_micro, day, created_at
             FROM model_calls_open WHERE epoch < ?1 ORDER BY workspace_id, call_id LIMIT ?2",
            params![self.epoch, self.calls_max],
        )?;
        let found = !rows.is_empty();
        for row in rows {
            interrupted(row)?.execute(tx)?;
        }
        Ok(found)
    }
}

fn interrupted(mut row: Row) -> Result<RecordModelCall, StoreError> {
    Ok(RecordModelCall {
        workspace_id: row.text()?,
        call_id: row.text()?,
        run_id: row.text()?,
        agent: row.text()?,
        model: row.text()?,
        method: row.text()?.into(),
        outcome: INTERRUPTED.to_owned(),
        usage: None,
        tokens: None,
        cost_micro: None,
        charged_micro: row.int()?,
        duration_ms: 0,
        day: row.int()?,
        now_ms: row.int()?,
    })
}
