//! The handle: bytes come in, are kept, read, listed and deleted, wherever they are.
//!
//! Invariant: bytes that are read from their beginning to their end are those of their id; if they are not,
//! the last piece is replaced by an error.

use crate::bucket::Bucket;
use crate::folder::{Folder, read_at};
use crate::id::{ObjectId, Shard};
use crate::stage::{self, Staged, blocking};
use crate::{ObjectsError, place::Place};
use bytes::Bytes;
use futures_util::stream::{BoxStream, Stream, StreamExt, try_unfold};
use sha2::{Digest, Sha256};
use std::ops::Range;
use std::sync::Arc;
use std::time::SystemTime;

/// Bytes read at once while they are streamed.
const PIECE_BYTES: u64 = 256 * 1024;

pub type ByteStream = BoxStream<'static, Result<Bytes, ObjectsError>>;

/// Bytes that are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
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
    /// Opens a place for the database called `owner`; a place of another one is refused.
    pub async fn open(place: &Place, owner: &str) -> Result<Objects, ObjectsError> {
        let kind = match place.clone() {
            Place::Folder(path) => {
                let owner = owner.to_owned();
                Kind::Folder(Arc::new(blocking(move || Folder::open(&path, &owner)).await?))
            }
            Place::Bucket(place) => Kind::Bucket(Arc::new(Bucket::open(place, owner).await?)),
        };
        Ok(Objects { kind })
    }

    /// Takes bytes in, at most `bytes_max`, without keeping them yet.
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

    /// Keeps bytes, all of them or none; they are durable when this returns.
    pub async fn keep(&self, staged: Staged) -> Result<(), ObjectsError> {
        match &self.kind {
            Kind::Folder(folder) => {
                let folder = Arc::clone(folder);
                blocking(move || folder.keep(staged)).await
            }
            Kind::Bucket(bucket) => bucket.keep(staged).await,
        }
    }

    /// Reads a part that lies within the bytes.
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

    /// Reads a part piece by piece.
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

    /// Removes bytes; none there is fine.
    pub async fn delete(&self, id: ObjectId) -> Result<(), ObjectsError> {
        match &self.kind {
            Kind::Folder(folder) => {
                let folder = Arc::clone(folder);
                blocking(move || folder.delete(id)).await
            }
            Kind::Bucket(bucket) => bucket.delete(id).await,
        }
    }

    /// All bytes of one shard.
    pub async fn list(&self, shard: Shard) -> Result<Vec<Found>, ObjectsError> {
        match &self.kind {
            Kind::Folder(folder) => {
                let folder = Arc::clone(folder);
                blocking(move || folder.list(shard)).await
            }
            Kind::Bucket(bucket) => bucket.list(shard).await,
        }
    }

    /// Removes what earlier starts left on its way, and says how much it was.
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
    /// Only what is read whole can be checked.
    hash: Option<Sha256>,
}

/// The same pieces, as long as there are neither too few nor others than stored.
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
