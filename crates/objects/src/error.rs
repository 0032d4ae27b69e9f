//! What can go wrong with objects.
//!
//! Invariant: after any error, no partial object can be read.

use std::io;

#[derive(Debug, thiserror::Error)]
pub enum ObjectsError {
    #[error("object {0} does not exist")]
    Missing(crate::ObjectId),
    #[error("more than the {bytes_max} bytes allowed")]
    TooLarge { bytes_max: u64 },
    /// The stream ended before it was complete.
    #[error("the bytes did not arrive")]
    Interrupted(#[source] Box<dyn std::error::Error + Send + Sync>),
    #[error("no space left for objects")]
    Full,
    /// A link, a folder, or bytes of another length or hash are stored under the id.
    #[error("object {0} is not what was stored")]
    Tampered(crate::ObjectId),
    /// Another database owns it; its objects must not be collected.
    #[error("`{backend}` holds the objects of another database")]
    Foreign { backend: String },
    #[error("`{backend}` cannot be used")]
    Unusable { backend: String, source: io::Error },
    #[error("the folder of objects failed")]
    Io(#[source] io::Error),
    #[error("unexpected answer of the object store: {0}")]
    Remote(String),
}

impl ObjectsError {
    /// True when the operation may succeed later.
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
