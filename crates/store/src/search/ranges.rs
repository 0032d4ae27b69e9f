//! Searches PostgreSQL for the newest items first, although a GIN index has no order.
//!
//! Invariant: every item has, as terms, the ranges of item numbers it belongs to, short ones and long ones. The newest
//! ranges are searched first, each older and longer than the one before, so that few rows are read in vain, whether
//! matches are rare or common.

use super::index::{Count, TermQuery, TimeRange, array};
use super::terms::{BLOCK_SHIFTS, Entry, block, entry_columns};
use crate::sql::{Row, Tx, Value};
use crate::{StoreError, params};

/// Samples of the transcript's times, and then between two of them.
const SAMPLES: i64 = 32;

/// Ranges that are no longer needed are not read, since PostgreSQL executes a part of `UNION ALL` only when its rows
/// are fetched; nor are those that end before the first item. `+ 0` and `OFFSET 0` keep the planner from scanning the
/// items by number instead, and with the limit as a literal one plan fits all parameters.
macro_rules! ranges {
    ($all:literal, $limit:literal, $any:literal) => {
        concat!(
            "((",
            ranges!(@one $all, "?3", "AND terms && CAST(CAST(?11 AS TEXT) AS INTEGER[]) ", $any),
            ") UNION ALL (",
            ranges!(@one $all, "?4", "AND terms && CAST(CAST(?12 AS TEXT) AS INTEGER[]) ", $any),
            ") UNION ALL (",
            ranges!(@one $all, "?5", "AND terms && CAST(CAST(?13 AS TEXT) AS INTEGER[]) ", $any),
            ") UNION ALL (",
            ranges!(@one $all, "?6", "AND terms && CAST(CAST(?14 AS TEXT) AS INTEGER[]) ", $any),
            ") UNION ALL (",
            ranges!(@one $all, "?7", "AND terms && CAST(CAST(?15 AS TEXT) AS INTEGER[]) ", $any),
            ") UNION ALL (",
            ranges!(@one $all, "?8", "AND terms && CAST(CAST(?16 AS TEXT) AS INTEGER[]) ", $any),
            ") UNION ALL (",
            ranges!(@one $all, "?9", "AND terms && CAST(CAST(?17 AS TEXT) AS INTEGER[]) ", $any),
            ") UNION ALL (",
            ranges!(@one $all, "?10", "", $any),
            ") LIMIT ", $limit, ")"
        )
    };
    (@one $all:literal, $before:literal, $blocks:literal, $any:literal) => {
        concat!(
            "SELECT id FROM (SELECT id FROM search
                 WHERE terms @> CAST(", $all, " AS INTEGER[])
                   AND id + 0 < ", $before, " AND ", $before, " > 0 ", $blocks, $any,
            " OFFSET 0) part ORDER BY id DESC"
        )
    };
}

/// The newest items that have all terms.
macro_rules! of_all {
    ($limit:literal, $any:literal) => {
        concat!(
            "SELECT ",
            entry_columns!(),
            " FROM ",
            ranges!("CAST(?2 AS TEXT)", $limit, $any),
            " found JOIN transcript t ON t.id = found.id
             WHERE t.workspace_id = ?1 ORDER BY t.id DESC"
        )
    };
}

/// The newest items of each of several lists of terms.
macro_rules! of_each {
    ($limit:literal, $any:literal) => {
        concat!(
            "SELECT list.number, ",
            entry_columns!(),
            " FROM unnest(string_to_array(CAST(?2 AS TEXT), ';'))
                  WITH ORDINALITY AS list (terms, number)
              CROSS JOIN LATERAL ",
            ranges!("list.terms", $limit, $any),
            " found
              JOIN transcript t ON t.id = found.id
              WHERE t.workspace_id = ?1 ORDER BY list.number, t.id DESC"
        )
    };
}

