//! Content-addressed objects in a folder or in an S3-compatible bucket.
//!
//! Invariant: a read by id returns all of the bytes with this SHA-256, or nothing. Objects appear atomically and
//! are durable before `keep` returns; names are built from 64 hexadecimal digits only.

mod backend;
mod bucket;
mod error;
mod folder;
mod id;
pub mod mime;
mod objects;
mod spool;
mod stage;

pub use backend::{Backend, BucketSettings};
pub use error::ObjectsError;
pub use id::{ObjectId, Shard};
pub use objects::{ByteStream, Objects, StoredObject};
pub use stage::Staged;
