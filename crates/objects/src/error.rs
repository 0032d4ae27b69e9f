//! What can go wrong with bytes, as callers have to tell it apart.
//!
//! Invariant: whatever is told, nothing half is left that could be read.

use std::io;

#[derive(Debug, thiserror::Error)]
pub enum ObjectsError {
    #[error("there are no bytes under {0}")]
    Missing(crate::ObjectId),
    #[error("there are more than the {bytes_max} bytes allowed")]
    TooLarge { bytes_max: u64 },
    /// The bytes stopped coming before they were complete.
    #[error("the bytes did not arrive")]
    Interrupted(#[source] Box<dyn std::error::Error + Send + Sync>),
    #[error("there is no space left for bytes")]
    Full,
    /// Something lies where bytes should be: a link, a folder, bytes of another length or hash.
    #[error("what lies under {0} is not what was stored")]
    Tampered(crate::ObjectId),
    /// The place is kept by another database, whose bytes must not be collected.
    #[error("`{place}` holds the bytes of another database")]
    Foreign { place: String },
    #[error("`{place}` cannot be used")]
    Unusable { place: String, source: io::Error },
    #[error("the folder of bytes failed")]
    Io(#[source] io::Error),
    #[error("the object store did not answer as it should: {0}")]
    Remote(String),
}

impl ObjectsError {
    /// True when the same may work later: nobody but the operator or time can help.
    pub fn is_passing(&self) -> bool {
        matches!(self, ObjectsError::Full | ObjectsError::Io(_) | ObjectsError::Remote(_))
    }
}

impl From<io::Error> for ObjectsError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => ObjectsError::Full,
            _ => ObjectsError::Io(error),
        }
    }
}

impl From<rustix::io::Errno> for ObjectsError {
    fn from(error: rustix::io::Errno) -> Self {
        io::Error::from(error).into()
    }
}
