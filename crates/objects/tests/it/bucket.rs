//! Failures that only a bucket has.

use super::kit::*;
use greenroom_objects::{Backend, Objects, ObjectsError, Staged};
use greenroom_testkit::s3::S3Server;
use std::fs;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_secret_is_refused_by_the_server() {
    let (server, spool) = (S3Server::start(), tempfile::tempdir().unwrap());
    let mut backend = bucket(&server, spool.path());
    backend.secret_access_key = "another-secret".to_owned();
    let error = Objects::open(&Backend::Bucket(backend), OWNER).await.err().unwrap();
    assert!(matches!(&error, ObjectsError::Remote(_)), "{error}");
    assert!(!error.to_string().contains("another-secret"));
    assert_eq!(server.objects().len(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn http_without_tls_has_to_be_allowed() {
    let (server, spool) = (S3Server::start(), tempfile::tempdir().unwrap());
    let mut backend = bucket(&server, spool.path());
    backend.allow_http = false;
    assert!(Objects::open(&Backend::Bucket(backend), OWNER).await.is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_does_not_answer_is_a_transient_failure() {
    let (server, spool) = (S3Server::start(), tempfile::tempdir().unwrap());
    let objects =
        Objects::open(&Backend::Bucket(bucket(&server, spool.path())), OWNER).await.unwrap();
    server.set_silent(true);
    let error = objects.keep(Staged::from_bytes("x".into())).await.unwrap_err();
    assert!(error.is_passing(), "{error}");
    server.set_silent(false);
    assert_eq!(all(&objects).await, []);
    put_small(&objects, "x").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_multipart_upload_is_aborted() {
    let (server, spool) = (S3Server::start(), tempfile::tempdir().unwrap());
    let backend = Backend::Bucket(bucket(&server, spool.path()));
    let objects = Objects::open(&backend, OWNER).await.unwrap();
    let pieces = futures_util::stream::iter(Some(Ok::<_, std::io::Error>(bytes(5, 20_000_000))));
    let staged = objects.stage(pieces, u64::MAX).await.unwrap();
    let keeping = objects.keep(staged);
    // The upload is dropped once its first part has arrived.
    let arrived = async {
        while server.parts().is_empty() {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        _ = keeping => panic!("it was complete before its first part was seen"),
        () = arrived => {}
    }
    assert_eq!(all(&objects).await, []);
    let left: Vec<_> = fs::read_dir(spool.path().join("incoming")).unwrap().flatten().collect();
    assert_eq!(left.len(), 1, "{left:?}");
    // The next start aborts it.
    let objects = Objects::open(&backend, OWNER).await.unwrap();
    assert_eq!(objects.sweep().await.unwrap(), 1);
    assert_eq!(server.parts(), Vec::<std::path::PathBuf>::new());
    assert_eq!(all(&objects).await, []);
    assert_eq!(fs::read_dir(spool.path().join("incoming")).unwrap().count(), 0);
}
