//! A runner process and the wire to it, one message at a time.
//!
//! Invariant: nothing waits longer than its deadline, and the process is killed when this is dropped.

use serde_json::{Value, json};
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout};
use tokio::time::Instant;

/// Longest line that is read, as the host's own limit.
const LINE_BYTES_MAX: usize = 8 << 20;
const LOG_BYTES_MAX: usize = 4 << 10;

pub(super) struct Peer {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: ChildStdout,
    stderr: Option<ChildStderr>,
    unread: Vec<u8>,
    log: Vec<u8>,
    next_id: i64,
}

/// Why no message came.
#[derive(Debug, thiserror::Error)]
pub(super) enum Silence {
    #[error("no answer within {0:?}")]
    Timeout(Duration),
    #[error("the process closed its output")]
    Closed,
    #[error("a line on standard output is not JSON: `{0}`")]
    Garbage(String),
    #[error("a line has more than {LINE_BYTES_MAX} bytes")]
    TooLong,
    #[error("the pipe broke: {0}")]
    Pipe(#[from] std::io::Error),
}

impl Peer {
    #[expect(clippy::disallowed_methods, reason = "checking a process means starting it")]
    pub(super) fn start(command: &[String]) -> std::io::Result<Self> {
        let (program, args) = command.split_first().ok_or(std::io::ErrorKind::InvalidInput)?;
        let mut child = tokio::process::Command::new(program)
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let missing = || std::io::Error::other("a pipe of the process is missing");
        Ok(Self {
            stdin: Some(child.stdin.take().ok_or_else(missing)?),
            stdout: child.stdout.take().ok_or_else(missing)?,
            stderr: child.stderr.take(),
            child,
            unread: Vec::new(),
            log: Vec::new(),
            next_id: 0,
        })
    }

    /// Sends a request and gives its id.
    pub(super) async fn request(&mut self, method: &str, params: Value) -> Result<i64, Silence> {
        self.next_id += 1;
        let id = self.next_id;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))
            .await?;
        Ok(id)
    }

    pub(super) async fn notify(&mut self, method: &str, params: Value) -> Result<(), Silence> {
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params })).await
    }

    pub(super) async fn send(&mut self, message: &Value) -> Result<(), Silence> {
        self.send_line(&message.to_string()).await
    }

    pub(super) async fn send_line(&mut self, line: &str) -> Result<(), Silence> {
        let stdin = self.stdin.as_mut().ok_or(Silence::Closed)?;
        stdin.write_all(format!("{line}\n").as_bytes()).await?;
        Ok(stdin.flush().await?)
    }

    /// Sends a request and waits for its response; results and calls in between are let go.
    pub(super) async fn call(
        &mut self,
        method: &str,
        params: Value,
        timeout: Duration,
    ) -> Result<Value, Silence> {
        let id = self.request(method, params).await?;
        let deadline = Instant::now() + timeout;
        loop {
            let message = self.next(deadline, timeout).await?;
            if message.get("method").is_none() && message["id"] == id {
                return Ok(message);
            }
            self.refuse(&message).await?;
        }
    }

    /// Answers a call of the runner's: the test grants nothing.
    pub(super) async fn refuse(&mut self, message: &Value) -> Result<(), Silence> {
        if message.get("method").is_none() || message["id"].is_null() {
            return Ok(());
        }
        let text = "`greenroom runner test` grants nothing";
        let error =
            json!({ "code": "unauthorized", "message": text, "retryable": false, "details": {} });
        let error = json!({ "code": -32000, "message": text, "data": error });
        self.send(&json!({ "jsonrpc": "2.0", "id": message["id"], "error": error })).await
    }

    /// The next message from the process.
    pub(super) async fn next(
        &mut self,
        deadline: Instant,
        timeout: Duration,
    ) -> Result<Value, Silence> {
        loop {
            if let Some(at) = self.unread.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.unread.drain(..=at).collect();
                if line.iter().all(u8::is_ascii_whitespace) {
                    continue;
                }
                return serde_json::from_slice(&line).map_err(|_| {
                    Silence::Garbage(
                        String::from_utf8_lossy(&line).trim().chars().take(80).collect(),
                    )
                });
            }
            if self.unread.len() > LINE_BYTES_MAX {
                return Err(Silence::TooLong);
            }
            match tokio::time::timeout_at(deadline, self.read()).await {
                Ok(Ok(true)) => {}
                Ok(Ok(false)) => return Err(Silence::Closed),
                Ok(Err(error)) => return Err(error.into()),
                Err(_) => return Err(Silence::Timeout(timeout)),
            }
        }
    }

    /// Reads what there is on either pipe; false when standard output has ended.
    async fn read(&mut self) -> std::io::Result<bool> {
        loop {
            let Some(stderr) = &mut self.stderr else {
                return Ok(self.stdout.read_buf(&mut self.unread).await? > 0);
            };
            tokio::select! {
                read = self.stdout.read_buf(&mut self.unread) => return Ok(read? > 0),
                read = stderr.read_buf(&mut self.log) => {
                    if read? == 0 {
                        self.stderr = None;
                    }
                    let surplus = self.log.len().saturating_sub(LOG_BYTES_MAX);
                    self.log.drain(..surplus);
                }
            }
        }
    }

    /// Closes the process's input.
    pub(super) fn close_input(&mut self) {
        self.stdin = None;
    }

    /// Waits for the process to end; `None` when it does not.
    pub(super) async fn ended(&mut self, timeout: Duration) -> Option<std::process::ExitStatus> {
        let deadline = Instant::now() + timeout;
        while self.next(deadline, timeout).await.is_ok_and(|_| true) {}
        tokio::time::timeout_at(deadline, self.child.wait()).await.ok()?.ok()
    }

    /// The end of its log.
    pub(super) async fn log(&mut self) -> String {
        let settle = Instant::now() + Duration::from_millis(200);
        if let Some(stderr) = &mut self.stderr {
            while let Ok(Ok(1..)) =
                tokio::time::timeout_at(settle, stderr.read_buf(&mut self.log)).await
            {}
        }
        let text = String::from_utf8_lossy(&self.log).into_owned();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(10)..].join("\n")
    }
}
