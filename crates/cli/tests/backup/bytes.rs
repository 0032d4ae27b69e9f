//! Artifacts in a bucket: backed up from it, restored into another place.

use crate::scene::{back_up, prepare, restore, run, upload};
use greenroom_testkit::host::TestHost;
use greenroom_testkit::http::Request;
use greenroom_testkit::s3::{ACCESS_KEY_ID, BUCKET, S3Server, SECRET_ACCESS_KEY};

fn in_bucket(server: &S3Server, prefix: &str) -> TestHost {
    let host = prepare(&format!(
        "[artifacts]\nurl = \"s3://{BUCKET}/{prefix}\"\nendpoint = \"{}\"\nallow_http = true\n\
         access_key_id = {{ file = \"secrets/key\" }}\n\
         secret_access_key = {{ file = \"secrets/secret\" }}\n",
        server.endpoint()
    ));
    std::fs::write(host.folder().join("secrets/key"), ACCESS_KEY_ID).unwrap();
    std::fs::write(host.folder().join("secrets/secret"), SECRET_ACCESS_KEY).unwrap();
    host
}

async fn download(host: &TestHost, id: &str) -> Vec<u8> {
    let answer = host.api().send(Request::get(format!("/v1/artifacts/{id}"))).await.unwrap();
    assert_eq!(answer.status, 200);
    answer.body().await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bytes_go_from_a_bucket_to_another_and_to_a_folder() {
    let server = S3Server::start();
    let mut host = in_bucket(&server, "first");
    host.start_again().await;
    let large: Vec<u8> = (0..9_000_000_u32).map(|at| (at % 251) as u8).collect();
    let mut ids = Vec::new();
    for bytes in [large.clone(), b"small".to_vec(), Vec::new()] {
        let (_, kept) = host.api().json(upload(bytes)).await.unwrap();
        ids.push(kept["artifact_id"].as_str().unwrap().to_owned());
    }
    let file = back_up(&host, "backup.tar").await;
    let mut second = in_bucket(&server, "second");
    let config = second.folder().join("greenroom.toml");
    let told = restore(&file, &second, &["--config", config.to_str().unwrap()]).await;
    assert_eq!(told.json()["artifacts_in"], format!("s3://{BUCKET}/second"), "{told:?}");
    second.start_again().await;
    let mut third = prepare("");
    assert_eq!(restore(&file, &third, &[]).await.json()["artifacts"], 3);
    third.start_again().await;
    for host in [&second, &third] {
        assert!(download(host, &ids[0]).await == large);
        assert_eq!(download(host, &ids[1]).await, b"small");
        assert_eq!(download(host, &ids[2]).await, b"");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bytes_that_are_missing_though_they_are_needed_fail_the_backup() {
    let mut host = prepare("");
    host.start_again().await;
    let (_, kept) = host.api().json(upload(b"lost".to_vec())).await.unwrap();
    let hash = kept["sha256"].as_str().unwrap();
    let bytes = host.data().join("artifacts").join(&hash[..2]).join(hash);
    std::fs::remove_file(bytes).unwrap();
    let file = host.folder().join("backup.tar");
    let told = run(crate::scene::create(&host, &file)).await;
    assert_eq!(told.code, 1, "{told:?}");
    assert!(told.err.contains(hash) && told.err.contains("cannot read the bytes"), "{told:?}");
    assert!(!file.exists() && !host.folder().join("backup.tar.part").exists());
}
