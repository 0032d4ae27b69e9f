//! Objects in an S3-compatible bucket: `PREFIX/ab/abcdef…`.
//!
//! Invariant: an object appears whole or not at all. The id of a multipart upload is on disk before its first
//! part is sent, so that the next start after a crash aborts the upload.

mod connector;

use crate::ObjectsError;
use crate::backend::{Backend, BucketSettings};
use crate::folder::open_root;
use crate::id::{ObjectId, Shard};
use crate::objects::{ByteStream, StoredObject};
use crate::spool::{Spool, SpoolFile};
use crate::stage::{Body, Staged, blocking};
use bytes::Bytes;
use connector::Connector;
use futures_util::{StreamExt, TryStreamExt};
use object_store::aws::{AmazonS3, AmazonS3Builder};
use object_store::multipart::{MultipartStore, PartId};
use object_store::path::Path;
use object_store::{GetOptions, GetRange, ObjectStore, ObjectStoreExt, PutPayload, RetryConfig};
use std::io::Write;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

/// Larger objects are uploaded in parts of this size.
const PART_BYTES: u64 = 8 << 20;
const RETRIES_MAX: usize = 3;
const RETRY_FOR: Duration = Duration::from_secs(15);
const OWNER: &str = "owner";
/// The suffix of files that hold the key and the id of a multipart upload.
const UPLOAD: &str = "upload";

pub(crate) struct Bucket {
    store: AmazonS3,
    prefix: String,
    pub(crate) spool: Arc<Spool>,
}

impl Bucket {
    pub(crate) async fn open(
        settings: BucketSettings,
        owner: &str,
    ) -> Result<Bucket, ObjectsError> {
        let name = Backend::Bucket(settings.clone()).to_string();
        let folder = settings.spool.clone();
        let spool = blocking(move || {
            let root = open_root(&folder)?;
            Spool::open(&root, "incoming")
        });
        let spool = spool.await?;
        let retry = RetryConfig {
            max_retries: RETRIES_MAX,
            retry_timeout: RETRY_FOR,
            ..RetryConfig::default()
        };
        let mut builder = AmazonS3Builder::new()
            .with_bucket_name(settings.bucket)
            .with_region(settings.region)
            .with_access_key_id(settings.access_key_id)
            .with_secret_access_key(settings.secret_access_key)
            .with_allow_http(settings.allow_http)
            .with_http_connector(Connector { allow_http: settings.allow_http })
            .with_retry(retry);
        if let Some(endpoint) = settings.endpoint {
            builder = builder.with_endpoint(endpoint);
        }
        let store = builder.build().map_err(remote)?;
        let bucket = Bucket { store, prefix: settings.prefix, spool };
        bucket.claim(owner, name).await?;
        Ok(bucket)
    }

    /// Marks the bucket as this database's, or fails if another one owns it.
    async fn claim(&self, owner: &str, backend: String) -> Result<(), ObjectsError> {
        let key = self.path(OWNER);
        match self.store.get(&key).await {
            Ok(found) => match found.bytes().await.map_err(remote)? == owner {
                true => Ok(()),
                false => Err(ObjectsError::Foreign { backend }),
            },
            Err(object_store::Error::NotFound { .. }) => {
                let owner = PutPayload::from(owner.to_owned().into_bytes());
                self.store.put(&key, owner).await.map_err(remote).map(drop)
            }
            Err(error) => Err(remote(error)),
        }
    }

    fn path(&self, name: &str) -> Path {
        match self.prefix.is_empty() {
            true => Path::from(name),
            false => Path::from(format!("{}/{name}", self.prefix)),
        }
    }

    fn key(&self, id: ObjectId) -> Path {
        self.path(&format!("{}/{id}", id.shard()))
    }

    /// Stores an object, unless it is stored already.
    pub(crate) async fn keep(&self, staged: Staged) -> Result<(), ObjectsError> {
        let Staged { id, size, body, .. } = staged;
        let key = self.key(id);
        match self.store.head(&key).await {
            Ok(found) if found.size == size => return Ok(()),
            Ok(_) | Err(object_store::Error::NotFound { .. }) => {}
            Err(error) => return Err(remote(error)),
        }
        match body {
            Body::Memory(bytes) => {
                self.store.put(&key, bytes.into()).await.map_err(remote).map(drop)
            }
            Body::File(file) if size <= PART_BYTES => {
                let (_file, bytes) = part(file, 0..size).await?;
                self.store.put(&key, bytes.into()).await.map_err(remote).map(drop)
            }
            Body::File(file) => self.keep_multipart(&key, file, size).await,
        }
    }

