//! A webhook receiver with configurable responses.
//!
//! Invariant: a request is recorded before it is answered, in order of arrival.

use serde_json::Value;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// A received request.
#[derive(Debug, Clone, PartialEq)]
pub struct Received {
    pub delivery_id: String,
    pub headers: Vec<(String, String)>,
    pub payload: Value,
}

const NO_CONTENT: &str = "HTTP/1.1 204 No Content\r\n\r\n";

/// The reaction to a recorded request.
#[derive(Debug, Clone)]
pub enum Reaction {
    Answer(u16),
    /// Responds with 204 once there is a permit.
    Held(Arc<Semaphore>),
    /// Responds with 429 and `Retry-After` in seconds.
    Later(u64),
    Redirect(String),
    /// Closes the connection without a response.
    Drop,
    /// Keeps the connection open without a response.
    Hang,
}

/// Decides by index and content of the request.
type React = dyn Fn(usize, &Received) -> Reaction + Send + Sync;

pub struct Receiver {
    address: SocketAddr,
    received: Arc<Mutex<Vec<Received>>>,
    /// Stops with the receiver.
    _serving: JoinSet<()>,
}

impl Receiver {
    /// Accepts everything.
    pub async fn start() -> Self {
        Self::reacting(|_, _| Reaction::Answer(204)).await
    }

    pub async fn reacting(
        react: impl Fn(usize, &Received) -> Reaction + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port can be bound");
        Self::serving(listener, react)
    }

    /// Receives on the caller's socket.
    pub fn serving(
        listener: TcpListener,
        react: impl Fn(usize, &Received) -> Reaction + Send + Sync + 'static,
    ) -> Self {
        let address = listener.local_addr().expect("a bound port has an address");
        let received = Arc::new(Mutex::new(Vec::new()));
        let mut serving = JoinSet::new();
        serving.spawn(serve(listener, Arc::clone(&received), Arc::new(react)));
        Self { address, received, _serving: serving }
    }

    pub fn url(&self) -> String {
        format!("http://{}/hook", self.address)
    }

    /// Everything received so far.
    pub fn received(&self) -> Vec<Received> {
        self.received.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

async fn serve(listener: TcpListener, received: Arc<Mutex<Vec<Received>>>, react: Arc<React>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        connections.spawn(answer(stream, Arc::clone(&received), Arc::clone(&react)));
    }
}

/// Responds to requests until the connection ends or is invalid.
async fn answer(stream: TcpStream, received: Arc<Mutex<Vec<Received>>>, react: Arc<React>) {
    let mut stream = BufReader::new(stream);
    while let Some(request) = read(&mut stream).await {
        let reaction = {
            let mut received = received.lock().unwrap_or_else(PoisonError::into_inner);
            let reaction = react(received.len(), &request);
            received.push(request);
            reaction
        };
        let answer = match reaction {
            Reaction::Answer(204) => NO_CONTENT.to_owned(),
            Reaction::Held(gate) => {
                gate.acquire().await.expect("the gate is not closed").forget();
                NO_CONTENT.to_owned()
            }
            Reaction::Answer(status) => {
                format!("HTTP/1.1 {status} Said\r\ncontent-length: 0\r\n\r\n")
            }
            Reaction::Later(seconds) => {
                format!("HTTP/1.1 429 Later\r\nretry-after: {seconds}\r\ncontent-length: 0\r\n\r\n")
            }
            Reaction::Redirect(to) => {
                format!("HTTP/1.1 307 Elsewhere\r\nlocation: {to}\r\ncontent-length: 0\r\n\r\n")
            }
            Reaction::Drop => return,
            Reaction::Hang => std::future::pending().await,
        };
        if stream.get_mut().write_all(answer.as_bytes()).await.is_err() {
            return;
        }
    }
}

async fn read(stream: &mut BufReader<TcpStream>) -> Option<Received> {
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await.ok().filter(|count| *count > 0)?;
        match line.trim_end().split_once(':') {
            Some((name, value)) => {
                headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
            }
            None if line.trim_end().is_empty() => break,
            None => {}
        }
    }
    let header = |name: &str| {
        let header = headers.iter().find(|(header, _)| header == name);
        header.map(|(_, value)| value.clone())
    };
    let mut body = vec![0; header("content-length")?.parse().ok()?];
    stream.read_exact(&mut body).await.ok()?;
    let payload = serde_json::from_slice(&body).ok()?;
    // Other requests than deliveries have none.
    let delivery_id = header("webhook-id").unwrap_or_default();
    Some(Received { delivery_id, payload, headers })
}
