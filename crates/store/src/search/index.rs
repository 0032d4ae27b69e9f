//! The index of terms in each database: insertion, removal and proposals.
//!
//! Invariant: an item up to the mark is in the index, or has no terms; the mark moves in the transaction that adds
//! the entries before it, and the newest items come first. SQLite keeps terms in FTS5; PostgreSQL as an array with a
//! GIN index (`ranges.rs`).

use super::fold::fold;
use super::ranges;
use super::terms::{BLOCK_SHIFTS, Entry, Terms, Text, block, entry_columns};
use crate::sql::{Dialect, Tx};
use crate::{StoreError, params};
use std::fmt::Write;

/// The mark's name in `meta`.
pub(crate) const UPTO: &str = "search_upto";

/// Bytes of text that one step puts into the index.
const STEP_BYTES: i64 = 256 * 1024;
/// Alternatives that one condition may have.
const ANY_MAX: usize = 256;
/// Conditions with alternatives.
const ANY_CONDITIONS_MAX: usize = 3;

/// The terms that an item must have: all of `all`, and one of each group.
#[derive(Debug, Clone, Default)]
pub(crate) struct TermQuery {
    pub(crate) all: Vec<u32>,
    pub(super) any: Vec<Vec<u32>>,
    /// The shortest range of item numbers worth searching: shorter ones hold too few matches.
    pub(crate) reach: i64,
    pub(crate) range: Option<TimeRange>,
}

/// The item numbers that hold most items of a time range.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TimeRange {
    /// The number after the last; none at the end of the index.
    pub(crate) end: Option<i64>,
    /// About how many items there are.
    pub(super) items: i64,
}

impl TermQuery {
    /// Requires one of these terms, unless there are too many to help.
    pub(crate) fn any_of(&mut self, group: Vec<u32>) {
        if let [one] = group[..] {
            self.all.push(one);
        } else if (1..=ANY_MAX).contains(&group.len()) && self.any.len() < ANY_CONDITIONS_MAX {
            self.any.push(group);
        }
    }
}

/// How many proposals are wanted at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Count {
    Few,
    Page,
    Many,
}

impl Count {
    pub(crate) fn limit(self) -> usize {
        match self {
            Count::Few => 16,
            Count::Page => 128,
            Count::Many => 1024,
        }
    }
}

/// The terms of one item, ready for the index.
#[derive(Debug, Clone)]
pub struct IndexEntry {
    pub(crate) id: i64,
    pub(crate) terms: Vec<u32>,
}

/// The last indexed item.
pub(crate) fn upto(tx: &mut dyn Tx) -> Result<i64, StoreError> {
    let row = tx.query_opt("SELECT value FROM meta WHERE name = ?1", params![UPTO])?;
    let text = row.map(|mut row| row.text()).transpose()?.unwrap_or_default();
    text.parse().map_err(|_| StoreError::Refused(format!("`{text}` is not an item number")))
}

pub(crate) fn newest(tx: &mut dyn Tx) -> Result<i64, StoreError> {
    let row = tx.query_opt("SELECT MAX(id) FROM transcript", &[])?;
    Ok(row.map(|mut row| row.opt_int()).transpose()?.flatten().unwrap_or(0))
}

/// Moves the mark if it has not changed since the caller read it.
pub(crate) fn move_upto(tx: &mut dyn Tx, from: i64, to: i64) -> Result<bool, StoreError> {
    let changed = tx.execute(
        "UPDATE meta SET value = ?3 WHERE name = ?1 AND value = ?2",
        params![UPTO, from.to_string().as_str(), to.to_string().as_str()],
    )?;
    Ok(changed == 1)
}

/// Items after the mark with their terms, as many as fit into one step, and the new mark.
pub(crate) fn next_entries(
    tx: &mut dyn Tx,
    upto: i64,
    limit: i64,
) -> Result<(Vec<IndexEntry>, i64), StoreError> {
    let rows = tx.query(
        concat!(
            "SELECT ",
            entry_columns!(),
            " FROM transcript t WHERE t.id > ?1 ORDER BY t.id LIMIT ?2"
        ),
        params![upto, limit],
    )?;
    let (mut entries, mut reached, mut bytes) = (Vec::new(), upto, 0);
    for row in rows {
        let entry = Entry::read(row)?;
        bytes += entry.bytes();
        if bytes > STEP_BYTES && reached > upto {
            break;
        }
        reached = entry.id;
        let Some(text) = text_of(tx, &entry)? else { continue };
        let mut terms = Vec::new();
        Terms { workspace: &entry.workspace_id }.of_item(&fold(&text), &mut terms);
        if terms.is_empty() {
            continue;
        }
        entry.filters(&mut terms);
        if tx.dialect() == Dialect::Postgres {
            terms.extend((0..BLOCK_SHIFTS.len()).map(|level| block(level, entry.id)));
        }
        terms.sort_unstable();
        terms.dedup();
        entries.push(IndexEntry { id: entry.id, terms });
    }
    Ok((entries, reached))
}

/// The text of an item, read from the transcript if it is long.
pub(crate) fn text_of(tx: &mut dyn Tx, entry: &Entry) -> Result<Option<String>, StoreError> {
    match &entry.text {
        Text::None => Ok(None),
        Text::Here(text) => Ok(Some(text.clone())),
        Text::Long { .. } => {
            let row =
                tx.query_opt("SELECT text FROM transcript WHERE id = ?1", params![entry.id])?;
            Ok(row.map(|mut row| row.opt_text()).transpose()?.flatten())
        }
    }
}