    async fn keep_multipart(
        &self,
        key: &Path,
        file: SpoolFile,
        size: u64,
    ) -> Result<(), ObjectsError> {
        let upload = self.store.create_multipart(key).await.map_err(remote)?;
        let (spool, note) = (Arc::clone(&self.spool), format!("{key}\n{upload}"));
        let note = blocking(move || {
            let mut file = spool.create(UPLOAD)?;
            file.file.write_all(note.as_bytes())?;
            file.file.sync_all()?;
            spool.sync()?;
            Ok(file)
        });
        // The note is removed only when nothing of the upload is left.
        let note = Note(Some(note.await?));
        let sent = match self.send_parts(key, &upload, file, size).await {
            Ok(parts) => self.store.complete_multipart(key, &upload, parts).await.map_err(remote),
            Err(error) => Err(error),
        };
        match sent {
            Ok(_) => note.settle(),
            Err(error) => {
                if self.store.abort_multipart(key, &upload).await.is_ok() {
                    note.settle();
                }
                return Err(error);
            }
        }
        Ok(())
    }

    async fn send_parts(
        &self,
        key: &Path,
        upload: &String,
        mut file: SpoolFile,
        size: u64,
    ) -> Result<Vec<PartId>, ObjectsError> {
        let mut parts = Vec::new();
        for (index, start) in (0..size).step_by(PART_BYTES as usize).enumerate() {
            let (back, bytes) = part(file, start..size.min(start + PART_BYTES)).await?;
            file = back;
            let sent = self.store.put_part(key, upload, index, bytes.into()).await;
            parts.push(sent.map_err(remote)?);
        }
        Ok(parts)
    }

    pub(crate) async fn read(
        &self,
        id: ObjectId,
        range: Range<u64>,
    ) -> Result<Bytes, ObjectsError> {
        let wanted = range.end - range.start;
        let bytes = self.store.get_range(&self.key(id), range).await;
        let bytes = bytes.map_err(|error| missing(error, id))?;
        match bytes.len() as u64 == wanted {
            true => Ok(bytes),
            false => Err(ObjectsError::Tampered(id)),
        }
    }

    /// The bytes of a range, and the size of the object.
    pub(crate) async fn stream(
        &self,
        id: ObjectId,
        range: Range<u64>,
    ) -> Result<(ByteStream, u64), ObjectsError> {
        let options = GetOptions { range: Some(GetRange::Bounded(range)), ..GetOptions::default() };
        let found = self.store.get_opts(&self.key(id), options).await;
        let found = found.map_err(|error| missing(error, id))?;
        let size = found.meta.size;
        Ok((found.into_stream().map_err(remote).boxed(), size))
    }

    pub(crate) async fn delete(&self, id: ObjectId) -> Result<(), ObjectsError> {
        match self.store.delete(&self.key(id)).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(remote(error)),
        }
    }

    pub(crate) async fn list(&self, shard: Shard) -> Result<Vec<StoredObject>, ObjectsError> {
        let folder = self.path(&shard.to_string());
        let objects: Vec<_> = self.store.list(Some(&folder)).try_collect().await.map_err(remote)?;
        let found = objects.into_iter().filter_map(|object| {
            let id = object.location.filename().and_then(ObjectId::parse)?;
            let found =
                StoredObject { id, size: object.size, modified: object.last_modified.into() };
            (object.location == self.key(id)).then_some(found)
        });
        Ok(found.collect())
    }

    /// Aborts multipart uploads that were not completed, then removes incoming files.
    pub(crate) async fn sweep(&self) -> Result<usize, ObjectsError> {
        let spool = Arc::clone(&self.spool);
        let names = blocking(move || spool.left_behind()).await?;
        let mut swept = 0;
        for name in names {
            let spool = Arc::clone(&self.spool);
            if name.ends_with(UPLOAD) {
                let (spool, name) = (Arc::clone(&spool), name.clone());
                let note = blocking(move || spool.read(&name)).await?;
                self.abort_upload(&note).await?;
            }
            blocking(move || spool.remove(&name)).await?;
            swept += 1;
        }
        Ok(swept)
    }

    async fn abort_upload(&self, note: &str) -> Result<(), ObjectsError> {
        let Some((key, upload)) = note.split_once('\n') else { return Ok(()) };
        match self.store.abort_multipart(&Path::from(key), &upload.to_owned()).await {
            // Completed or aborted before.
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(remote(error)),
        }
    }
}

/// The note of a multipart upload, kept on disk until nothing of the upload is left.
struct Note(Option<SpoolFile>);

impl Note {
    fn settle(mut self) {
        self.0.take();
    }
}

impl Drop for Note {
    fn drop(&mut self) {
        if let Some(file) = self.0.take() {
            file.abandon();
        }
    }
}

async fn part(file: SpoolFile, range: Range<u64>) -> Result<(SpoolFile, Bytes), ObjectsError> {
    blocking(move || {
        let bytes = crate::folder::read_at(&file.file, range)?;
        Ok((file, bytes))
    })
    .await
}

fn missing(error: object_store::Error, id: ObjectId) -> ObjectsError {
    match error {
        object_store::Error::NotFound { .. } => ObjectsError::Missing(id),
        error => remote(error),
    }
}

fn remote(error: object_store::Error) -> ObjectsError {
    ObjectsError::Remote(error.to_string())
}
