//! What owners keep, counted in the transaction that changes it.
//!
//! Invariant: `usage` is always the sum over the rows it tells of; a write that would take an owner beyond
//! its quota changes nothing. What is over a quota that was lowered may still shrink.

use crate::sql::Tx;
use crate::{StoreError, params};

/// What is counted apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UsageKind {
    State,
    Storage,
}

impl UsageKind {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            UsageKind::State => "state",
            UsageKind::Storage => "storage",
        }
    }
}

/// How much there is more afterwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Growth {
    pub(super) bytes: i64,
    pub(super) entries: i64,
}

impl Growth {
    /// From what an entry took to what it takes; nothing: it is not there.
    pub(super) fn between(before: Option<i64>, after: Option<i64>) -> Growth {
        Growth {
            bytes: after.unwrap_or(0) - before.unwrap_or(0),
            entries: i64::from(after.is_some()) - i64::from(before.is_some()),
        }
    }

    pub(super) fn fits(self, used: i64, max: Option<i64>) -> bool {
        self.bytes <= 0 || max.is_none_or(|max| used.saturating_add(self.bytes) <= max)
    }
}

/// Bytes that a name and its value are counted with.
pub(super) fn taken(name: &str, value_bytes: usize) -> i64 {
    i64::try_from(name.len() + value_bytes).unwrap_or(i64::MAX)
}

pub(super) fn count(
    tx: &mut dyn Tx,
    kind: UsageKind,
    (workspace, owner): (&str, &str),
    growth: Growth,
) -> Result<(), StoreError> {
    if growth == (Growth { bytes: 0, entries: 0 }) {
        return Ok(());
    }
    tx.execute(
        "INSERT INTO usage (workspace_id, kind, owner, bytes, entries) VALUES (?1, ?2, ?3, ?4, ?5)
         ON CONFLICT (workspace_id, kind, owner) DO UPDATE SET
             bytes = usage.bytes + excluded.bytes, entries = usage.entries + excluded.entries",
        params![workspace, kind.as_str(), owner, growth.bytes, growth.entries],
    )?;
    Ok(())
}
