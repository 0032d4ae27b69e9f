//! A host whose artifacts are in a bucket of a real S3-compatible server.

use crate::stage::{PATIENCE, Stage};
use greenroom_testkit::host::Started;
use greenroom_testkit::s3::{ACCESS_KEY_ID, BUCKET, S3Server, SECRET_ACCESS_KEY};
use greenroom_testkit::wait::wait_for;
use serde_json::json;

fn prepare(server: &S3Server, secret: &str) -> Stage {
    let artifacts = format!(
        "[artifacts]\nurl = \"s3://{BUCKET}/greenroom\"\nendpoint = \"{}\"\nallow_http = true\n\
         access_key_id = {{ file = \"key\" }}\nsecret_access_key = {{ file = \"secret\" }}\n",
        server.endpoint()
    );
    let stage = Stage::prepare(&artifacts);
    std::fs::write(stage.host.folder().join("key"), ACCESS_KEY_ID).unwrap();
    std::fs::write(stage.host.folder().join("secret"), secret).unwrap();
    stage
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn artifacts_live_in_the_bucket_and_survive_a_kill() {
    let server = S3Server::start();
    let mut stage = prepare(&server, SECRET_ACCESS_KEY);
    stage.host.start_again().await;
    let large: Vec<u8> = (0..20_000_000_u32).map(|at| (at % 253) as u8).collect();
    let large_id = stage.keep("name=large", &large).await;
    let steps = json!([
        ["call", "artifacts.create", {"content_base64": "aGVsbG8="}],
        ["call", "artifacts.read_range", {"artifact_id": "$0.artifact_id", "offset": 1, "length": 3}],
        ["call", "artifacts.open_stream", {"artifact_id": "$0.artifact_id"}],
    ]);
    let answers = stage.play("artist", "c", steps).await;
    assert_eq!(answers[1]["ok"]["data_base64"], "ZWxs");
    assert_eq!(answers[2]["items"], json!([{"offset": 0, "data_base64": "aGVsbG8="}]));
    stage.keep("expires_in_s=1", b"short-lived").await;
    // The mark of the owner and two objects.
    wait_for("the collection", PATIENCE, async || (server.objects().len() == 3).then_some(()))
        .await;
    stage.host.kill();
    stage.host.start_again().await;
    assert_eq!(stage.download(&large_id).await.body, large);
    server.set_silent(true);
    stage.upload("", "", b"x").await.refused(503, "runtime_error");
    server.set_silent(false);
    stage.keep("", b"x").await;
    assert!(!stage.host.log().contains(SECRET_ACCESS_KEY));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_that_cannot_use_its_bucket_says_so_and_does_not_start() {
    let server = S3Server::start();
    let mut stage = prepare(&server, "a-wrong-secret-key");
    assert!(matches!(stage.host.try_start().await, Started::Died(_)));
    let log = stage.host.log();
    assert!(log.contains("cannot use `s3://artifacts/greenroom` for artifacts"), "{log}");
    assert!(!log.contains("a-wrong-secret-key"), "{log}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_databases_do_not_share_a_bucket() {
    let server = S3Server::start();
    let mut first = prepare(&server, SECRET_ACCESS_KEY);
    first.host.start_again().await;
    let id = first.keep("", b"of the first").await;
    let mut second = prepare(&server, SECRET_ACCESS_KEY);
    assert!(matches!(second.host.try_start().await, Started::Died(_)));
    assert!(second.host.log().contains("holds the objects of another database"));
    assert_eq!(first.download(&id).await.body, b"of the first");
}
