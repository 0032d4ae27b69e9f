//! A scripted server, byte by byte, that records its requests.

use greenroom_models::{
    Model, ModelError, ModelRequest, ModelSettings, ModelStream, ProviderKind, Secret, ToolSpec,
};
use greenroom_protocol::api::models::ModelStreamItem;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;

pub(crate) const KEY: &str = "sk-test-0123456789";

/// What the server does with one request, in order; in the end it closes the connection.
#[derive(Clone, PartialEq)]
pub(crate) enum Step {
    Write(Vec<u8>),
    /// Writes the same bytes until the client disconnects, at most this many times.
    Flood(Vec<u8>, usize),
    /// Waits until the client disconnects.
    Hold,
    /// Breaks the connection off.
    Reset,
    /// Waits for this many concurrent requests.
    Crowd(usize),
    /// Takes the next request on the same connection.
    Stay,
}

#[derive(Debug, Clone)]
pub(crate) struct ReceivedRequest {
    pub(crate) path: String,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Value,
}

pub(crate) struct Server {
    pub(crate) url: String,
    seen: Arc<Seen>,
    _tasks: JoinSet<()>,
}

struct Seen {
    requests: Mutex<Vec<ReceivedRequest>>,
    flooded_bytes: Mutex<usize>,
    /// Connections that the client left.
    left: watch::Sender<usize>,
    connections: AtomicUsize,
}

impl Server {
    /// Answers the first request with the first script, and so on; the last one is repeated.
    pub(crate) async fn start(scripts: Vec<Vec<Step>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (requests, flooded_bytes) = (Mutex::default(), Mutex::default());
        let (left, connections) = (watch::Sender::new(0), AtomicUsize::new(0));
        let seen = Arc::new(Seen { requests, flooded_bytes, left, connections });
        let mut tasks = JoinSet::new();
        let shared = Arc::clone(&seen);
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((socket, _)) = listener.accept().await {
                let (seen, scripts) = (Arc::clone(&shared), scripts.clone());
                seen.connections.fetch_add(1, Ordering::Relaxed);
                connections.spawn(async move {
                    let mut socket = socket;
                    while serve(&mut socket, &scripts, &seen).await == Some(Step::Stay) {}
                });
            }
        });
        Self { url, seen, _tasks: tasks }
    }

    pub(crate) fn requests(&self) -> Vec<ReceivedRequest> {
        self.seen.requests.lock().unwrap().clone()
    }

    /// How many connections there have been.
    pub(crate) fn connections(&self) -> usize {
        self.seen.connections.load(Ordering::Relaxed)
    }

    pub(crate) fn flooded_bytes(&self) -> usize {
        *self.seen.flooded_bytes.lock().unwrap()
    }

    /// Waits until a client has disconnected.
    pub(crate) async fn left(&self) {
        let mut left = self.seen.left.subscribe();
        let waiting = left.wait_for(|left| *left > 0);
        tokio::time::timeout(Duration::from_secs(10), waiting).await.unwrap().unwrap();
    }
}

