//! What models took: the calls of a run, and sums of a day.

use crate::sql::Tx;
use crate::{StoreError, params};

/// One call of a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelCallRow {
    pub model: String,
    pub method: String,
    pub outcome: String,
    pub usage: Option<String>,
    pub cost_micro: Option<i64>,
    pub duration_ms: i64,
    pub created_at: i64,
}

/// The calls of a run, oldest first.
pub fn of_run(
    tx: &mut dyn Tx,
    workspace: &str,
    run_id: &str,
    limit: i64,
) -> Result<Vec<ModelCallRow>, StoreError> {
    let rows = tx.query(
        "SELECT model, method, outcome, usage, cost_micro, duration_ms, created_at FROM model_calls
         WHERE run_id = ?2 AND workspace_id || '' = ?1 ORDER BY id LIMIT ?3",
        params![workspace, run_id, limit],
    )?;
    rows.into_iter()
        .map(|mut row| {
            Ok(ModelCallRow {
                model: row.text()?,
                method: row.text()?,
                outcome: row.text()?,
                usage: row.opt_text()?,
                cost_micro: row.opt_int()?,
                duration_ms: row.int()?,
                created_at: row.int()?,
            })
        })
        .collect()
}

/// What the calls of a run took together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RunSpend {
    pub calls: i64,
    /// Calls whose cost is not known; they are not part of `cost_micro`.
    pub unpriced: i64,
    /// None where no call has known token counts.
    pub tokens: Option<i64>,
    pub cost_micro: Option<i64>,
    /// What budgets are held against: calls of unknown cost are part of it.
    pub charged_micro: i64,
}

pub fn sum_of_run(tx: &mut dyn Tx, workspace: &str, run_id: &str) -> Result<RunSpend, StoreError> {
    let rows = tx.query(
        "SELECT COUNT(*), COUNT(*) - COUNT(cost_micro), CAST(SUM(tokens) AS BIGINT),
             CAST(SUM(cost_micro) AS BIGINT), CAST(COALESCE(SUM(charged_micro), 0) AS BIGINT)
         FROM model_calls WHERE run_id = ?2 AND workspace_id || '' = ?1",
        params![workspace, run_id],
    )?;
    let Some(mut row) = rows.into_iter().next() else { return Ok(RunSpend::default()) };
    Ok(RunSpend {
        calls: row.int()?,
        unpriced: row.int()?,
        tokens: row.opt_int()?,
        cost_micro: row.opt_int()?,
        charged_micro: row.int()?,
    })
}

/// What the models of one agent took on a day.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpendRow {
    pub workspace_id: String,
    pub agent: String,
    pub model: String,
    pub calls: i64,
    /// Calls whose cost is not known.
    pub unpriced: i64,
    pub tokens: i64,
    pub cost_micro: i64,
}

/// Everything of one day, by workspace, agent and model.
pub fn of_day(tx: &mut dyn Tx, day: i64) -> Result<Vec<SpendRow>, StoreError> {
    let rows = tx.query(
        "SELECT workspace_id, agent, model, calls, unpriced, tokens, cost_micro FROM spend
         WHERE day = ?1 ORDER BY workspace_id, agent, model",
        params![day],
    )?;
    rows.into_iter()
        .map(|mut row| {
            Ok(SpendRow {
                workspace_id: row.text()?,
                agent: row.text()?,
                model: row.text()?,
                calls: row.int()?,
                unpriced: row.int()?,
                tokens: row.int()?,
                cost_micro: row.int()?,
            })
        })
        .collect()
}
