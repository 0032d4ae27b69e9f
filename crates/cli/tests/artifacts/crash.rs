//! The power goes out in the middle of an upload: afterwards all of it is there, or nothing.

use crate::stage::{PATIENCE, Stage};
use greenroom_testkit::wait::wait_for;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

#[tokio::test]
async fn a_kill_during_a_slow_upload_leaves_nothing() {
    let mut stage = Stage::open("").await;
    let before = stage.keep("", b"kept before").await;
    let token = std::fs::read_to_string(stage.host.data().join("admin-token")).unwrap();
    let mut stream = TcpStream::connect(stage.address()).await.unwrap();
    let head = format!(
        "POST /v1/artifacts HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {}\r\n\
         content-length: 50000000\r\n\r\n",
        token.trim()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(&vec![1; 2_000_000]).await.unwrap();
    wait_for("bytes on their way", PATIENCE, async || (stage.bytes().1.len() == 1).then_some(()))
        .await;
    stage.host.kill();
    assert_eq!(stage.bytes().1.len(), 1);
    stage.host.start_again().await;
    wait_for("the sweep", PATIENCE, async || stage.bytes().1.is_empty().then_some(())).await;
    assert_eq!(stage.bytes().0.len(), 1);
    assert_eq!(stage.download(&before).await.body, b"kept before");
}

#[tokio::test]
async fn a_kill_after_the_answer_loses_nothing() {
    let mut stage = Stage::open("").await;
    let mut kept = Vec::new();
    for number in 0..20_u8 {
        let bytes = vec![number; 300_000];
        kept.push((stage.keep("", &bytes).await, bytes));
    }
    stage.host.kill();
    stage.host.start_again().await;
    for (id, bytes) in kept {
        assert_eq!(stage.download(&id).await.body, bytes);
    }
}

#[cfg(feature = "faults")]
mod faults {
    use super::*;
    use crate::stage::upload;
    use greenroom_testkit::http::Request;

    /// The host dies at this place while an upload is under way; nothing was answered.
    async fn die_at(place: &str) {
        let mut stage = Stage::prepare("");
        stage.host.set_fault(Some(place.to_owned()));
        stage.host.start_again().await;
        let bytes = vec![3; 400_000];
        stage.api.send(upload("", "", &bytes)).await.unwrap_err();
        stage.host.died().await;
        stage.host.set_fault(None);
        stage.host.start_again().await;
        stage.no_bytes_are_left().await;
        let listed = stage.ask(Request::get("/readyz")).await;
        assert_eq!(listed.status, 200);
        // A second try is a first try.
        let id = stage.keep("", &bytes).await;
        assert_eq!(stage.download(&id).await.body, bytes);
    }

    #[tokio::test]
    async fn a_kill_before_the_bytes_have_their_place_leaves_nothing() {
        die_at("before_artifact_kept:1").await;
    }

    #[tokio::test]
    async fn a_kill_between_the_bytes_and_their_row_leaves_nothing() {
        die_at("after_artifact_kept:1").await;
    }

    #[tokio::test]
    async fn a_kill_when_all_bytes_have_come_leaves_nothing() {
        die_at("artifact_staged:1").await;
    }
}
