//! What is not taken, and what is not given out; nothing half is left behind.

use crate::stage::{PNG, Stage, upload};
use greenroom_testkit::http::Request;
use std::os::unix::fs::symlink;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

#[tokio::test]
async fn names_that_lead_elsewhere_are_refused() {
    let stage = Stage::open("").await;
    for name in [
        "..",
        ".",
        "",
        "../x",
        "a/b",
        "/etc/passwd",
        "a%2Fb",
        "%2e%2e%2fx",
        "a%5Cb",
        "a%00b",
        "a%0d%0aSet-Cookie:x",
        &"x".repeat(256),
    ] {
        let reply = stage.upload(&format!("name={name}"), "text/plain", b"x").await;
        reply.refused(400, "invalid_argument");
    }
    assert_eq!(stage.bytes(), (vec![], vec![]));
}

#[tokio::test]
async fn bytes_that_disagree_with_their_type_are_refused() {
    let stage = Stage::open("").await;
    for (mime_type, bytes) in [
        ("image/png", b"<html><script>alert(1)</script></html>".as_slice()),
        ("image/jpeg", PNG),
        ("text/plain", PNG),
        ("application/json", b"{\"a\":\0}"),
        ("application/pdf", b"#!/bin/sh\nrm -rf /\n"),
        ("no type", b"x"),
    ] {
        stage.upload("", mime_type, bytes).await.refused(400, "invalid_argument");
    }
    assert_eq!(stage.bytes(), (vec![], vec![]));
    let found = stage.upload("", "", PNG).await.json();
    assert_eq!(found["mime_type"], "image/png");
}

#[tokio::test]
async fn ids_that_were_not_given_out_lead_nowhere() {
    let stage = Stage::open("").await;
    let id = stage.keep("", b"x").await;
    let mut near = id.clone().into_bytes();
    let last = near.last_mut().unwrap();
    *last = if *last == b'0' { b'1' } else { b'0' };
    let near = String::from_utf8(near).unwrap();
    let hash = stage.bytes().0[0].clone();
    for guess in
        [near.as_str(), &id.to_uppercase(), &hash, "art_", "..%2fowner", "..%2f..%2fadmin-token"]
    {
        stage.download(guess).await.refused(404, "not_found");
    }
}

#[tokio::test]
async fn too_many_bytes_are_refused_and_none_are_kept() {
    let stage = Stage::open("[limits]\nartifact_bytes = 1048576\n").await;
    let bytes = vec![7; 3 << 20];
    stage.upload("", "", &bytes).await.refused(413, "payload_too_large");
    assert_eq!(stage.bytes(), (vec![], vec![]));
    stage.keep("", &bytes[..1 << 20]).await;
}

#[tokio::test]
async fn an_upload_that_breaks_off_leaves_nothing() {
    let stage = Stage::open("").await;
    let token = std::fs::read_to_string(stage.host.data().join("admin-token")).unwrap();
    let mut stream = TcpStream::connect(stage.address()).await.unwrap();
    let head = format!(
        "POST /v1/artifacts HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {}\r\n\
         content-length: 2000000\r\n\r\n",
        token.trim()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(&vec![1; 1_000_000]).await.unwrap();
    greenroom_testkit::wait::wait_for("bytes on their way", crate::stage::PATIENCE, async || {
        (stage.bytes().1.len() == 1).then_some(())
    })
    .await;
    drop(stream);
    stage.no_bytes_are_left().await;
}

#[tokio::test]
async fn a_disk_that_does_not_take_bytes_is_told_and_nothing_is_half() {
    let stage = Stage::open("").await;
    let kept = stage.keep("", b"kept before").await;
    let incoming = stage.folder().join("incoming");
    std::fs::remove_dir_all(&incoming).unwrap();
    let reply = stage.upload("", "", b"small").await;
    reply.refused(503, "runtime_error");
    assert_eq!(reply.json()["error"]["retryable"], true);
    stage.upload("", "", &vec![1; 1_000_000]).await.refused(503, "runtime_error");
    assert_eq!(stage.download(&kept).await.body, b"kept before");
    assert_eq!(stage.bytes().0.len(), 1);
}

#[tokio::test]
async fn a_link_among_the_bytes_gives_nothing_away() {
    let stage = Stage::open("").await;
    let id = stage.keep("", b"public bytes").await;
    let hash = stage.bytes().0[0].clone();
    let path = stage.folder().join(&hash[..2]).join(&hash);
    let secret = stage.host.data().join("admin-token");
    std::fs::remove_file(&path).unwrap();
    symlink(&secret, &path).unwrap();
    stage.download(&id).await.refused(500, "runtime_error");
    let part = Request::get(format!("/v1/artifacts/{id}")).header("range", "bytes=0-3");
    stage.ask(part).await.refused(500, "runtime_error");
    // The same bytes again take the place of the link, not of what it leads to.
    let token = std::fs::read_to_string(&secret).unwrap();
    stage.ask(upload("", "", b"public bytes")).await;
    assert_eq!(stage.download(&id).await.body, b"public bytes");
    assert_eq!(std::fs::read_to_string(&secret).unwrap(), token);
}
