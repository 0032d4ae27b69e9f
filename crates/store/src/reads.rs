//! Reads: point reads and pages, always by workspace.

pub mod approvals;
pub mod artifacts;
pub mod audit;
pub mod conversations;
pub mod deliveries;
pub mod events;
mod names;
pub mod rates;
pub mod records;
pub mod results;
pub mod runs;
pub mod search;
pub mod sessions;
pub mod sizes;
pub mod spend;
pub mod state;
pub mod storage;
pub mod tools;

/// Which way a page goes from its starting point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From newer to older.
    Backward,
    /// From older to newer.
    Forward,
}
