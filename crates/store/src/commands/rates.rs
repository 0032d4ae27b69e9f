//! Counters of runs and model calls per time slot.
//!
//! Invariant: counted in the transaction of what is counted: exactly once.

use super::spend::{INTERRUPTED, RecordModelCall};
use crate::rates::{SPANS_MS, grade, slot};
use crate::sql::Tx;
use crate::{StoreError, params};
use greenroom_protocol::{ErrorCode, RunStatus};

/// Whether a model call with this outcome has failed; a cancelled one has not.
pub fn has_failed(outcome: &str) -> bool {
    outcome == INTERRUPTED || ErrorCode::ALL.iter().any(|code| code.as_str() == outcome)
}

/// Counts the end of a run.
pub(super) fn count_run(
    tx: &mut dyn Tx,
    workspace: &str,
    status: RunStatus,
    took_ms: i64,
    now_ms: i64,
) -> Result<(), StoreError> {
    let [short, middle, long] = SPANS_MS;
    tx.execute(
        "INSERT INTO run_rates (workspace_id, span_ms, slot, status, grade, runs)
         VALUES (?1, ?2, ?3, ?8, ?9, 1), (?1, ?4, ?5, ?8, ?9, 1), (?1, ?6, ?7, ?8, ?9, 1)
         ON CONFLICT (workspace_id, span_ms, slot, status, grade)
         DO UPDATE SET runs = run_rates.runs + 1",
        params![
            workspace,
            short,
            slot(short, now_ms),
            middle,
            slot(middle, now_ms),
            long,
            slot(long, now_ms),
            status,
            grade(took_ms)
        ],
    )?;
    Ok(())
}

/// Counts a model call.
pub(super) fn count_call(tx: &mut dyn Tx, call: &RecordModelCall) -> Result<(), StoreError> {
    let usage = call.usage.as_deref().and_then(|usage| serde_json::from_str(usage).ok());
    let usage: serde_json::Value = usage.unwrap_or_default();
    let tokens = |key: &str| usage[key].as_i64().filter(|tokens| *tokens >= 0);
    let (input, output) = (tokens("input_tokens"), tokens("output_tokens"));
    let has_usage = input.or(output).is_some();
    let failed = has_failed(&call.outcome);
    let ended_at = call.now_ms.saturating_add(call.duration_ms);
    let ok_at = (!failed).then_some(ended_at);
    let error = failed.then_some(call.outcome.as_str());
    for span in SPANS_MS {
        tx.execute(
            "INSERT INTO model_rates (workspace_id, span_ms, slot, model, calls, failed, told,
                 input_tokens, output_tokens, priced, cost_micro, last_ok_at, last_error,
                 last_error_at)
             VALUES (?1, ?2, ?3, ?4, 1, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)
             ON CONFLICT (workspace_id, span_ms, slot, model) DO UPDATE SET
                 calls = model_rates.calls + 1, failed = model_rates.failed + excluded.failed,
                 told = model_rates.told + excluded.told,
                 input_tokens = model_rates.input_tokens + excluded.input_tokens,
                 output_tokens = model_rates.output_tokens + excluded.output_tokens,
                 priced = model_rates.priced + excluded.priced,
                 cost_micro = model_rates.cost_micro + excluded.cost_micro,
                 last_ok_at = COALESCE(excluded.last_ok_at, model_rates.last_ok_at),
                 last_error = COALESCE(excluded.last_error, model_rates.last_error),
                 last_error_at = COALESCE(excluded.last_error_at, model_rates.last_error_at)",
            params![
                &call.workspace_id,
                span,
                slot(span, ended_at),
                &call.model,
                i64::from(failed),
                i64::from(has_usage),
                input.unwrap_or(0),
                output.unwrap_or(0),
                i64::from(call.cost_micro.is_some()),
                call.cost_micro.unwrap_or(0),
                ok_at,
                error,
                error.map(|_| ended_at)
            ],
        )?;
    }
    Ok(())
}
