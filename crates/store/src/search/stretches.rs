//! How PostgreSQL is asked for the newest items first, though a GIN index knows no order.
//!
//! Invariant: every item carries, as terms, the stretches of numbers it belongs to, short ones and long ones.
//! The newest stretches are asked first, each further back and longer than the one before, so that what is
//! looked at is little more than what is wanted, whether that is rare or common.

use super::index::{Count, Place, Wanted, array};
use super::terms::{BLOCK_SHIFTS, Entry, block, entry_columns};
use crate::sql::{Row, Tx, Value};
use crate::{StoreError, params};

/// Places at which the transcript is asked for its time, and then between two of them.
const PLACES: i64 = 32;

/// Stretches that are not needed any more are not looked at, since a part of `UNION ALL` is carried out when
/// its rows are asked for; nor are those that end before the first item. `+ 0` and `OFFSET 0` keep the
/// planner from walking through the items by number instead, and with the limit written out it sees that one
/// plan fits all parameters.
macro_rules! stretches {
    ($all:literal, $limit:literal, $any:literal) => {
        concat!(
            "((",
            stretches!(@one $all, "?3", "AND terms && CAST(CAST(?11 AS TEXT) AS INTEGER[]) ", $any),
            ") UNION ALL (",
            stretches!(@one $all, "?4", "AND terms && CAST(CAST(?12 AS TEXT) AS INTEGER[]) ", $any),
            ") UNION ALL (",
            stretches!(@one $all, "?5", "AND terms && CAST(CAST(?13 AS TEXT) AS INTEGER[]) ", $any),
            ") UNION ALL (",
            stretches!(@one $all, "?6", "AND terms && CAST(CAST(?14 AS TEXT) AS INTEGER[]) ", $any),
            ") UNION ALL (",
            stretches!(@one $all, "?7", "AND terms && CAST(CAST(?15 AS TEXT) AS INTEGER[]) ", $any),
            ") UNION ALL (",
            stretches!(@one $all, "?8", "AND terms && CAST(CAST(?16 AS TEXT) AS INTEGER[]) ", $any),
            ") UNION ALL (",
            stretches!(@one $all, "?9", "AND terms && CAST(CAST(?17 AS TEXT) AS INTEGER[]) ", $any),
            ") UNION ALL (",
            stretches!(@one $all, "?10", "", $any),
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

/// The newest items that have everything wanted.
macro_rules! of_all {
    ($limit:literal, $any:literal) => {
        concat!(
            "SELECT ",
            entry_columns!(),
            " FROM ",
            stretches!("CAST(?2 AS TEXT)", $limit, $any),
            " found JOIN transcript t ON t.id = found.id
             WHERE t.workspace_id = ?1 ORDER BY t.id DESC"
        )
    };
}

/// The newest items of each of several lists of terms.
macro_rules! of_each {
    ($limit:literal, $any:literal) => {
        concat!(
            "SELECT asked.number, ",
            entry_columns!(),
            " FROM unnest(string_to_array(CAST(?2 AS TEXT), ';'))
                  WITH ORDINALITY AS asked (terms, number)
              CROSS JOIN LATERAL ",
            stretches!("asked.terms", $limit, $any),
            " found
              JOIN transcript t ON t.id = found.id
              WHERE t.workspace_id = ?1 ORDER BY asked.number, t.id DESC"
        )
    };
}

/// The statement for so many conditions with alternatives.
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
    wanted: &Wanted,
    before: i64,
    count: Count,
) -> Result<Vec<Row>, StoreError> {
    let sql = match count {
        Count::Few => with_any!(of_all, "16", wanted.any.len()),
        Count::Page => with_any!(of_all, "128", wanted.any.len()),
        Count::Many => with_any!(of_all, "1024", wanted.any.len()),
    };
    ask(tx, sql, workspace, &array(&wanted.all), &Stretches::new(wanted, before, count))
}

pub(super) fn propose_each(
    tx: &mut dyn Tx,
    workspace: &str,
    wanted: &Wanted,
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
    for mut row in ask(tx, sql, workspace, &lists, &Stretches::new(wanted, before, Count::Few))? {
        let number = usize::try_from(row.int()? - 1).unwrap_or_default();
        found[number].push(Entry::read(row)?);
    }
    Ok(found)
}

/// Found by asking the transcript here and there, from its newest end: items stand in the order of their
/// times, or nearly so.
pub(super) fn place_in_time(
    tx: &mut dyn Tx,
    upto: i64,
    after_ms: i64,
    before_ms: i64,
) -> Result<Place, StoreError> {
    let long = upto / PLACES + 1;
    let short = long / PLACES + 1;
    let far = times(tx, upto, 0, long)?;
    let older_than = |times: &[(i64, i64)], moment: i64| {
        times.iter().find(|(_, created_at)| *created_at < moment).map_or(0, |(place, _)| *place)
    };
    let end = older_than(&far, before_ms);
    if end == upto {
        return Ok(Place { end: None, items: upto - older_than(&far, after_ms) });
    }
    let near = times(tx, end + long, end, short)?;
    let end = older_than(&near, before_ms).max(end) + short;
    Ok(Place { end: Some(end), items: end - older_than(&far, after_ms) })
}

/// At numbers so far apart, newest first: the time of the item there.
fn times(
    tx: &mut dyn Tx,
    newest: i64,
    oldest: i64,
    step: i64,
) -> Result<Vec<(i64, i64)>, StoreError> {
    let rows = tx.query(
        "SELECT place, item.created_at
         FROM generate_series(CAST(?1 AS BIGINT), CAST(?2 AS BIGINT), - CAST(?3 AS BIGINT)) AS place
         CROSS JOIN LATERAL (SELECT created_at FROM transcript
             WHERE id <= place ORDER BY id DESC LIMIT 1) item
         ORDER BY place DESC",
        params![newest, oldest, step],
    )?;
    rows.into_iter().map(|mut row| Ok((row.int()?, row.int()?))).collect()
}

/// Where stretches end, and the terms of each; those that are left out end at 0.
struct Stretches {
    ends: Vec<i64>,
    blocks: Vec<String>,
    any: Vec<String>,
}

impl Stretches {
    fn new(wanted: &Wanted, before: i64, count: Count) -> Stretches {
        // The first stretch is what lies behind the place where most are.
        let place = wanted.place.and_then(|place| place.end);
        let place = place.map(|end| ((end >> BLOCK_SHIFTS[0]) + 1) << BLOCK_SHIFTS[0]);
        let place = place.filter(|place| *place < before);
        let mut ends = vec![if place.is_some() { before } else { 0 }];
        let mut blocks = vec![array(&place.map_or(Vec::new(), |place| cover(place, before)))];
        let mut end = place.unwrap_or(before);
        let last = end - 1;
        let longest = wanted.place.map_or(i64::MAX, |place| place.items);
        for (level, shift) in BLOCK_SHIFTS.into_iter().enumerate() {
            // Of each level the block of the last number and the one before it.
            let begin = ((last >> shift) - 1) << shift;
            // Few are little work even if they turn out to be many, so that a larger step will do. A stretch
            // that is much of everything takes longer than everything does.
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
        Stretches { ends, blocks, any }
    }
}

/// The blocks that hold all numbers from a beginning of a block on: long ones in the middle.
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

fn ask(
    tx: &mut dyn Tx,
    sql: &'static str,
    workspace: &str,
    all: &str,
    stretches: &Stretches,
) -> Result<Vec<Row>, StoreError> {
    let mut params = params![workspace, all].to_vec();
    params.extend(stretches.ends.iter().copied().map(Value::from));
    params.extend(stretches.blocks.iter().chain(&stretches.any).map(Value::from));
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
            before in 1_i64..4_000_000, reach in 0_i64..2_000_000, place in 0_i64..5_000_000,
        ) {
            let place = Some(Place { end: Some(place), items: place });
            let wanted = Wanted { reach, place, ..Wanted::default() };
            let Stretches { ends, blocks, .. } = Stretches::new(&wanted, before, Count::Page);
            prop_assert_eq!((ends.len(), blocks.len()), (8, 7));
            let asked: Vec<i64> = ends.iter().copied().filter(|end| *end > 0).collect();
            prop_assert_eq!(asked[0], before);
            prop_assert!(asked.is_sorted_by(|a, b| a > b), "{:?}", ends);
        }
    }
}
