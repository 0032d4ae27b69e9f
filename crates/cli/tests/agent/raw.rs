//! A provider whose answers are written by hand: what no well-behaved server says.
//!
//! Invariant: one request per connection; each is answered by what the test makes of its body.

use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};

pub(crate) struct Raw {
    address: std::net::SocketAddr,
}

impl Raw {
    /// `answer` makes the events of a stream from a request's body; `None` never answers.
    pub(crate) fn start(
        mut answer: impl FnMut(Value) -> Option<Vec<Value>> + Send + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            let mut silent = Vec::new();
            for connection in listener.incoming() {
                let mut connection = connection.unwrap();
                let Some(body) = request(&mut connection) else { continue };
                match answer(body) {
                    Some(events) => reply(&mut connection, &events),
                    None => silent.push(connection),
                }
            }
        });
        Self { address }
    }

    /// A model `name` behind it, on the wire of chat completions.
    pub(crate) fn model(&self, name: &str, more: &str) -> String {
        format!(
            "[models.{name}]\nprovider = \"openai\"\nmodel = \"raw\"\nbase_url = \"http://{}/v1\"\n\
             allow_private = true\napi_key = {{ file = \"key\" }}\n{more}\n",
            self.address
        )
    }
}

/// An event of a stream with this delta.
pub(crate) fn delta(delta: Value) -> Value {
    serde_json::json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}]})
}

pub(crate) fn finish(reason: &str) -> Value {
    serde_json::json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
}

fn request(connection: &mut TcpStream) -> Option<Value> {
    let mut reader = BufReader::new(connection);
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|bytes| *bytes > 0)?;
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if line == "\r\n" {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    serde_json::from_slice(&body).ok()
}

fn reply(connection: &mut TcpStream, events: &[Value]) {
    let events: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    // Whoever hung up meanwhile is not told.
    let _ = connection.write_all(format!("{head}{events}data: [DONE]\n\n").as_bytes());
}
