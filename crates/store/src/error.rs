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
    /// The truth may no longer be written by this host: an I/O error on sync, or another host took over.
    #[error("the store is lost to this host: {0}")]
    Lost(String),
    /// The database was written by a newer version.
    #[error("the database has schema {found}, this version knows up to {known}")]
    NewerSchema { found: i64, known: i64 },
    /// The database was written by another build that says to be of the same version.
    #[error(
        "the database was made by another build of this version, with other tables; \
         use that build, or a new data folder"
    )]
    OtherSchema,
}

impl StoreError {
    /// True when nothing was written and the same may work a little later.
    pub fn is_passing(&self) -> bool {
        matches!(self, StoreError::Full | StoreError::Busy | StoreError::Unavailable(_))
    }

    /// True when the connection is the problem and the same command may be tried again.
    pub(crate) fn is_connection(&self) -> bool {
        matches!(self, StoreError::Unavailable(_))
    }
}