/// Adds items to the index unless they were removed.
pub(crate) fn insert(tx: &mut dyn Tx, entries: &[IndexEntry]) -> Result<(), StoreError> {
    if entries.is_empty() {
        return Ok(());
    }
    match tx.dialect() {
        Dialect::Sqlite => {
            for entry in entries {
                let mut text = String::with_capacity(entry.terms.len() * 9);
                for term in &entry.terms {
                    let _ = write!(text, "{term:08x} ");
                }
                tx.execute(
                    "INSERT INTO search (rowid, terms)
                     SELECT ?1, ?2 WHERE EXISTS (SELECT 1 FROM transcript WHERE id = ?1)",
                    params![entry.id, &text],
                )?;
            }
        }
        Dialect::Postgres => {
            let lines: Vec<String> = entries
                .iter()
                .map(|entry| format!("{} {}", entry.id, array(&entry.terms)))
                .collect();
            tx.execute(
                "INSERT INTO search (id, terms)
                 SELECT t.id, CAST(split_part(line, ' ', 2) AS INTEGER[])
                 FROM unnest(string_to_array(CAST(?1 AS TEXT), chr(10))) AS line
                 JOIN transcript t ON t.id = CAST(split_part(line, ' ', 1) AS BIGINT)",
                params![lines.join("\n").as_str()],
            )?;
        }
    }
    Ok(())
}

/// Flushes the pending list of the GIN index. Runs on a reader.
pub(crate) fn settle(tx: &mut dyn Tx) -> Result<(), StoreError> {
    if tx.dialect() == Dialect::Postgres {
        tx.query("SELECT gin_clean_pending_list('search_by_term')", &[])?;
    }
    Ok(())
}

/// Removes an item from the index.
pub(crate) fn remove(tx: &mut dyn Tx, id: i64) -> Result<(), StoreError> {
    match tx.dialect() {
        Dialect::Sqlite => tx.execute("DELETE FROM search WHERE rowid = ?1", params![id])?,
        Dialect::Postgres => tx.execute("DELETE FROM search WHERE id = ?1", params![id])?,
    };
    Ok(())
}

/// The newest indexed items before a number that have the terms.
pub(crate) fn propose(
    tx: &mut dyn Tx,
    workspace: &str,
    wanted: &TermQuery,
    before: i64,
    count: Count,
) -> Result<Vec<Entry>, StoreError> {
    let rows = match tx.dialect() {
        Dialect::Sqlite => tx.query(
            concat!(
                "SELECT ",
                entry_columns!(),
                " FROM search CROSS JOIN transcript t ON t.id = search.rowid
                  WHERE search MATCH ?1 AND search.rowid < ?2 AND t.workspace_id = ?3
                  ORDER BY search.rowid DESC LIMIT ?4"
            ),
            params![expression(wanted).as_str(), before, workspace, count.limit() as i64],
        )?,
        Dialect::Postgres => ranges::propose(tx, workspace, wanted, before, count)?,
    };
    rows.into_iter().map(Entry::read).collect()
}

/// For each term, a few of the newest indexed items before a number that have it and the others.
pub(crate) fn propose_each(
    tx: &mut dyn Tx,
    workspace: &str,
    wanted: &TermQuery,
    terms: &[u32],
    before: i64,
) -> Result<Vec<Vec<Entry>>, StoreError> {
    if tx.dialect() == Dialect::Postgres {
        return ranges::propose_each(tx, workspace, wanted, terms, before);
    }
    let one = |term: &u32| {
        let mut wanted = wanted.clone();
        wanted.all.push(*term);
        propose(tx, workspace, &wanted, before, Count::Few)
    };
    terms.iter().map(one).collect()
}

/// Finds the item numbers of a time range, where that makes a search faster.
pub(crate) fn locate_range(
    tx: &mut dyn Tx,
    upto: i64,
    after_ms: i64,
    before_ms: i64,
) -> Result<Option<TimeRange>, StoreError> {
    match tx.dialect() {
        // FTS5 lists are in order, so a search can start anywhere.
        Dialect::Sqlite => Ok(None),
        Dialect::Postgres => ranges::locate_range(tx, upto, after_ms, before_ms).map(Some),
    }
}

/// The query for FTS5.
fn expression(wanted: &TermQuery) -> String {
    let quote = |term: &u32| format!("\"{term:08x}\"");
    let mut all: Vec<String> = wanted.all.iter().map(quote).collect();
    for group in &wanted.any {
        let group: Vec<String> = group.iter().map(quote).collect();
        all.push(format!("({})", group.join(" OR ")));
    }
    all.join(" AND ")
}

/// Terms as PostgreSQL writes an array, in its signed numbers.
pub(super) fn array(terms: &[u32]) -> String {
    let mut text = String::with_capacity(terms.len() * 11 + 2);
    text.push('{');
    for (n, term) in terms.iter().enumerate() {
        let comma = if n == 0 { "" } else { "," };
        let _ = write!(text, "{comma}{}", term.cast_signed());
    }
    text.push('}');
    text
}
