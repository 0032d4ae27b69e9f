//! A tiny receiver of webhooks.
//!
//! Invariant: a request is noted before it is answered, in the order of arrival.

use serde_json::Value;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// One request as it came.
#[derive(Debug, Clone, PartialEq)]
pub struct Received {
    pub delivery_id: String,
    pub headers: Vec<(String, String)>,
    pub payload: Value,
}

pub struct Receiver {
    address: SocketAddr,
    received: Arc<Mutex<Vec<Received>>>,
    /// Ends with the receiver.
    _serving: JoinSet<()>,
}

impl Receiver {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port can be bound");
        let address = listener.local_addr().expect("a bound port has an address");
        let received = Arc::new(Mutex::new(Vec::new()));
        let mut serving = JoinSet::new();
        serving.spawn(serve(listener, Arc::clone(&received)));
        Self { address, received, _serving: serving }
    }

    pub fn url(&self) -> String {
        format!("http://{}/hook", self.address)
    }

    /// Everything so far.
    pub fn received(&self) -> Vec<Received> {
        self.received.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

async fn serve(listener: TcpListener, received: Arc<Mutex<Vec<Received>>>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        connections.spawn(answer(stream, Arc::clone(&received)));
    }
}

/// Answers requests until the connection ends or makes no sense.
async fn answer(stream: TcpStream, received: Arc<Mutex<Vec<Received>>>) {
    let mut stream = BufReader::new(stream);
    while let Some(request) = read(&mut stream).await {
        received.lock().unwrap_or_else(PoisonError::into_inner).push(request);
        let answer = b"HTTP/1.1 204 No Content\r\n\r\n";
        if stream.get_mut().write_all(answer).await.is_err() {
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
        let found = headers.iter().find(|(header, _)| header == name);
        found.map(|(_, value)| value.clone())
    };
    let mut body = vec![0; header("content-length")?.parse().ok()?];
    stream.read_exact(&mut body).await.ok()?;
    let payload = serde_json::from_slice(&body).ok()?;
    Some(Received { delivery_id: header("webhook-id")?, payload, headers })
}