/// Serves one request, and says with which step it ended.
async fn serve(socket: &mut TcpStream, scripts: &[Vec<Step>], seen: &Seen) -> Option<Step> {
    let request = read(socket).await?;
    let script = {
        let mut all = seen.requests.lock().unwrap();
        all.push(request);
        scripts[(all.len() - 1).min(scripts.len() - 1)].clone()
    };
    for step in &script {
        match step {
            Step::Write(bytes) => socket.write_all(bytes).await.ok()?,
            Step::Flood(bytes, times) => {
                for _ in 0..*times {
                    if socket.write_all(bytes).await.is_err() {
                        break;
                    }
                    *seen.flooded_bytes.lock().unwrap() += bytes.len();
                }
            }
            Step::Hold => {
                let _ = socket.read(&mut [0; 64]).await;
                seen.left.send_modify(|left| *left += 1);
            }
            Step::Reset => {
                socket.set_zero_linger().unwrap();
                return None;
            }
            Step::Crowd(size) => {
                let is_full = || seen.requests.lock().unwrap().len().is_multiple_of(*size);
                while !is_full() {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            }
            Step::Stay => {}
        }
    }
    script.last().cloned()
}

async fn read(socket: &mut TcpStream) -> Option<ReceivedRequest> {
    let mut bytes = Vec::new();
    loop {
        if let Some(request) = parse(&bytes) {
            return Some(request);
        }
        let mut more = [0; 65536];
        match socket.read(&mut more).await.ok()? {
            0 => return None,
            read => bytes.extend_from_slice(&more[..read]),
        }
    }
}

fn parse(bytes: &[u8]) -> Option<ReceivedRequest> {
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n")?;
    let head = std::str::from_utf8(&bytes[..end]).unwrap();
    let mut lines = head.split("\r\n");
    let path = lines.next()?.split(' ').nth(1)?.to_owned();
    let pairs = lines.filter_map(|line| line.split_once(": "));
    let headers: BTreeMap<String, String> =
        pairs.map(|(name, value)| (name.to_lowercase(), value.to_owned())).collect();
    let length: usize = headers.get("content-length")?.parse().unwrap();
    let body = bytes.get(end + 4..end + 4 + length)?;
    Some(ReceivedRequest { path, headers, body: serde_json::from_slice(body).unwrap() })
}

/// An answer with this status, headers and body.
pub(crate) fn answer(status: u16, headers: &[(&str, &str)], body: &str) -> Vec<Step> {
    let headers: String =
        headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status} X\r\n{headers}content-length: {length}\r\nconnection: close\r\n\r\n"
    );
    vec![Step::Write(format!("{head}{body}").into_bytes())]
}

/// The head of a stream of chunks.
pub(crate) fn head() -> Step {
    let head =
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    Step::Write(head.as_bytes().to_vec())
}

pub(crate) fn chunk(text: &str) -> Step {
    Step::Write(format!("{:x}\r\n{text}\r\n", text.len()).into_bytes())
}

pub(crate) fn last_chunk() -> Step {
    Step::Write(b"0\r\n\r\n".to_vec())
}

/// One event of a chat that says so much.
pub(crate) fn delta(text: &str) -> String {
    let choice = json!({"index": 0, "delta": {"content": text}, "finish_reason": null});
    format!("data: {}\n\n", json!({"choices": [choice]}))
}

pub(crate) const STOP: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

/// A whole chat that says `hello`.
pub(crate) fn hello() -> Vec<Step> {
    vec![head(), chunk(&delta("hel")), chunk(&delta("lo")), chunk(STOP), last_chunk()]
}

/// A chat model at the server.
pub(crate) fn settings(server: &Server) -> ModelSettings {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut settings = ModelSettings::new("m", ProviderKind::OpenAiChat, "m-2025");
    settings.base_url = Some(server.url.clone());
    settings.allow_private = true;
    settings.api_key = Some(Secret::new(KEY));
    settings
}

pub(crate) fn model(server: &Server) -> Model {
    Model::new(settings(server)).unwrap()
}

pub(crate) fn question() -> ModelRequest {
    let messages = json!([{"role": "user", "content": "hi"}]);
    let tool = |name: &str| ToolSpec {
        name: name.to_owned(),
        description: None,
        parameters: json!({"type": "object"}),
    };
    ModelRequest {
        messages: serde_json::from_value(messages).unwrap(),
        tools: vec![tool("fs.read"), tool("clock")],
        ..ModelRequest::default()
    }
}

pub(crate) fn soon() -> Instant {
    Instant::now() + Duration::from_secs(20)
}

/// Everything that comes until the end.
pub(crate) async fn drain(mut stream: ModelStream) -> (Vec<ModelStreamItem>, Option<ModelError>) {
    let mut items = Vec::new();
    loop {
        match stream.next().await {
            Some(Ok(item)) => items.push(item),
            Some(Err(error)) => {
                assert!(stream.next().await.is_none(), "nothing comes after an error");
                return (items, Some(error));
            }
            None => return (items, None),
        }
    }
}

/// What a model that is asked once says, or why it does not.
pub(crate) async fn ask_once(model: &Model) -> Result<(Value, Option<ModelError>), ModelError> {
    let (items, error) = drain(model.stream(question(), soon()).await?).await;
    Ok((json!(items), error))
}

/// The items of `hello`.
pub(crate) fn hello_items() -> Value {
    json!([
        {"type": "text_delta", "text": "hel"},
        {"type": "text_delta", "text": "lo"},
        {"type": "finish", "reason": "stop"},
    ])
}
