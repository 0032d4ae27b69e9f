//! A host that says what a test wrote down: one scripted answer per request, in order.
//!
//! Invariant: a request that was not expected fails the test, and every request is kept to be looked at.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::thread::JoinHandle;

/// What is answered to one request; the connection is closed after it.
pub(crate) struct Answer {
    pub expect: &'static str,
    pub status: u16,
    pub kind: &'static str,
    pub body: String,
    /// Whether the connection breaks before the body's announced end.
    pub breaks: bool,
    /// How many further requests are answered before the body comes.
    pub held: usize,
}

#[derive(Debug)]
pub(crate) struct Request {
    pub line: String,
    pub headers: Vec<String>,
    pub body: String,
}

impl Answer {
    pub(crate) fn json(expect: &'static str, body: serde_json::Value) -> Self {
        Self {
            expect,
            status: 200,
            kind: "application/json",
            body: body.to_string(),
            breaks: false,
            held: 0,
        }
    }

    pub(crate) fn stream(expect: &'static str, body: &str) -> Self {
        Self {
            expect,
            status: 200,
            kind: "text/event-stream",
            body: body.to_owned(),
            breaks: false,
            held: 0,
        }
    }

    pub(crate) fn status(self, status: u16) -> Self {
        Self { status, ..self }
    }

    pub(crate) fn held(self, held: usize) -> Self {
        Self { held, ..self }
    }

    pub(crate) fn breaking(self) -> Self {
        Self { breaks: true, ..self }
    }
}

/// Writes `host.json` and a token into `dir`, answers in order, and gives what was asked.
pub(crate) fn start(dir: &Path, answers: Vec<Answer>) -> JoinHandle<Vec<Request>> {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let data = dir.join("greenroom-data");
    std::fs::create_dir_all(&data).unwrap();
    std::fs::write(data.join("host.json"), format!(r#"{{"url":"{url}","pid":1}}"#)).unwrap();
    std::fs::write(data.join("admin-token"), "gr_admin\n").unwrap();
    std::thread::spawn(move || {
        let (mut requests, mut waiting) = (Vec::new(), Vec::new());
        for answer in &answers {
            let (request, stream) = serve(&listener, answer);
            requests.push(request);
            waiting.push((answer.held, stream, answer));
            let (due, held): (Vec<_>, Vec<_>) = waiting.into_iter().partition(|one| one.0 == 0);
            for (_, mut stream, answer) in due {
                stream.write_all(answer.body.as_bytes()).unwrap();
            }
            waiting =
                held.into_iter().map(|(left, stream, body)| (left - 1, stream, body)).collect();
        }
        requests
    })
}

/// Answers a request but for the body.
fn serve(listener: &TcpListener, answer: &Answer) -> (Request, TcpStream) {
    let (mut stream, _) = listener.accept().unwrap();
    let request = read(&stream);
    assert!(request.line.starts_with(answer.expect), "{} is not {}", request.line, answer.expect);
    let length = answer.body.len() + usize::from(answer.breaks);
    let head = format!(
        "HTTP/1.1 {} X\r\ncontent-type: {}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n",
        answer.status, answer.kind
    );
    stream.write_all(head.as_bytes()).unwrap();
    (request, stream)
}

fn read(stream: &TcpStream) -> Request {
    let mut reader = BufReader::new(stream);
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        match line.trim() {
            "" => break,
            line => lines.push(line.to_owned()),
        }
    }
    let length = lines.iter().find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
    reader.read_exact(&mut body).unwrap();
    Request { line: lines.remove(0), headers: lines, body: String::from_utf8(body).unwrap() }
}
