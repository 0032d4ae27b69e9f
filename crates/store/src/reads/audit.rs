//! Audit records, newest first.
//!
//! Invariant: a page uses an index and reads a bounded number of rows: where a filter matches few records it may
//! hold fewer than requested, and says where to continue.

use crate::audit::{AuditRecord, is_denial, unpack};
use crate::sql::{Row, Tx};
use crate::{StoreError, params};

/// Rows that are read at once, and for one page at most.
const ROWS_AT_ONCE: i64 = 32;
const ROWS_MAX: i64 = 1024;

#[derive(Debug, Clone, Default)]
pub struct AuditFilter {
    pub run_id: Option<String>,
    pub method: Option<String>,
    pub code: Option<String>,
    /// Refused calls only.
    pub denied_only: bool,
}

impl AuditFilter {
    fn fits(&self, record: &AuditRecord) -> bool {
        self.method.as_ref().is_none_or(|method| *method == record.method)
            && self.code.as_ref().is_none_or(|code| *code == record.code)
            && (!self.denied_only || record.is_denial())
    }

    /// Denials that a row must hold to be of use.
    fn denials_min(&self) -> i64 {
        i64::from(self.denied_only || self.code.as_deref().is_some_and(is_denial))
    }
}

/// The position of a record: its row, and its index within.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuditPosition {
    pub id: i64,
    pub index: i64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditEntry {
    pub run_id: Option<String>,
    pub record: AuditRecord,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuditPage {
    pub entries: Vec<AuditEntry>,
    /// Hand it in as `before` to go on; nothing when all have been seen.
    pub next: Option<AuditPosition>,
}

/// The records before a position, or the newest.
pub fn page(
    tx: &mut dyn Tx,
    workspace: &str,
    filter: &AuditFilter,
    before: Option<AuditPosition>,
    limit: usize,
) -> Result<AuditPage, StoreError> {
    let mut page = AuditPage::default();
    let mut before = before.unwrap_or(AuditPosition { id: i64::MAX, index: 0 });
    for _ in 0..ROWS_MAX / ROWS_AT_ONCE {
        let rows = rows_up_to(tx, workspace, filter, before.id)?;
        let is_last = i64::try_from(rows.len()).is_ok_and(|found| found < ROWS_AT_ONCE);
        for row in rows {
            let (id, run_id, records) = read(row)?;
            let seen = if id == before.id { before.index } else { i64::MAX };
            for (index, record) in (0..seen).zip(records).collect::<Vec<_>>().into_iter().rev() {
                if !filter.fits(&record) {
                    continue;
                }
                if page.entries.len() == limit {
                    page.next = Some(AuditPosition { id, index: index + 1 });
                    return Ok(page);
                }
                page.entries.push(AuditEntry { run_id: run_id.clone(), record });
            }
            before = AuditPosition { id, index: 0 };
        }
        if is_last {
            return Ok(page);
        }
    }
    page.next = Some(before);
    Ok(page)
}

/// Whether an earlier host left calls open.
pub fn has_open(tx: &mut dyn Tx) -> Result<bool, StoreError> {
    Ok(tx.query_opt("SELECT 1 FROM open_calls LIMIT 1", &[])?.is_some())
}

fn rows_up_to(
    tx: &mut dyn Tx,
    workspace: &str,
    filter: &AuditFilter,
    id: i64,
) -> Result<Vec<Row>, StoreError> {
    match (&filter.run_id, filter.denials_min()) {
        (Some(run_id), denials_min) => tx.query(
            "SELECT id, run_id, body FROM audit
             WHERE workspace_id = ?1 AND run_id = ?2 AND id <= ?3 AND denials >= ?4
             ORDER BY id DESC LIMIT ?5",
            params![workspace, run_id, id, denials_min, ROWS_AT_ONCE],
        ),
        // `|| ''` lets SQLite go down the table itself instead of sorting an index of the workspace.
        (None, 0) => tx.query(
            "SELECT id, run_id, body FROM audit WHERE workspace_id || '' = ?1 AND id <= ?2
             ORDER BY id DESC LIMIT ?3",
            params![workspace, id, ROWS_AT_ONCE],
        ),
        (None, _) => tx.query(
            "SELECT id, run_id, body FROM audit
             WHERE workspace_id = ?1 AND id <= ?2 AND denials > 0 ORDER BY id DESC LIMIT ?3",
            params![workspace, id, ROWS_AT_ONCE],
        ),
    }
}

fn read(mut row: Row) -> Result<(i64, Option<String>, Vec<AuditRecord>), StoreError> {
    Ok((row.int()?, row.opt_text()?, unpack(&row.text()?)?))
}
