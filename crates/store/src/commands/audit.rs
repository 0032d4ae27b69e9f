//! Audit records, kept.
//!
//! Invariant: a record is committed with its outcome where there is one; records alone come in
//! batches. Every call is a fact of its own: handed in twice, it is kept twice. A call is open or has its
//! record, never both and never neither.

use super::Command;
use crate::audit::{AuditBatch, AuditRecord, FAILED, OpenCall, pack, unpack};
use crate::sql::{Row, Tx, prose};
use crate::{StoreError, params};

/// Records in one row at most, so that a page never has to read much more than it hands out.
const RECORDS_MAX: usize = 200;

#[derive(Debug, Clone)]
pub struct RecordAudit {
    pub batches: Vec<AuditBatch>,
}

impl Command for RecordAudit {
    type Outcome = ();

    fn execute(&self, tx: &mut dyn Tx) -> Result<(), StoreError> {
        for batch in &self.batches {
            insert_audit(tx, &batch.workspace_id, batch.run_id.as_deref(), &batch.records)?;
            for call_id in &batch.closes {
                close(tx, &batch.workspace_id, call_id)?;
            }
        }
        Ok(())
    }
}

/// Records calls that an earlier host left open; to be executed before the first call.
#[derive(Debug, Clone)]
pub struct RecordInterrupted {
    pub calls_max: i64,
    pub now_ms: i64,
}

impl Command for RecordInterrupted {
    type Outcome = bool;

    /// False when there was none.
    fn execute(&self, tx: &mut dyn Tx) -> Result<bool, StoreError> {
        let rows = tx.query(
            "SELECT workspace_id, call_id, run_id, body FROM open_calls
             ORDER BY workspace_id, call_id LIMIT ?1",
            params![self.calls_max],
        )?;
        let found = !rows.is_empty();
        for row in rows {
            let (workspace, call_id, run_id, mut records) = read_open(row)?;
            for record in &mut records {
                record.code = FAILED.to_owned();
                let took_ms = self.now_ms.saturating_sub(record.at_ms).max(0);
                record.duration_us = took_ms.saturating_mul(1_000);
            }
            insert_audit(tx, &workspace, Some(&run_id), &records)?;
            close(tx, &workspace, &call_id)?;
        }
        Ok(found)
    }
}

fn read_open(mut row: Row) -> Result<(String, String, String, Vec<AuditRecord>), StoreError> {
    Ok((row.text()?, row.text()?, row.text()?, unpack(&row.text()?)?))
}

/// Keeps a call open, in the transaction of what it does.
pub(super) fn open(
    tx: &mut dyn Tx,
    (workspace, run_id): (&str, &str),
    call: &OpenCall,
) -> Result<(), StoreError> {
    tx.execute(
        "INSERT INTO open_calls (workspace_id, call_id, run_id, body) VALUES (?1, ?2, ?3, ?4)
         ON CONFLICT (workspace_id, call_id) DO NOTHING",
        params![workspace, &call.call_id, run_id, &pack(std::slice::from_ref(&call.record))?],
    )?;
    Ok(())
}

fn close(tx: &mut dyn Tx, workspace: &str, call_id: &str) -> Result<(), StoreError> {
    tx.execute(
        "DELETE FROM open_calls WHERE workspace_id = ?1 AND call_id = ?2",
        params![workspace, call_id],
    )?;
    Ok(())
}

/// Stores records in the transaction of what they describe.
pub(super) fn insert_audit(
    tx: &mut dyn Tx,
    workspace: &str,
    run_id: Option<&str>,
    records: &[AuditRecord],
) -> Result<(), StoreError> {
    // What a caller claims may hold anything; it must not fail the record of the refusal.
    let (workspace, run_id) = (prose(workspace), run_id.map(prose));
    for records in records.chunks(RECORDS_MAX) {
        let denials = records.iter().filter(|record| record.is_denial()).count();
        let first_at = records.iter().map(|record| record.at_ms).min().unwrap_or(0);
        let last_at = records.iter().map(|record| record.at_ms).max().unwrap_or(0);
        tx.execute(
            "INSERT INTO audit (workspace_id, run_id, calls, denials, first_at, last_at, body)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            params![
                &workspace,
                &run_id,
                i64::try_from(records.len()).unwrap_or(i64::MAX),
                i64::try_from(denials).unwrap_or(i64::MAX),
                first_at,
                last_at,
                &pack(records)?,
            ],
        )?;
    }
    Ok(())
}

/// Keeps the record of a writing call together with its outcome, where it has one.
pub(super) fn insert_outcome(
    tx: &mut dyn Tx,
    (workspace, run_id): (&str, &str),
    record: Option<&AuditRecord>,
    code: &str,
) -> Result<(), StoreError> {
    let Some(record) = record else { return Ok(()) };
    insert_audit(tx, workspace, Some(run_id), &[record.ended(code)])
}
