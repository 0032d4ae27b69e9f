//! Bytes by their hash: kept in a folder or in any S3-compatible bucket.
//!
//! Invariant: what can be read under an id is all of the bytes that have this SHA-256, or nothing. Bytes
//! appear at once, are durable before `keep` returns, and no name is ever built from anything but 64
//! hexadecimal digits.

mod bucket;
mod error;
mod folder;
mod id;
pub mod mime;
mod objects;
mod place;
mod spool;
mod stage;

pub use error::ObjectsError;
pub use id::{ObjectId, Shard};
pub use objects::{ByteStream, Found, Objects};
pub use place::{BucketPlace, Place, PlaceError, PlaceUrl};
pub use stage::Staged;
