//! Storage usage of owners, counted in the transaction that changes it.
//!
//! Invariant: `usage` is always the sum over its rows; a write that would exceed the quota of an owner changes
//! nothing. An owner over a lowered quota may still shrink.

use crate::sql::Tx;
use crate::{StoreError, params};

/// Kinds of usage, each with its own quota.
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

/// The difference that a write makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Growth {
    pub(super) bytes: i64,
    pub(super) entries: i64,
}

impl Growth {
    /// From the old to the new size of an entry; none: it does not exist.
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

/// The size that a name and its value count as.
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
