//! A page of a transcript with limits and filters that a query cannot have.
//!
//! Invariant: an item is left out only because it is not wanted; the first item may be larger than the limit.

use super::{Position, Span, history};
use crate::StoreError;
use crate::reads::Direction;
use crate::sql::Tx;
use crate::types::ItemRow;

/// Items that are read at once at first; more when they are small.
const WINDOW: i64 = 16;
const WINDOW_MAX: i64 = 1024;

/// A page of at most `span.limit` items and `bytes_max` bytes, the first item excepted, and whether there is more.
pub fn history_within(
    tx: &mut dyn Tx,
    workspace: &str,
    conversation: &str,
    span: &Span,
    bytes_max: usize,
) -> Result<(Vec<ItemRow>, bool), StoreError> {
    let wanted = usize::try_from(span.limit).unwrap_or(0);
    let mut span = span.clone();
    let (mut rows, mut bytes, mut window) = (Vec::new(), 0, WINDOW);
    loop {
        let left = i64::try_from(wanted + 1 - rows.len()).unwrap_or(1);
        // Of some roles only, no one knows how many must be read for one.
        span.limit = if span.wants_all() { window.min(left) } else { window };
        let read = history(tx, workspace, conversation, &span)?;
        let is_last = i64::try_from(read.len()).unwrap_or(0) < span.limit;
        for row in read {
            let is_wanted = span.wants(&row);
            bytes += row.body.len() + row.text.as_ref().map_or(0, String::len);
            if is_wanted && (rows.len() == wanted || (bytes > bytes_max && !rows.is_empty())) {
                return Ok((rows, true));
            }
            match span.direction {
                Direction::Backward => span.before = Position::of(&row),
                Direction::Forward => span.after = Position::of(&row),
            }
            rows.extend(is_wanted.then_some(row));
        }
        if is_last {
            return Ok((rows, false));
        }
        window = if bytes < bytes_max / 8 { (window * 4).min(WINDOW_MAX) } else { WINDOW };
    }
}