/// The statement for a number of conditions with alternatives.
macro_rules! with_any {
    ($statement:ident, $limit:literal, $conditions:expr) => {
        match $conditions {
            0 => $statement!($limit, ""),
            1 => $statement!($limit, "AND terms && CAST(CAST(?18 AS TEXT) AS INTEGER[])"),
            2 => $statement!(
                $limit,
                "AND terms && CAST(CAST(?18 AS TEXT) AS INTEGER[])
                 AND terms && CAST(CAST(?19 AS TEXT) AS INTEGER[])"
            ),
            _ => $statement!(
                $limit,
                "AND terms && CAST(CAST(?18 AS TEXT) AS INTEGER[])
                 AND terms && CAST(CAST(?19 AS TEXT) AS INTEGER[])
                 AND terms && CAST(CAST(?20 AS TEXT) AS INTEGER[])"
            ),
        }
    };
}

pub(super) fn propose(
    tx: &mut dyn Tx,
    workspace: &str,
    wanted: &TermQuery,
    before: i64,
    count: Count,
) -> Result<Vec<Row>, StoreError> {
    let sql = match count {
        Count::Few => with_any!(of_all, "16", wanted.any.len()),
        Count::Page => with_any!(of_all, "128", wanted.any.len()),
        Count::Many => with_any!(of_all, "1024", wanted.any.len()),
    };
    run(tx, sql, workspace, &array(&wanted.all), &Ranges::new(wanted, before, count))
}

pub(super) fn propose_each(
    tx: &mut dyn Tx,
    workspace: &str,
    wanted: &TermQuery,
    terms: &[u32],
    before: i64,
) -> Result<Vec<Vec<Entry>>, StoreError> {
    let lists = terms.iter().map(|term| {
        let mut all = wanted.all.clone();
        all.push(*term);
        array(&all)
    });
    let lists = lists.collect::<Vec<_>>().join(";");
    let sql = with_any!(of_each, "16", wanted.any.len());
    let mut found = vec![Vec::new(); terms.len()];
    for mut row in run(tx, sql, workspace, &lists, &Ranges::new(wanted, before, Count::Few))? {
        let number = usize::try_from(row.int()? - 1).unwrap_or_default();
        found[number].push(Entry::read(row)?);
    }
    Ok(found)
}

/// Samples the transcript, from its newest end: items are in the order of their times, or nearly so.
pub(super) fn locate_range(
    tx: &mut dyn Tx,
    upto: i64,
    after_ms: i64,
    before_ms: i64,
) -> Result<TimeRange, StoreError> {
    let long = upto / SAMPLES + 1;
    let short = long / SAMPLES + 1;
    let far = times(tx, upto, 0, long)?;
    let older_than = |times: &[(i64, i64)], moment: i64| {
        times.iter().find(|(_, created_at)| *created_at < moment).map_or(0, |(number, _)| *number)
    };
    let end = older_than(&far, before_ms);
    if end == upto {
        return Ok(TimeRange { end: None, items: upto - older_than(&far, after_ms) });
    }
    let near = times(tx, end + long, end, short)?;
    let end = older_than(&near, before_ms).max(end) + short;
    Ok(TimeRange { end: Some(end), items: end - older_than(&far, after_ms) })
}

/// Item numbers `step` apart, newest first, with the time of the item there.
fn times(
    tx: &mut dyn Tx,
    newest: i64,
    oldest: i64,
    step: i64,
) -> Result<Vec<(i64, i64)>, StoreError> {
    let rows = tx.query(
        "SELECT number, item.created_at
         FROM generate_series(CAST(?1 AS BIGINT), CAST(?2 AS BIGINT), - CAST(?3 AS BIGINT)) AS number
         CROSS JOIN LATERAL (SELECT created_at FROM transcript
             WHERE id <= number ORDER BY id DESC LIMIT 1) item
         ORDER BY number DESC",
        params![newest, oldest, step],
    )?;
    rows.into_iter().map(|mut row| Ok((row.int()?, row.int()?))).collect()
}

/// The ends of the ranges and their terms; ranges that are left out end at 0.
struct Ranges {
    ends: Vec<i64>,
    blocks: Vec<String>,
    any: Vec<String>,
}

