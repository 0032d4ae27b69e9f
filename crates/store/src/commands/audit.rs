//! Audit records, kept.
//!
//! Invariant: a record is committed with the outcome it tells of where there is one; records alone come in
//! batches. Every call is a fact of its own: handed in twice, it is kept twice.

use crate::audit::{AuditBatch, AuditRecord, pack};
use crate::sql::{Tx, prose};
use crate::{StoreError, params};

/// Records in one row at most, so that a page never has to read much more than it hands out.
const RECORDS_MAX: usize = 200;

#[derive(Debug, Clone)]
pub struct RecordAudit {
    pub batches: Vec<AuditBatch>,
}

impl RecordAudit {
    pub(super) fn execute(&self, tx: &mut dyn Tx) -> Result<bool, StoreError> {
        for batch in &self.batches {
            insert_audit(tx, &batch.workspace_id, batch.run_id.as_deref(), &batch.records)?;
        }
        Ok(!self.batches.is_empty())
    }
}

/// Keeps records within the transaction of what they tell of.
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
