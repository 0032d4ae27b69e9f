//! Errors of the store, by how a caller has to react.
//!
//! Invariant: after an error nothing of the command was kept; only after `Lost` it is not known.

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
    /// The database does not answer. Holds its name without its address, so that any caller may see it.
    #[error("the {0} does not answer")]
    Down(String),
    /// This host may not write any more: an I/O error on sync, or another host took over.
    #[error("the store is lost to this host: {0}")]
    Lost(String),
    /// A read found damage: nothing was written.
    #[error("the database is damaged: {0}")]
    Damaged(String),
    /// The files or tables of the database do not exist any more. Nothing is committed until the next start.
    #[error("the database is gone: {0}")]
    Gone(String),
    /// The files of the database are damaged or incomplete: the host does not start.
    #[error("the database is damaged or incomplete: {0}")]
    Unsound(String),
    /// The database was written by a newer version.
    #[error(
        "the database was written by a newer version of greenroom: it has schema {found}, this version knows \
         schemas up to {known}"
    )]
    NewerSchema { found: i64, known: i64 },
    /// `greenroom move` has copied everything to another database.
    #[error("the data of this database was moved to {to}")]
    Moved { to: String },
    /// The database was written by a build from before the first version that can be upgraded.
    #[error(
        "the database was made by a development build whose data cannot be upgraded; use that build, or a new \
         data folder"
    )]
    UnreleasedSchema,
}

impl StoreError {
    /// True when nothing was written and a retry may succeed.
    pub fn is_passing(&self) -> bool {
        use StoreError::{Busy, Down, Full, Unavailable};
        matches!(self, Full | Busy | Unavailable(_) | Down(_))
    }

    /// True when the connection failed and the command may be tried again on a new one.
    pub(crate) fn is_connection(&self) -> bool {
        matches!(self, StoreError::Unavailable(_))
    }
}
