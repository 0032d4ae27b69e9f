//! What can go wrong with the store, as its callers have to tell it apart.
//!
//! Invariant: whatever is told, nothing of the command was kept; only after `Lost` nobody knows.

/// The family of store failures.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// The statement was wrong or refused; nothing of the command was kept.
    #[error("the store refused the command: {0}")]
    Refused(String),
    /// No space left: nothing was written.
    #[error("the store has no space left")]
    Full,
    /// Another program holds the database: nothing was written.
    #[error("the store is locked by another program")]
    Busy,
    /// The database cannot be reached, or did not answer in time.
    #[error("the store is not available: {0}")]
    Unavailable(String),
    /// The database does not answer, as callers of the store are told: its name without its place.
    #[error("the {0} does not answer")]
    Down(String),
    /// The truth may no longer be written by this host: an I/O error on sync, or another host took over.
    #[error("the store is lost to this host: {0}")]
    Lost(String),
    /// The database was written by a newer version.
    #[error(
        "the database was written by a newer version of greenroom: it has schema {found}, this version knows \
         schemas up to {known}"
    )]
    NewerSchema { found: i64, known: i64 },
    /// `greenroom move` has copied everything elsewhere.
    #[error("the facts of this database were moved to {to}")]
    Moved { to: String },
    /// The database was written by a build from before the first version that can be upgraded.
    #[error(
        "the database was made by a development build whose data cannot be upgraded; use that build, or a new \
         data folder"
    )]
    UnreleasedSchema,
}

impl StoreError {
    /// True when nothing was written and the same may work a little later.
    pub fn is_passing(&self) -> bool {
        use StoreError::{Busy, Down, Full, Unavailable};
        matches!(self, Full | Busy | Unavailable(_) | Down(_))
    }

    /// True when the connection is the problem and the same command may be tried again.
    pub(crate) fn is_connection(&self) -> bool {
        matches!(self, StoreError::Unavailable(_))
    }
}
