//! Retention: removes expired facts, a few rows per step.
//!
//! Invariant: what is still needed stays, however old: keys of events for ever, the body of an event and the
//! ledger of its run until the run has ended. A step examines a bounded number of rows; a mark in `meta`,
//! moved in the same transaction, says how far the log was gone through. A step repeated finds less to do.

use super::Command;
use super::transcript::remove_items;
use super::usage::{Growth, UsageKind, count};
use crate::sql::{Row, Tx};
use crate::types::{ApprovalStatus, DeliveryStatus};
use crate::{StoreError, params};
use std::collections::BTreeMap;

/// What has a retention time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retained {
    /// Bodies of events; their keys stay and reject a second event.
    Events,
    /// Items of transcripts, with their entries in the search index.
    Transcript,
    /// Results, diagnostics, settled deliveries and answered approvals of ended runs; the run stays.
    Ledger,
    Audit,
    /// Expired state: `before_ms` is now.
    ExpiredState,
    /// Counters in slots of this length.
    Rates {
        span_ms: i64,
    },
}

/// One step.
#[derive(Debug, Clone, Copy)]
pub struct Collect {
    pub what: Retained,
    /// Rows older than this are removed.
    pub before_ms: i64,
    /// Rows that the step examines.
    pub rows_max: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Collected {
    /// Rows that were removed or emptied.
    pub rows: u64,
    /// Another step would find something to do.
    pub has_more: bool,
}

impl Command for Collect {
    type Outcome = Collected;

    fn execute(&self, tx: &mut dyn Tx) -> Result<Collected, StoreError> {
        match self.what {
            Retained::Events => self.events(tx),
            Retained::Transcript => self.transcript(tx),
            Retained::Ledger => self.ledger(tx),
            Retained::Audit => self.audit(tx),
            Retained::ExpiredState => self.expired_state(tx),
            Retained::Rates { span_ms } => self.rates(tx, span_ms),
        }
    }
}

impl Collect {
    fn events(&self, tx: &mut dyn Tx) -> Result<Collected, StoreError> {
        let span = self.settled(tx, EVENTS_MARK)?;
        let rows = tx.execute(
            "UPDATE events SET body = NULL WHERE seq > ?1 AND seq <= ?2 AND body IS NOT NULL",
            params![span.after, span.upto],
        )?;
        span.pass(tx, EVENTS_MARK)?;
        Ok(Collected { rows, has_more: span.has_more })
    }

