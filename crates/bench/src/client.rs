//! A lean HTTP client: it shares two cores with the host it measures.
//!
//! Invariant: one connection, kept alive; bytes are looked at once and never copied out of the read buffer.

use super::host::Place;
use anyhow::{Context, bail, ensure};
use memchr::memmem;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// How long an answer may take before the host counts as stuck.
const PATIENCE: Duration = Duration::from_secs(120);
const READ_BYTES: usize = 256 * 1024;

pub(super) struct Client {
    stream: TcpStream,
    place: Place,
    unread: Vec<u8>,
    /// Everything before this has been looked at.
    at: usize,
    request: Vec<u8>,
}

/// What one followed run looked like from here.
#[derive(Default)]
pub(super) struct Followed {
    /// From the first byte sent to the terminal result received.
    pub took: Duration,
    ended: Option<Instant>,
    pub deltas: usize,
    /// The frame of the answer, if it is one message.
    pub message: String,
    /// The frame of the terminal result.
    pub terminal: String,
}

impl Client {
    pub(super) async fn connect(place: &Place) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(place.address).await.context("cannot reach the host")?;
        stream.set_nodelay(true)?;
        let unread = Vec::with_capacity(READ_BYTES);
        Ok(Self { stream, place: place.clone(), unread, at: 0, request: Vec::new() })
    }

    /// Sends an event and reads its run's results to the end.
    pub(super) async fn follow(&mut self, event: &str) -> anyhow::Result<Followed> {
        let begin = Instant::now();
        self.open("POST", "/v1/events", event).await?;
        let mut seen = self.rest().await?;
        seen.took = seen.ended.unwrap_or_else(Instant::now) - begin;
        Ok(seen)
    }

    /// Asks for a stream.
    pub(super) async fn open(
        &mut self,
        method: &str,
        path: &str,
        body: &str,
    ) -> anyhow::Result<()> {
        self.send(method, path, "Accept: text/event-stream\r\n", body).await?;
        let status = self.head().await?.0;
        ensure!(status == 200, "`{path}` answered {status}");
        Ok(())
    }

    /// Reads the results of a run to their end.
    pub(super) async fn rest(&mut self) -> anyhow::Result<Followed> {
        let mut seen = Followed::default();
        while let Some(chunk) = self.chunk().await? {
            seen.deltas += memmem::find_iter(chunk, b"event: message.delta\n").count();
            if let Some(message) = frame(chunk, b"event: message.completed\n") {
                seen.message = message;
            }
            if let Some(terminal) = frame(chunk, b"event: run.") {
                seen.ended = Some(Instant::now());
                seen.terminal = terminal;
            }
        }
        let completed = seen.terminal.starts_with("event: run.completed\n");
        ensure!(completed, "a run did not complete: `{}`", seen.terminal.trim());
        Ok(seen)
    }

    /// Sends a request, reads the stream that answers it, and tells how long that took.
    pub(super) async fn streamed(&mut self, path: &str, body: &str) -> anyhow::Result<Duration> {
        let begin = Instant::now();
        self.send("POST", path, "", body).await?;
        let status = self.head().await?.0;
        ensure!(status == 200, "`{path}` answered {status}");
        while self.chunk().await?.is_some() {}
        Ok(begin.elapsed())
    }

    /// Sends a request and reads the whole answer.
    pub(super) async fn call(
        &mut self,
        method: &str,
        path: &str,
        body: &str,
    ) -> anyhow::Result<(u16, serde_json::Value)> {
        self.send(method, path, "", body).await?;
        let (status, length) = self.head().await?;
        let length = length.context("an answer has no length")?;
        while self.unread.len() - self.at < length {
            self.fill().await?;
        }
        let body = &self.unread[self.at..self.at + length];
        let value = serde_json::from_slice(body).unwrap_or_default();
        self.at += length;
        Ok((status, value))
    }

    async fn send(
        &mut self,
        method: &str,
        path: &str,
        more: &str,
        body: &str,
    ) -> anyhow::Result<()> {
        use std::io::Write;
        self.request.clear();
        let Place { address, token } = &self.place;
        write!(
            self.request,
            "{method} {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n{more}\r\n{body}",
            body.len()
        )?;
        Ok(self.stream.write_all(&self.request).await?)
    }

    /// Status and length of an answer.
    async fn head(&mut self) -> anyhow::Result<(u16, Option<usize>)> {
        let end = loop {
            if let Some(end) = memmem::find(&self.unread[self.at..], b"\r\n\r\n") {
                break self.at + end;
            }
            self.fill().await?;
        };
        let head = std::str::from_utf8(&self.unread[self.at..end])?;
        let status = head.get(9..12).and_then(|code| code.parse().ok()).context("no status")?;
        let length = head.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok())?
        });
        self.at = end + 4;
        Ok((status, length))
    }

    /// The next chunk of a chunked body; nothing at its end.
    async fn chunk(&mut self) -> anyhow::Result<Option<&[u8]>> {
        let (begin, length) = loop {
            let rest = &self.unread[self.at..];
            if let Some(line) = memmem::find(rest, b"\r\n") {
                let length = usize::from_str_radix(std::str::from_utf8(&rest[..line])?, 16)?;
                break (self.at + line + 2, length);
            }
            self.fill().await?;
        };
        // `fill` may move what is unread to the front, `at` with it.
        let skip = begin - self.at;
        while self.unread.len() - self.at < skip + length + 2 {
            self.fill().await?;
        }
        let begin = self.at + skip;
        self.at = begin + length + 2;
        Ok((length > 0).then(|| &self.unread[begin..begin + length]))
    }

    async fn fill(&mut self) -> anyhow::Result<()> {
        if self.at > READ_BYTES / 2 || self.at == self.unread.len() {
            self.unread.drain(..self.at);
            self.at = 0;
        }
        self.unread.reserve(READ_BYTES / 2);
        let read = self.stream.read_buf(&mut self.unread);
        let read = tokio::time::timeout(PATIENCE, read).await.context("the host is silent")??;
        if read == 0 {
            bail!("the host closed the connection");
        }
        Ok(())
    }
}

/// The frame that begins with `start`, if the chunk has one.
fn frame(chunk: &[u8], start: &[u8]) -> Option<String> {
    let frame = &chunk[memmem::find(chunk, start)?..];
    let end = memmem::find(frame, b"\n\n").unwrap_or(frame.len());
    Some(String::from_utf8_lossy(&frame[..end]).into_owned())
}

/// An event for the agent that the hosts of these measurements have.
pub(super) fn event(conversation: &str, text: &str) -> String {
    serde_json::json!({
        "event_type": "message.received", "agent": super::host::AGENT,
        "conversation_id": conversation,
        "actor": { "actor_type": "user", "actor_id": "bench" }, "input": { "text": text },
    })
    .to_string()
}
