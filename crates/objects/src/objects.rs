//! The handle: stage, keep, read, list and delete objects, in a folder or a bucket.
//!
//! Invariant: an object that is read whole is checked against its id; if it differs, the last piece is replaced
//! by an error.

use crate::bucket::Bucket;
use crate::folder::{Folder, read_at};
use crate::id::{ObjectId, Shard};
use crate::stage::{self, Staged, blocking};
use crate::{ObjectsError, backend::Backend};
use bytes::Bytes;
use futures_util::stream::{BoxStream, Stream, StreamExt, try_unfold};
use sha2::{Digest, Sha256};
use std::ops::Range;
use std::sync::Arc;
use std::time::SystemTime;

/// Bytes per read of a stream.
const PIECE_BYTES: u64 = 256 * 1024;

pub type ByteStream = BoxStream<'static, Result<Bytes, ObjectsError>>;

/// An object in a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredObject {
    pub id: ObjectId,
    pub size: u64,
    pub modified: SystemTime,
}

#[derive(Clone)]
pub struct Objects {
    kind: Kind,
}

#[derive(Clone)]
enum Kind {
    Folder(Arc<Folder>),
    Bucket(Arc<Bucket>),
}

impl Objects {
    /// Opens a backend for the database called `owner`; one that another database owns is refused.
    pub async fn open(backend: &Backend, owner: &str) -> Result<Objects, ObjectsError> {
        let kind = match backend.clone() {
            Backend::Folder(path) => {
                let owner = owner.to_owned();
                Kind::Folder(Arc::new(blocking(move || Folder::open(&path, &owner)).await?))
            }
            Backend::Bucket(backend) => Kind::Bucket(Arc::new(Bucket::open(backend, owner).await?)),
        };
        Ok(Objects { kind })
    }

    /// Receives at most `bytes_max` bytes, without storing the object yet.
    pub async fn stage<S, E>(&self, bytes: S, bytes_max: u64) -> Result<Staged, ObjectsError>
    where
        S: Stream<Item = Result<Bytes, E>>,
        E: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let spool = match &self.kind {
            Kind::Folder(folder) => &folder.spool,
            Kind::Bucket(bucket) => &bucket.spool,
        };
        stage::stage(spool, bytes, bytes_max).await
    }

    /// Stores an object atomically; it is durable when this returns.
    pub async fn keep(&self, staged: Staged) -> Result<(), ObjectsError> {
        match &self.kind {
            Kind::Folder(folder) => {
                let folder = Arc::clone(folder);
                blocking(move || folder.keep(staged)).await
            }
            Kind::Bucket(bucket) => bucket.keep(staged).await,
        }
    }

    /// Reads a range within the object.
    pub async fn read(&self, id: ObjectId, range: Range<u64>) -> Result<Bytes, ObjectsError> {
        if range.is_empty() {
            return Ok(Bytes::new());
        }
        match &self.kind {
            Kind::Folder(folder) => {
                let folder = Arc::clone(folder);
                blocking(move || folder.read(id, range)).await
            }
            Kind::Bucket(bucket) => bucket.read(id, range).await,
        }
    }

    /// Streams a range.
    pub async fn stream(
        &self,
        id: ObjectId,
        range: Range<u64>,
    ) -> Result<ByteStream, ObjectsError> {
        if range.is_empty() {
            return Ok(futures_util::stream::empty().boxed());
        }
        let (pieces, size) = match &self.kind {
            Kind::Folder(folder) => {
                let folder = Arc::clone(folder);
                let (file, size) = blocking(move || folder.find(id)).await?;
                (pieces(file, range.clone()), size)
            }
            Kind::Bucket(bucket) => bucket.stream(id, range.clone()).await?,
        };
        if range.end > size {
            return Err(ObjectsError::Tampered(id));
        }
        let hash = (range == (0..size)).then(Sha256::new);
        Ok(checked(pieces, Expected { id, left: range.end - range.start, hash }))
    }

    /// Removes an object; one that does not exist is no error.
    pub async fn delete(&self, id: ObjectId) -> Result<(), ObjectsError> {
        match &self.kind {
            Kind::Folder(folder) => {
                let folder = Arc::clone(folder);
                blocking(move || folder.delete(id)).await
            }
            Kind::Bucket(bucket) => bucket.delete(id).await,
        }
    }

    /// All objects of one shard.
    pub async fn list(&self, shard: Shard) -> Result<Vec<StoredObject>, ObjectsError> {
        match &self.kind {
            Kind::Folder(folder) => {
                let folder = Arc::clone(folder);
                blocking(move || folder.list(shard)).await
            }
            Kind::Bucket(bucket) => bucket.list(shard).await,
        }
    }

    /// Removes incoming files of earlier starts; returns how many.
    pub async fn sweep(&self) -> Result<usize, ObjectsError> {
        match &self.kind {
            Kind::Folder(folder) => {
                let folder = Arc::clone(folder);
                blocking(move || folder.sweep()).await
            }
            Kind::Bucket(bucket) => bucket.sweep().await,
        }
    }
}

fn pieces(file: std::fs::File, range: Range<u64>) -> ByteStream {
    let file = Arc::new(file);
    let step = move |at: u64| {
        let file = Arc::clone(&file);
        let piece = at..range.end.min(at + PIECE_BYTES);
        let done = piece.is_empty();
        async move {
            if done {
                return Ok(None);
            }
            let end = piece.end;
            let bytes = blocking(move || read_at(&file, piece)).await?;
            Ok(Some((bytes, end)))
        }
    };
    try_unfold(range.start, step).boxed()
}

struct Expected {
    id: ObjectId,
    left: u64,
    /// Only an object that is read whole can be checked.
    hash: Option<Sha256>,
}

/// The same pieces; an error if there are too few, too many or others than stored.
fn checked(pieces: ByteStream, expected: Expected) -> ByteStream {
    let step = |(mut pieces, mut expected): (ByteStream, Expected)| async move {
        if expected.left == 0 {
            return Ok(None);
        }
        let tampered = ObjectsError::Tampered(expected.id);
        let Some(piece) = pieces.next().await.transpose()? else { return Err(tampered) };
        if piece.len() as u64 > expected.left {
            return Err(tampered);
        }
        expected.left -= piece.len() as u64;
        if let Some(hash) = &mut expected.hash {
            hash.update(&piece);
        }
        if expected.left == 0
            && let Some(hash) = expected.hash.take()
            && ObjectId::from_hash(hash) != expected.id
        {
            return Err(tampered);
        }
        Ok(Some((piece, (pieces, expected))))
    };
    try_unfold((pieces, expected), step).boxed()
}