    fn ledger(&self, tx: &mut dyn Tx) -> Result<Collected, StoreError> {
        let span = self.settled(tx, LEDGER_MARK)?;
        if span.upto == span.after {
            return Ok(Collected { rows: 0, has_more: false });
        }
        let mut rows = tx.execute(
            "DELETE FROM results WHERE (run_id, first_seq) IN (
                 SELECT results.run_id, results.first_seq FROM events
                 JOIN results ON results.run_id = events.run_id
                 WHERE events.seq > ?1 AND events.seq <= ?2 LIMIT ?3)",
            params![span.after, span.upto, self.rows_max],
        )?;
        if self.is_full(rows) {
            return Ok(Collected { rows, has_more: true });
        }
        rows += tx.execute(
            "DELETE FROM diagnostics WHERE run_id IN (
                 SELECT run_id FROM events WHERE seq > ?1 AND seq <= ?2)",
            params![span.after, span.upto],
        )?;
        rows += tx.execute(
            "DELETE FROM outbox WHERE status NOT IN (?3, ?4) AND run_id IN (
                 SELECT run_id FROM events WHERE seq > ?1 AND seq <= ?2)",
            params![span.after, span.upto, DeliveryStatus::Pending, DeliveryStatus::Claimed],
        )?;
        rows += tx.execute(
            "DELETE FROM approvals WHERE status <> ?3 AND run_id IN (
                 SELECT run_id FROM events WHERE seq > ?1 AND seq <= ?2)",
            params![span.after, span.upto, ApprovalStatus::Pending],
        )?;
        span.pass(tx, LEDGER_MARK)?;
        Ok(Collected { rows, has_more: span.has_more })
    }

    fn transcript(&self, tx: &mut dyn Tx) -> Result<Collected, StoreError> {
        let found = tx.query(
            "SELECT id FROM (SELECT id, created_at FROM transcript ORDER BY id LIMIT ?2) AS oldest
             WHERE created_at < ?1",
            params![self.before_ms, self.rows_max],
        )?;
        let ids = found.into_iter().map(|mut row| row.int()).collect::<Result<Vec<_>, _>>()?;
        let rows = if ids.is_empty() { 0 } else { remove_items(tx, &ids)? };
        Ok(Collected { rows, has_more: self.is_full(rows) })
    }

    fn audit(&self, tx: &mut dyn Tx) -> Result<Collected, StoreError> {
        let rows = tx.execute(
            "DELETE FROM audit WHERE last_at < ?1
               AND id IN (SELECT id FROM audit ORDER BY id LIMIT ?2)",
            params![self.before_ms, self.rows_max],
        )?;
        Ok(Collected { rows, has_more: self.is_full(rows) })
    }

    fn expired_state(&self, tx: &mut dyn Tx) -> Result<Collected, StoreError> {
        let gone = tx.query(
            "DELETE FROM state WHERE (workspace_id, owner, name) IN (
                 SELECT workspace_id, owner, name FROM state
                 WHERE expires_at IS NOT NULL AND expires_at <= ?1
                 ORDER BY expires_at LIMIT ?2)
             RETURNING workspace_id, owner, size",
            params![self.before_ms, self.rows_max],
        )?;
        let rows = gone.len() as u64;
        let mut owners: BTreeMap<(String, String), Growth> = BTreeMap::new();
        for mut row in gone {
            let owner = (row.text()?, row.text()?);
            let growth = owners.entry(owner).or_insert(Growth { bytes: 0, entries: 0 });
            growth.bytes -= row.int()?;
            growth.entries -= 1;
        }
        for ((workspace, owner), growth) in &owners {
            count(tx, UsageKind::State, (workspace, owner), *growth)?;
        }
        Ok(Collected { rows, has_more: self.is_full(rows) })
    }

    fn rates(&self, tx: &mut dyn Tx, span_ms: i64) -> Result<Collected, StoreError> {
        let runs = tx.execute(
            "DELETE FROM run_rates WHERE (workspace_id, span_ms, slot, status, grade) IN (
                 SELECT workspace_id, span_ms, slot, status, grade FROM run_rates
                 WHERE span_ms = ?1 AND slot < ?2 ORDER BY slot LIMIT ?3)",
            params![span_ms, self.before_ms, self.rows_max],
        )?;
        let calls = tx.execute(
            "DELETE FROM model_rates WHERE (workspace_id, span_ms, slot, model) IN (
                 SELECT workspace_id, span_ms, slot, model FROM model_rates
                 WHERE span_ms = ?1 AND slot < ?2 ORDER BY slot LIMIT ?3)",
            params![span_ms, self.before_ms, self.rows_max],
        )?;
        Ok(Collected { rows: runs + calls, has_more: self.is_full(runs) || self.is_full(calls) })
    }

    fn is_full(&self, rows: u64) -> bool {
        i64::try_from(rows).is_ok_and(|rows| rows >= self.rows_max)
    }

    /// The next events of the log that are old enough and whose runs have ended, up to the first that is not.
    fn settled(&self, tx: &mut dyn Tx, mark: &str) -> Result<Span, StoreError> {
        let after = read_mark(tx, mark)?;
        let rows = tx.query(
            "SELECT events.seq, events.created_at, runs.status, runs.finished_at FROM events
             LEFT JOIN runs ON runs.workspace_id = events.workspace_id
               AND runs.run_id = events.run_id
             WHERE events.seq > ?1 ORDER BY events.seq LIMIT ?2",
            params![after, self.rows_max],
        )?;
        let is_last = i64::try_from(rows.len()).is_ok_and(|found| found < self.rows_max);
        let mut span = Span { after, upto: after, has_more: !is_last };
        for row in rows {
            let (seq, last_at) = settled_at(row)?;
            if last_at.is_none_or(|at| at >= self.before_ms) {
                span.has_more = false;
                break;
            }
            span.upto = seq;
        }
        Ok(span)
    }
}

const EVENTS_MARK: &str = "collected_events";
const LEDGER_MARK: &str = "collected_ledger";

/// A range of the event log.
struct Span {
    after: i64,
    upto: i64,
    has_more: bool,
}

impl Span {
    fn pass(&self, tx: &mut dyn Tx, mark: &str) -> Result<(), StoreError> {
        if self.upto == self.after {
            return Ok(());
        }
        tx.execute(
            "INSERT INTO meta (name, value) VALUES (?1, ?2)
             ON CONFLICT (name) DO UPDATE SET value = excluded.value",
            params![mark, self.upto.to_string().as_str()],
        )?;
        Ok(())
    }
}

/// When the event and its run were done; none while the run is open.
fn settled_at(mut row: Row) -> Result<(i64, Option<i64>), StoreError> {
    let (seq, created_at) = (row.int()?, row.int()?);
    let (status, finished_at) = (row.opt_text()?, row.opt_int()?);
    let at = match status {
        Some(_) => finished_at.map(|finished_at| finished_at.max(created_at)),
        None => Some(created_at),
    };
    Ok((seq, at))
}

fn read_mark(tx: &mut dyn Tx, mark: &str) -> Result<i64, StoreError> {
    let row = tx.query_opt("SELECT value FROM meta WHERE name = ?1", params![mark])?;
    let Some(mut row) = row else { return Ok(0) };
    let text = row.text()?;
    text.parse().map_err(|_| StoreError::Refused(format!("`{text}` is not a position in the log")))
}
