//! Adds items to the search index, a few at a time and after they were stored.
//!
//! Invariant: the mark of the last indexed item moves with the entries, and only from the value at which they were
//! read; so no item is left out and none is indexed twice.

use super::Command;
use super::transcript::remove_items;
use crate::StoreError;
use crate::search::index::{self, IndexEntry};
use crate::sql::Tx;

#[derive(Debug, Clone)]
pub struct IndexItems {
    /// The mark when the entries were read.
    pub from: i64,
    /// The mark with them.
    pub upto: i64,
    pub entries: Vec<IndexEntry>,
}

impl IndexItems {
    /// The next step, read and analysed on a reader; none when everything is indexed.
    pub(crate) fn next(tx: &mut dyn Tx, limit: i64) -> Result<Option<IndexItems>, StoreError> {
        let from = index::upto(tx)?;
        let (entries, upto) = index::next_entries(tx, from, limit)?;
        Ok((upto > from).then_some(IndexItems { from, upto, entries }))
    }
}

impl Command for IndexItems {
    type Outcome = bool;

    fn execute(&self, tx: &mut dyn Tx) -> Result<bool, StoreError> {
        if !index::move_upto(tx, self.from, self.upto)? {
            return Ok(false);
        }
        index::insert(tx, &self.entries)?;
        Ok(true)
    }
}

/// Removes items from the transcript and from the index.
#[derive(Debug, Clone)]
pub struct RemoveItems {
    pub ids: Vec<i64>,
}

impl Command for RemoveItems {
    type Outcome = bool;

    fn execute(&self, tx: &mut dyn Tx) -> Result<bool, StoreError> {
        Ok(remove_items(tx, &self.ids)? > 0)
    }
}
