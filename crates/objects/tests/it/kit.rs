//! Helpers of the cases.

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt};
use greenroom_objects::{Backend, BucketSettings, ObjectId, Objects, ObjectsError, Shard, Staged};
use greenroom_testkit::s3::{ACCESS_KEY_ID, BUCKET, S3Server, SECRET_ACCESS_KEY};
use std::convert::Infallible;
use std::path::Path;

pub(crate) const OWNER: &str = "the database of the test";

pub(crate) fn folder(path: &Path) -> Backend {
    Backend::Folder(path.to_owned())
}

pub(crate) fn bucket(server: &S3Server, spool: &Path) -> BucketSettings {
    let _ = rustls::crypto::ring::default_provider().install_default();
    BucketSettings {
        bucket: BUCKET.to_owned(),
        prefix: "greenroom/bytes".to_owned(),
        endpoint: Some(server.endpoint()),
        region: "us-east-1".to_owned(),
        access_key_id: ACCESS_KEY_ID.to_owned(),
        secret_access_key: SECRET_ACCESS_KEY.to_owned(),
        allow_http: true,
        spool: spool.to_owned(),
    }
}

/// Bytes that differ for every seed.
pub(crate) fn bytes(seed: u8, length: usize) -> Bytes {
    (0..length).map(|at| (at as u8).wrapping_mul(31).wrapping_add(seed) ^ (at >> 8) as u8).collect()
}

pub(crate) async fn put(objects: &Objects, bytes: &Bytes) -> ObjectId {
    let pieces: Vec<_> = bytes.chunks(100_000).map(Bytes::copy_from_slice).collect();
    let pieces = futures_util::stream::iter(pieces.into_iter().map(Ok::<_, Infallible>));
    let staged = objects.stage(pieces, u64::MAX).await.unwrap();
    let id = staged.id();
    objects.keep(staged).await.unwrap();
    id
}

pub(crate) async fn put_small(objects: &Objects, text: &'static str) -> ObjectId {
    let staged = Staged::from_bytes(Bytes::from_static(text.as_bytes()));
    let id = staged.id();
    objects.keep(staged).await.unwrap();
    id
}

pub(crate) async fn whole(
    objects: &Objects,
    id: ObjectId,
    size: u64,
) -> Result<Bytes, ObjectsError> {
    let pieces = objects.stream(id, 0..size).await?;
    let pieces: Vec<Bytes> = pieces.try_collect().await?;
    Ok(pieces.concat().into())
}

/// All stored objects.
pub(crate) async fn all(objects: &Objects) -> Vec<(ObjectId, u64)> {
    let shards = futures_util::stream::iter(Shard::all());
    let lists = shards.then(async |shard| objects.list(shard).await.unwrap());
    let found: Vec<_> = lists.collect().await;
    found.into_iter().flatten().map(|found| (found.id, found.size)).collect()
}
