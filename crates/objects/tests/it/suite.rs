//! What holds wherever bytes are kept.

use super::kit::*;
use bytes::Bytes;
use futures_util::StreamExt;
use greenroom_objects::{ObjectId, Objects, ObjectsError, Place, Staged};
use greenroom_testkit::s3::S3Server;

/// Runs a case in a folder and in a bucket.
macro_rules! everywhere {
    ($($case:ident),* $(,)?) => { $(
        mod $case {
            use super::*;

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn in_a_folder() {
                let place = tempfile::tempdir().unwrap();
                super::$case(&folder(&place.path().join("bytes"))).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn in_a_bucket() {
                let (server, spool) = (S3Server::start(), tempfile::tempdir().unwrap());
                super::$case(&Place::Bucket(bucket(&server, spool.path()))).await;
            }
        }
    )* };
}

everywhere!(
    bytes_come_back_as_they_went_in,
    parts_are_read_as_asked,
    the_same_bytes_are_kept_once,
    bytes_that_were_not_kept_leave_nothing,
    deleted_bytes_are_gone,
    a_place_of_another_database_is_refused,
);

async fn open(place: &Place) -> Objects {
    Objects::open(place, OWNER).await.unwrap()
}

async fn bytes_come_back_as_they_went_in(place: &Place) {
    let objects = open(place).await;
    // None, a few, more than memory takes, more than one part of an upload.
    for length in [0, 10, 1_000_000, 20_000_000] {
        let bytes = bytes(7, length);
        let id = put(&objects, &bytes).await;
        assert_eq!(id, ObjectId::of(&bytes));
        assert_eq!(whole(&objects, id, length as u64).await.unwrap(), bytes, "{length}");
    }
    // The next start finds them too.
    let objects = open(place).await;
    assert_eq!(whole(&objects, ObjectId::of(&bytes(7, 10)), 10).await.unwrap(), bytes(7, 10));
}

async fn parts_are_read_as_asked(place: &Place) {
    let objects = open(place).await;
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

async fn the_same_bytes_are_kept_once(place: &Place) {
    let objects = open(place).await;
    let bytes = bytes(2, 300_000);
    let (one, other) = tokio::join!(put(&objects, &bytes), put(&objects, &bytes));
    assert_eq!(one, other);
    put(&objects, &bytes).await;
    assert_eq!(all(&objects).await, [(one, 300_000)]);
}

async fn bytes_that_were_not_kept_leave_nothing(place: &Place) {
    let objects = open(place).await;
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

async fn deleted_bytes_are_gone(place: &Place) {
    let objects = open(place).await;
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

async fn a_place_of_another_database_is_refused(place: &Place) {
    put_small(&open(place).await, "mine").await;
    let refused = Objects::open(place, "another database").await.err().unwrap();
    assert!(matches!(refused, ObjectsError::Foreign { .. }), "{refused}");
    assert_eq!(all(&open(place).await).await.len(), 1);
}
