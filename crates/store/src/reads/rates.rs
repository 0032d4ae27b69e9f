//! Counters over time, summed per step.
//!
//! Invariant: sums of counted slots only: how many runs there were does not matter.

use crate::conditions::{approval_is_pending, delivery_is_open};
use crate::rates::{SPANS_MS, slot};
use crate::sql::{Dialect, Row, Tx};
use crate::{StoreError, params};
use greenroom_protocol::RunStatus;

/// A time range in steps of one length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Steps {
    /// When the first began; a whole number of slots.
    pub from_ms: i64,
    /// A whole number of slots.
    pub step_ms: i64,
}

impl Steps {
    /// The longest slots that the steps are made of.
    fn span_ms(self) -> i64 {
        let fits = |span: &i64| self.step_ms % span == 0;
        SPANS_MS.into_iter().rev().find(fits).unwrap_or(SPANS_MS[0])
    }
}

/// Runs of one status and one class of durations that ended in a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunRate {
    pub step: i64,
    pub status: String,
    pub grade: i64,
    pub runs: i64,
}

/// By step and class.
pub fn runs(tx: &mut dyn Tx, workspace: &str, steps: Steps) -> Result<Vec<RunRate>, StoreError> {
    let rows = tx.query(
        "SELECT (slot - ?3) / ?4, status, grade, CAST(SUM(runs) AS BIGINT) FROM run_rates
         WHERE workspace_id = ?1 AND span_ms = ?2 AND slot >= ?3
         GROUP BY 1, 2, 3 ORDER BY 1, 3, 2",
        params![workspace, steps.span_ms(), steps.from_ms, steps.step_ms],
    )?;
    let read = |mut row: Row| {
        let (step, status) = (row.int()?, row.text()?);
        Ok(RunRate { step, status, grade: row.int()?, runs: row.int()? })
    };
    rows.into_iter().map(read).collect()
}

/// Calls of one model that ended in a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelRate {
    pub step: i64,
    pub model: String,
    pub calls: i64,
    pub failed: i64,
    /// Calls with known token counts.
    pub with_usage: i64,
    pub input_tokens: i64,
    pub output_tokens: i64,
    /// Calls of known cost.
    pub priced: i64,
    pub cost_micro: i64,
    pub last_ok_at: Option<i64>,
    pub last_error_at: Option<i64>,
}

/// By step and model.
pub fn models(
    tx: &mut dyn Tx,
    workspace: &str,
    steps: Steps,
) -> Result<Vec<ModelRate>, StoreError> {
    let rows = tx.query(
        "SELECT (slot - ?3) / ?4, model, CAST(SUM(calls) AS BIGINT), CAST(SUM(failed) AS BIGINT),
             CAST(SUM(told) AS BIGINT), CAST(SUM(input_tokens) AS BIGINT),
             CAST(SUM(output_tokens) AS BIGINT), CAST(SUM(priced) AS BIGINT),
             CAST(SUM(cost_micro) AS BIGINT), MAX(last_ok_at), MAX(last_error_at)
         FROM model_rates WHERE workspace_id = ?1 AND span_ms = ?2 AND slot >= ?3
         GROUP BY 1, 2 ORDER BY 1, 2",
        params![workspace, steps.span_ms(), steps.from_ms, steps.step_ms],
    )?;
    let read = |mut row: Row| {
        Ok(ModelRate {
            step: row.int()?,
            model: row.text()?,
            calls: row.int()?,
            failed: row.int()?,
            with_usage: row.int()?,
            input_tokens: row.int()?,
            output_tokens: row.int()?,
            priced: row.int()?,
            cost_micro: row.int()?,
            last_ok_at: row.opt_int()?,
            last_error_at: row.opt_int()?,
        })
    };
    rows.into_iter().map(read).collect()
}

/// The error of the last failed call of a model at that time.
pub fn error_at(
    tx: &mut dyn Tx,
    workspace: &str,
    model: &str,
    at_ms: i64,
) -> Result<Option<String>, StoreError> {
    // Longer slots are kept longer.
    let [.., span] = SPANS_MS;
    let row = tx.query_opt(
        "SELECT last_error FROM model_rates
         WHERE workspace_id = ?1 AND span_ms = ?2 AND slot = ?3 AND model = ?4",
        params![workspace, span, slot(span, at_ms), model],
    )?;
    Ok(row.map(|mut row| row.opt_text()).transpose()?.flatten())
}

/// What is waiting.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Waiting {
    pub queued: i64,
    pub running: i64,
    pub approvals: i64,
    /// Of all workspaces, counted up to a bound.
    pub deliveries: i64,
}

/// `|| ''` keeps SQLite from scanning a workspace instead of the open rows.
pub fn waiting(tx: &mut dyn Tx, workspace: &str) -> Result<Waiting, StoreError> {
    let mut waiting = Waiting::default();
    let open = tx.query(
        "SELECT status, COUNT(*) FROM runs
         WHERE workspace_id || '' = ?1 AND finished_at IS NULL GROUP BY status",
        params![workspace],
    )?;
    for mut row in open {
        match RunStatus::parse(&row.text()?) {
            Some(RunStatus::Queued) => waiting.queued = row.int()?,
            _ => waiting.running = row.int()?,
        }
    }
    let mut count = |sql: &'static str, params: &[crate::sql::Value<'_>]| {
        let row = tx.query_opt(sql, params)?;
        row.map_or(Ok(0), |mut row| row.int())
    };
    waiting.approvals = count(
        concat!(
            "SELECT COUNT(*) FROM (SELECT 1 FROM approvals WHERE workspace_id || '' = ?1 AND ",
            approval_is_pending!(),
            " LIMIT 10000) AS few"
        ),
        params![workspace],
    )?;
    waiting.deliveries = count(
        concat!(
            "SELECT COUNT(*) FROM (SELECT 1 FROM outbox WHERE ",
            delivery_is_open!(),
            " LIMIT 10000) AS few"
        ),
        &[],
    )?;
    Ok(waiting)
}

/// Size of the database on disk.
pub fn database_bytes(tx: &mut dyn Tx) -> Result<i64, StoreError> {
    let sql = match tx.dialect() {
        Dialect::Sqlite => {
            "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()"
        }
        Dialect::Postgres => "SELECT pg_database_size(current_database())",
    };
    tx.query_opt(sql, &[])?.map_or(Ok(0), |mut row| row.int())
}
