//! What holds for every backend.

use super::kit::*;
use bytes::Bytes;
use futures_util::StreamExt;
use greenroom_objects::{Backend, ObjectId, Objects, ObjectsError, Staged};
use greenroom_testkit::s3::S3Server;

/// Runs a case in a folder and in a bucket.
macro_rules! everywhere {
    ($($case:ident),* $(,)?) => { $(
        mod $case {
            use super::*;

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn in_a_folder() {
                let backend = tempfile::tempdir().unwrap();
                super::$case(&folder(&backend.path().join("bytes"))).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn in_a_bucket() {
                let (server, spool) = (S3Server::start(), tempfile::tempdir().unwrap());
                super::$case(&Backend::Bucket(bucket(&server, spool.path()))).await;
            }
        }
    )* };
}

everywhere!(
    bytes_are_returned_as_they_were_stored,
    ranges_are_read,
    the_same_bytes_are_stored_once,
    bytes_that_were_not_kept_leave_nothing_behind,
    deleted_bytes_are_gone,
    a_backend_of_another_database_is_refused,
);

async fn open(backend: &Backend) -> Objects {
    Objects::open(backend, OWNER).await.unwrap()
}

async fn bytes_are_returned_as_they_were_stored(backend: &Backend) {
    let objects = open(backend).await;
    // None, a few, more than fits in memory, more than one part of an upload.
    for length in [0, 10, 1_000_000, 20_000_000] {
        let bytes = bytes(7, length);
        let id = put(&objects, &bytes).await;
        assert_eq!(id, ObjectId::of(&bytes));
        assert_eq!(whole(&objects, id, length as u64).await.unwrap(), bytes, "{length}");
    }
    // They survive a restart.
    let objects = open(backend).await;
    assert_eq!(whole(&objects, ObjectId::of(&bytes(7, 10)), 10).await.unwrap(), bytes(7, 10));
}

async fn ranges_are_read(backend: &Backend) {
    let objects = open(backend).await;
    let bytes = bytes(1, 700_000);
    let id = put(&objects, &bytes).await;
    for (start, end) in [(0, 1), (0, 700_000), (699_999, 700_000), (262_143, 524_289), (5, 5)] {
        let part = objects.read(id, start..end).await.unwrap();
        assert_eq!(part, bytes[start as usize..end as usize], "{start}..{end}");
        let pieces: Vec<Bytes> =
            objects.stream(id, start..end).await.unwrap().map(Result::unwrap).collect().await;
        assert_eq!(pieces.concat(), bytes[start as usize..end as usize], "{start}..{end}");
    }
    let beyond = objects.read(id, 699_000..700_001).await.unwrap_err();
    assert!(matches!(beyond, ObjectsError::Tampered(_)), "{beyond}");
}

async fn the_same_bytes_are_stored_once(backend: &Backend) {
    let objects = open(backend).await;
    let bytes = bytes(2, 300_000);
    let (one, other) = tokio::join!(put(&objects, &bytes), put(&objects, &bytes));
    assert_eq!(one, other);
    put(&objects, &bytes).await;
    assert_eq!(all(&objects).await, [(one, 300_000)]);
}

async fn bytes_that_were_not_kept_leave_nothing_behind(backend: &Backend) {
    let objects = open(backend).await;
    let too_many = futures_util::stream::repeat_with(|| Ok::<_, std::io::Error>(bytes(3, 100_000)));
    let refused = objects.stage(too_many, 1_000_000).await.err().unwrap();
    assert!(matches!(refused, ObjectsError::TooLarge { bytes_max: 1_000_000 }), "{refused}");
    let broken = futures_util::stream::iter([
        Ok(bytes(3, 900_000)),
        Err(std::io::Error::from(std::io::ErrorKind::ConnectionReset)),
    ]);
    let refused = objects.stage(broken, 1_000_000).await.err().unwrap();
    assert!(matches!(refused, ObjectsError::Interrupted(_)), "{refused}");
    drop(Staged::from_bytes(bytes(3, 10)));
    assert_eq!(all(&objects).await, []);
    assert_eq!(objects.sweep().await.unwrap(), 0);
}

async fn deleted_bytes_are_gone(backend: &Backend) {
    let objects = open(backend).await;
    let id = put_small(&objects, "hello").await;
    objects.delete(id).await.unwrap();
    objects.delete(id).await.unwrap();
    let missing = objects.read(id, 0..5).await.unwrap_err();
    assert!(matches!(missing, ObjectsError::Missing(found) if found == id), "{missing}");
    let missing = objects.stream(id, 0..5).await.err().unwrap();
    assert!(matches!(missing, ObjectsError::Missing(_)), "{missing}");
    put_small(&objects, "hello").await;
    assert_eq!(objects.read(id, 1..3).await.unwrap(), "el");
}

async fn a_backend_of_another_database_is_refused(backend: &Backend) {
    put_small(&open(backend).await, "mine").await;
    let refused = Objects::open(backend, "another database").await.err().unwrap();
    assert!(matches!(refused, ObjectsError::Foreign { .. }), "{refused}");
    assert_eq!(all(&open(backend).await).await.len(), 1);
}
