//! A run's stored results from any number on.

use crate::chunk::decode;
use crate::sql::Tx;
use crate::types::ResultRecord;
use crate::{StoreError, params};

/// Chunks fetched per round; a page is filled from as many as it takes.
const CHUNKS_PER_ROUND: i64 = 16;

/// Up to `limit` results with a number above `after`, in order.
pub fn page(
    tx: &mut dyn Tx,
    run_id: &str,
    after: i64,
    limit: usize,
) -> Result<Vec<ResultRecord>, StoreError> {
    let mut found = Vec::new();
    let mut after = after;
    loop {
        let rows = tx.query(
            "SELECT last_seq, body FROM results WHERE run_id = ?1 AND last_seq > ?2
             ORDER BY first_seq LIMIT ?3",
            params![run_id, after, CHUNKS_PER_ROUND],
        )?;
        if rows.is_empty() {
            return Ok(found);
        }
        for mut row in rows {
            let (last_seq, body) = (row.int()?, row.text()?);
            let newer = decode(&body)?.into_iter().filter(|record| record.sequence > after);
            found.extend(newer);
            after = last_seq;
            if found.len() >= limit {
                found.truncate(limit);
                return Ok(found);
            }
        }
    }
}

/// Whether a run has reasoning, a plan, activities, steps or sub-agents. A quotation mark within a text is escaped in
/// the stored form, so no text looks like their types.
pub fn shows_work(tx: &mut dyn Tx, run_id: &str) -> Result<bool, StoreError> {
    let found = tx.query(
        r#"SELECT 1 FROM results WHERE run_id = ?1 AND (body LIKE '%"k":"activity.%'
             OR body LIKE '%"k":"step.%' OR body LIKE '%"k":"subagent.%'
             OR body LIKE '%"k":"plan.%' OR body LIKE '%"k":"reasoning.%' OR body LIKE '%"reasoning"%') LIMIT 1"#,
        params![run_id],
    )?;
    Ok(!found.is_empty())
}
