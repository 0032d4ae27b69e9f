//! Servers over streamable HTTP: an unmodified one, one that redirects, and one with endless answers.

use crate::kit::{
    Kit, call, eventually, failure, installed_servers, object, refused, text, watched, within,
};
use greenroom_tools::{McpServer, McpStatus, McpTransport, Status};
use serde_json::json;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// The server `everything`; it is killed with its test.
struct Everything {
    process: std::process::Child,
    port: u16,
}

impl Everything {
    fn start(port: u16) -> Self {
        let script = "node_modules/@modelcontextprotocol/server-everything/dist/index.js";
        #[expect(clippy::disallowed_methods, reason = "the test starts the server that it calls")]
        let process = std::process::Command::new("node")
            .args([script, "streamableHttp"])
            .current_dir(installed_servers())
            .env("PORT", port.to_string())
            .stderr(std::process::Stdio::null())
            .spawn();
        Self { process: process.unwrap(), port }
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}/mcp", self.port)
    }
}

impl Drop for Everything {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A port that was free a moment ago.
async fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port()
}

impl Kit {
    fn remote(&self, url: &str, allow_private: bool) -> Arc<McpServer> {
        let headers = [("x-test".to_owned(), "1".to_owned())].into();
        let transport = McpTransport::Http {
            url: url.to_owned(),
            headers,
            allow_private,
            oauth: Box::default(),
        };
        self.start(self.settings("remote", transport))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_answers_over_http_and_reconnects_after_a_crash() {
    let kit = Kit::new();
    let everything = Everything::start(free_port().await);
    let server = kit.remote(&everything.url(), true);
    eventually("the server", || (server.health().status == McpStatus::Ready).then_some(())).await;
    let echo = async |message: &str| {
        let said = server.call("remote.echo", object(json!({"message": message})), call()).await;
        text(&said)
    };
    assert_eq!(echo("hi").await, "Echo: hi");
    let seen = Arc::new(Mutex::new(Vec::new()));
    let sink = seen.clone();
    let watched = watched(move |progress| sink.lock().unwrap().push(progress.progress));
    let long = object(json!({"duration": 0.4, "steps": 4}));
    let name = "remote.trigger-long-running-operation";
    let done = server.call(name, long, watched).await;
    assert_eq!(done.status, Status::Success, "{done:?}");
    assert!(!seen.lock().unwrap().is_empty());
    let long = object(json!({"duration": 100, "steps": 4}));
    let late = server.call(name, long, within(Duration::from_millis(300))).await;
    assert_eq!(failure(late).code, "TIMEOUT");
    assert_eq!(echo("still").await, "Echo: still");

    let port = everything.port;
    drop(everything);
    let gone = server.call("remote.echo", object(json!({"message": "?"})), call()).await;
    assert_eq!(failure(gone).code, "UNAVAILABLE");
    refused(&server).await;
    let _again = Everything::start(port);
    eventually("it to be back", || (server.health().status == McpStatus::Ready).then_some(()))
        .await;
    assert_eq!(echo("again").await, "Echo: again");
}

/// Answers every request with the same text and counts the connections.
struct Fixed {
    port: u16,
    connections: Arc<AtomicUsize>,
    _tasks: JoinSet<()>,
}

impl Fixed {
    async fn start(answer: String, endless: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let connections = Arc::new(AtomicUsize::new(0));
        let counted = connections.clone();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut serving = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                counted.fetch_add(1, Ordering::Relaxed);
                serving.spawn(answer_once(stream, answer.clone(), endless));
            }
        });
        Self { port, connections, _tasks: tasks }
    }

    fn seen(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }
}

async fn answer_once(mut stream: TcpStream, answer: String, endless: bool) {
    let mut request = vec![0; 64 * 1024];
    let _ = stream.read(&mut request).await;
    let _ = stream.write_all(answer.as_bytes()).await;
    let block = vec![b'x'; 1024 * 1024];
    while endless && stream.write_all(&block).await.is_ok() {}
}

#[tokio::test(flavor = "multi_thread")]
async fn a_private_address_is_not_called_unless_it_is_allowed() {
    let kit = Kit::new();
    let fixed = Fixed::start("HTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n".into(), false).await;
    for host in ["127.0.0.1", "[::ffff:127.0.0.1]", "localhost"] {
        let server = kit.remote(&format!("http://{host}:{}/mcp", fixed.port), false);
        let error = refused(&server).await;
        let expected = ["the address is private", "the name has no public address"];
        assert!(expected.iter().any(|words| error.contains(words)), "{host}: {error}");
        server.stop().await;
    }
    assert_eq!(fixed.seen(), 0);
    let allowed = kit.remote(&format!("http://127.0.0.1:{}/mcp", fixed.port), true);
    let error = refused(&allowed).await;
    assert!(error.contains("HTTP 500"), "{error}");
    assert!(fixed.seen() > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redirect_is_not_followed() {
    let kit = Kit::new();
    let target = Fixed::start("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n".into(), false).await;
    for status in [301, 302, 303, 307, 308] {
        let answer = format!(
            "HTTP/1.1 {status} Elsewhere\r\nlocation: http://127.0.0.1:{}/\r\ncontent-length: 0\r\n\r\n",
            target.port
        );
        let redirecting = Fixed::start(answer, false).await;
        let server = kit.remote(&format!("http://127.0.0.1:{}/mcp", redirecting.port), true);
        let error = refused(&server).await;
        assert!(error.contains(&format!("HTTP {status}")), "{error}");
        server.stop().await;
    }
    assert_eq!(target.seen(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endless_answer_is_cut() {
    let kit = Kit::new();
    for (kind, begin) in [("application/json", "{\"x\":\""), ("text/event-stream", "data: ")] {
        let answer = format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\n\r\n{begin}");
        let endless = Fixed::start(answer, true).await;
        let server = kit.remote(&format!("http://127.0.0.1:{}/mcp", endless.port), true);
        let error = refused(&server).await;
        assert!(
            error.contains("larger than 33554432 bytes") || kind != "application/json",
            "{error}"
        );
        server.stop().await;
    }
}
