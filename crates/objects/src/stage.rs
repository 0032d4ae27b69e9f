//! An object that was received and is not stored yet.
//!
//! Invariant: dropping it leaves nothing behind.

use crate::id::ObjectId;
use crate::spool::{Spool, SpoolFile};
use crate::{ObjectsError, mime};
use bytes::{Bytes, BytesMut};
use futures_util::{Stream, StreamExt};
use sha2::{Digest, Sha256};
use std::io::Write;
use std::sync::Arc;

/// Up to this size bytes stay in memory; more are written to disk in pieces of it.
const PIECE_BYTES: usize = 256 * 1024;

pub struct Staged {
    pub(crate) id: ObjectId,
    pub(crate) size: u64,
    head: Bytes,
    pub(crate) body: Body,
}

pub(crate) enum Body {
    Memory(Bytes),
    File(SpoolFile),
}

impl Staged {
    pub fn from_bytes(bytes: Bytes) -> Self {
        let head = bytes.slice(..bytes.len().min(mime::HEAD_BYTES));
        Self { id: ObjectId::of(&bytes), size: bytes.len() as u64, head, body: Body::Memory(bytes) }
    }

    pub fn id(&self) -> ObjectId {
        self.id
    }

    pub fn size(&self) -> u64 {
        self.size
    }

    /// The first bytes, from which the type is detected.
    pub fn head(&self) -> &[u8] {
        &self.head
    }
}

/// Receives bytes, at most `bytes_max`.
pub(crate) async fn stage<S, E>(
    spool: &Arc<Spool>,
    bytes: S,
    bytes_max: u64,
) -> Result<Staged, ObjectsError>
where
    S: Stream<Item = Result<Bytes, E>>,
    E: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let mut bytes = std::pin::pin!(bytes);
    let (mut hash, mut size, mut head) = (Sha256::new(), 0, Bytes::new());
    let (mut piece, mut file) = (BytesMut::new(), None);
    while let Some(next) = bytes.next().await {
        let next = next.map_err(|error| ObjectsError::Interrupted(error.into()))?;
        size += next.len() as u64;
        if size > bytes_max {
            return Err(ObjectsError::TooLarge { bytes_max });
        }
        hash.update(&next);
        piece.extend_from_slice(&next);
        if piece.len() >= PIECE_BYTES {
            head = first(head, &piece);
            file = Some(append(spool, file, piece.split().freeze()).await?);
        }
    }
    head = first(head, &piece);
    let rest = piece.freeze();
    let body = match file {
        None => Body::Memory(rest),
        Some(file) => Body::File(append(spool, Some(file), rest).await?),
    };
    Ok(Staged { id: ObjectId::from_hash(hash), size, head, body })
}

/// The head so far, else the beginning of the first piece.
fn first(head: Bytes, piece: &[u8]) -> Bytes {
    match head.is_empty() {
        true => Bytes::copy_from_slice(&piece[..piece.len().min(mime::HEAD_BYTES)]),
        false => head,
    }
}

async fn append(
    spool: &Arc<Spool>,
    file: Option<SpoolFile>,
    piece: Bytes,
) -> Result<SpoolFile, ObjectsError> {
    let spool = Arc::clone(spool);
    blocking(move || {
        let mut file = match file {
            Some(file) => file,
            None => spool.create("part")?,
        };
        file.file.write_all(&piece)?;
        Ok(file)
    })
    .await
}

/// Runs blocking IO on a thread for it.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ObjectsError> + Send + 'static,
) -> Result<T, ObjectsError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(ObjectsError::Io(std::io::Error::other(error))))
}