impl Ranges {
    fn new(wanted: &TermQuery, before: i64, count: Count) -> Ranges {
        // The first range is the one after the time range.
        let start = wanted.range.and_then(|range| range.end);
        let start = start.map(|end| ((end >> BLOCK_SHIFTS[0]) + 1) << BLOCK_SHIFTS[0]);
        let start = start.filter(|start| *start < before);
        let mut ends = vec![if start.is_some() { before } else { 0 }];
        let mut blocks = vec![array(&start.map_or(Vec::new(), |start| cover(start, before)))];
        let mut end = start.unwrap_or(before);
        let last = end - 1;
        let longest = wanted.range.map_or(i64::MAX, |range| range.items);
        for (level, shift) in BLOCK_SHIFTS.into_iter().enumerate() {
            // Of each level the block of the last number and the one before it.
            let begin = ((last >> shift) - 1) << shift;
            // Reading a few is cheap in a large range too. A range that covers much of the index is slower
            // than all of it.
            let skipped = count == Count::Few && level == 1 || (1 << shift) > last / 8;
            if !skipped && (wanted.reach..=longest).contains(&(1 << shift)) {
                ends.push(end);
                end = begin;
            } else {
                ends.push(0);
            }
            blocks.push(array(&[block(level, begin), block(level, last)]));
        }
        ends.push(end);
        let any = wanted.any.iter().map(|group| array(group)).collect();
        Ranges { ends, blocks, any }
    }
}

/// The blocks that cover all numbers from the start of a block on: long ones in the middle.
fn cover(from: i64, before: i64) -> Vec<u32> {
    let mut found = Vec::new();
    let (mut first, mut last) = (from >> BLOCK_SHIFTS[0], (before - 1) >> BLOCK_SHIFTS[0]);
    for (level, shift) in BLOCK_SHIFTS.into_iter().enumerate() {
        let top = level + 1 == BLOCK_SHIFTS.len();
        while first <= last && (top || first % 4 != 0) {
            found.push(block(level, first << shift));
            first += 1;
        }
        while first <= last && last % 4 != 3 {
            found.push(block(level, last << shift));
            last -= 1;
        }
        if first > last {
            break;
        }
        (first, last) = (first >> 2, last >> 2);
    }
    found
}

fn run(
    tx: &mut dyn Tx,
    sql: &'static str,
    workspace: &str,
    all: &str,
    ranges: &Ranges,
) -> Result<Vec<Row>, StoreError> {
    let mut params = params![workspace, all].to_vec();
    params.extend(ranges.ends.iter().copied().map(Value::from));
    params.extend(ranges.blocks.iter().chain(&ranges.any).map(Value::from));
    tx.query(sql, &params)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_cover_holds_what_comes_after_its_beginning_and_nothing_before(
            from in 0_i64..3000, count in 1_i64..3_000_000, at in 0_i64..1_000_000,
        ) {
            let from = from << BLOCK_SHIFTS[0];
            let found = cover(from, from + count);
            let holds = |id: i64| {
                (0..BLOCK_SHIFTS.len()).any(|level| found.contains(&block(level, id)))
            };
            prop_assert!(holds(from) && holds(from + count - 1) && !holds(from - 1));
            prop_assert!(holds(from + count * at / 1_000_000));
            prop_assert!(found.len() < 50, "{}", found.len());
        }

        #[test]
        fn stretches_follow_each_other_without_a_gap(
            before in 1_i64..4_000_000, reach in 0_i64..2_000_000, end in 0_i64..5_000_000,
        ) {
            let range = Some(TimeRange { end: Some(end), items: end });
            let wanted = TermQuery { reach, range, ..TermQuery::default() };
            let Ranges { ends, blocks, .. } = Ranges::new(&wanted, before, Count::Page);
            prop_assert_eq!((ends.len(), blocks.len()), (8, 7));
            let used: Vec<i64> = ends.iter().copied().filter(|end| *end > 0).collect();
            prop_assert_eq!(used[0], before);
            prop_assert!(used.is_sorted_by(|a, b| a > b), "{:?}", ends);
        }
    }
}
