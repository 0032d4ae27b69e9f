//! A remote runner against a small real server.

use crate::process::{completed, delta, message, probe, run_agent};
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::server::{ErrorResponse, Request, Response};
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::{WebSocketStream, accept_hdr_async};

const PATIENCE: Duration = Duration::from_secs(20);

/// A process that never outlives its test.
struct Started(Child);

impl Started {
    fn new(listener: &TcpListener) -> Self {
        Self(command(listener).spawn().unwrap())
    }

    async fn wait(mut self) -> ExitStatus {
        let ended = tokio::task::spawn_blocking(move || self.0.wait().unwrap());
        timeout(PATIENCE, ended).await.expect("the runner ends").unwrap()
    }
}

fn command(listener: &TcpListener) -> Command {
    let url = format!("ws://{}", listener.local_addr().unwrap());
    let mut command = probe();
    command.env("GREENROOM_URL", url).env("GREENROOM_RUNNER_TOKEN", "secret-1");
    command
}

impl Drop for Started {
    fn drop(&mut self) {
        // Fails only when the process has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[expect(clippy::result_large_err, reason = "the callback's type is the library's")]
fn check(request: &Request, response: Response) -> Result<Response, ErrorResponse> {
    assert_eq!(request.uri().path(), "/v1/runners/connect");
    assert_eq!(request.headers()["authorization"], "Bearer secret-1");
    Ok(response)
}

async fn accept(listener: &TcpListener) -> WebSocketStream<TcpStream> {
    let (stream, _) = timeout(PATIENCE, listener.accept()).await.expect("it connects").unwrap();
    accept_hdr_async(stream, check).await.unwrap()
}

async fn say(socket: &mut WebSocketStream<TcpStream>, message: Value) {
    socket.send(Message::text(message.to_string())).await.unwrap();
}

async fn hear(socket: &mut WebSocketStream<TcpStream>) -> Value {
    let frame = timeout(PATIENCE, socket.next()).await.expect("it speaks").unwrap().unwrap();
    serde_json::from_str(frame.to_text().unwrap()).expect("one message per frame")
}

#[tokio::test]
async fn a_remote_runner_replies_reconnects_and_shuts_down() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let runner = Started::new(&listener);

    let mut socket = accept(&listener).await;
    say(&mut socket, run_agent(1, "r1", "Ada", json!({}))).await;
    let expected = [
        delta("r1", 1, "Hello, "),
        delta("r1", 2, "Ada"),
        message("r1", 3, "Hello, Ada"),
        completed("r1", 4),
        json!({ "jsonrpc": "2.0", "id": 1, "result": {} }),
    ];
    for expected in expected {
        assert_eq!(hear(&mut socket).await, expected);
    }
    say(&mut socket, run_agent(2, "r2", "", json!({ "do": "wait" }))).await;
    drop(socket);

    let mut socket = accept(&listener).await;
    // The run of the lost connection is over: its id is free again.
    say(&mut socket, run_agent(1, "r2", "again", json!({}))).await;
    assert_eq!(hear(&mut socket).await, delta("r2", 1, "Hello, "));
    for _ in 0..4 {
        hear(&mut socket).await;
    }
    say(&mut socket, json!({ "jsonrpc": "2.0", "id": 3, "method": "shutdown" })).await;
    assert_eq!(hear(&mut socket).await, json!({ "jsonrpc": "2.0", "id": 3, "result": {} }));
    assert_eq!(runner.wait().await.code(), Some(0));
}

#[tokio::test]
async fn a_refused_runner_says_why_and_tries_again() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut command = command(&listener);
    command.stderr(Stdio::piped());
    let mut runner = Started(command.spawn().unwrap());
    let mut said = BufReader::new(runner.0.stderr.take().unwrap()).lines();
    for reason in ["runner `far` is connected already", "\u{4e0d}"] {
        let mut socket = accept(&listener).await;
        say(&mut socket, json!({ "jsonrpc": "2.0", "id": 1, "method": "nothing" })).await;
        hear(&mut socket).await;
        let close = CloseFrame { code: CloseCode::Policy, reason: reason.into() };
        socket.close(Some(close)).await.unwrap();
        let line = said.next().unwrap().unwrap();
        assert_eq!(line, format!("the host rejected the runner: {reason}"));
    }
}

#[test]
fn a_remote_runner_needs_both_variables() {
    for (set, missing) in
        [("GREENROOM_URL", "GREENROOM_RUNNER_TOKEN"), ("GREENROOM_RUNNER_TOKEN", "GREENROOM_URL")]
    {
        let mut command = probe();
        let output = command.env(set, "ws://127.0.0.1:1").stderr(Stdio::piped()).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains(&format!("`{set}` is set but `{missing}` is not")), "{said}");
    }
}

#[tokio::test]
async fn a_rejected_token_ends_the_runner() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let runner = Started::new(&listener);
    let (mut stream, _) = timeout(PATIENCE, listener.accept()).await.expect("it connects").unwrap();
    let mut request = [0; 4096];
    let _ = stream.read(&mut request).await.unwrap();
    stream.write_all(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n").await.unwrap();
    assert_eq!(runner.wait().await.code(), Some(1));
}
