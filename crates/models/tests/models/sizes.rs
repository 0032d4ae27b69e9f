//! Endless responses, redirects and private addresses.

use crate::kit::*;
use greenroom_models::{Model, ModelError};
use serde_json::json;

const MIB: usize = 1024 * 1024;

/// The error of an answer of 200 MB made of these bytes, and what was taken of it.
async fn flooded(chunk: String) -> (ModelError, usize) {
    let head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n".to_vec();
    let times = 200 * MIB / chunk.len();
    let flood = vec![Step::Write(head), Step::Flood(chunk.into_bytes(), times)];
    let server = Server::start(vec![flood, hello()]).await;
    let error = match ask_once(&model(&server)).await {
        Err(error) => error,
        Ok((_, error)) => error.unwrap(),
    };
    assert_eq!(server.requests().len(), 1);
    (error, server.flooded_bytes())
}

#[tokio::test]
async fn a_line_without_end_is_dropped_at_the_limit() {
    let (error, taken) = flooded("x".repeat(65536)).await;
    assert_eq!(error, ModelError::TooLarge(8 * MIB));
    assert!(taken < 40 * MIB, "{taken}");
}

#[tokio::test]
async fn a_text_without_end_is_dropped_at_the_limit() {
    let (error, taken) = flooded(delta(&"x".repeat(65536))).await;
    assert_eq!(error, ModelError::TooLarge(32 * MIB));
    assert!(taken < 80 * MIB, "{taken}");
}

#[tokio::test]
async fn a_stream_that_says_nothing_without_end_is_dropped_at_the_limit() {
    let (error, taken) = flooded(format!(": {}\n\n", "x".repeat(65536))).await;
    assert_eq!(error, ModelError::TooLarge(128 * MIB));
    assert!(taken < 180 * MIB, "{taken}");
}

#[tokio::test]
async fn calls_without_end_are_dropped_at_the_limit() {
    let calls: Vec<_> = (0..200)
        .map(|at| json!({"index": at, "function": {"name": "clock", "arguments": "{}"}}))
        .collect();
    let event = json!({"choices": [{"index": 0, "delta": {"tool_calls": calls}}]});
    let (error, _) = flooded(format!("data: {event}\n\n")).await;
    assert_eq!(error, ModelError::InvalidResponse("it contains more than 1024 calls".to_owned()));
}

#[tokio::test]
async fn an_endless_error_response_is_read_up_to_a_limit() {
    let head = b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec();
    let flood = Step::Flood(vec![b'x'; 65536], 200 * MIB / 65536);
    let server = Server::start(vec![vec![Step::Write(head), flood]]).await;
    let error = ask_once(&model(&server)).await.unwrap_err();
    let message = format!("{}…", "x".repeat(500));
    assert_eq!(error, ModelError::Rejected { status: 400, message });
    assert!(server.flooded_bytes() < 40 * MIB);
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let target = Server::start(vec![hello()]).await;
    let location = [("location", target.url.as_str())];
    let server = Server::start(vec![answer(307, &location, "")]).await;
    let message = "redirects are not followed".to_owned();
    let error = ask_once(&model(&server)).await.unwrap_err();
    assert_eq!(error, ModelError::Rejected { status: 307, message });
    assert_eq!((server.requests().len(), target.requests().len()), (1, 0));
}

#[tokio::test]
async fn a_private_address_is_refused_unless_it_is_allowed() {
    let server = Server::start(vec![hello()]).await;
    let mut closed = settings(&server);
    closed.allow_private = false;
    let error = Model::new(closed.clone()).unwrap_err();
    assert_eq!(error.to_string(), "the model `m` cannot be reached: the address is private");
    closed.base_url = Some(server.url.replace("127.0.0.1", "localhost"));
    closed.retries = 0;
    let error = ask_once(&Model::new(closed).unwrap()).await.unwrap_err();
    assert_eq!(error, ModelError::Unavailable("the name has no public address".to_owned()));
    assert_eq!(server.requests().len(), 0);
}
