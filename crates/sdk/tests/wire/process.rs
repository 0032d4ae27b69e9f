//! A runner process and the two ends of its wire.
//!
//! Invariant: reading waits at most `PATIENCE`; a process never outlives its test.

use serde_json::{Value, json};
use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) struct Process {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
}

#[expect(clippy::disallowed_methods, reason = "the tests are the host here and start the runner")]
pub(crate) fn command(program: impl AsRef<OsStr>) -> Command {
    Command::new(program)
}

/// The example `probe`, beside this test's own binary.
pub(crate) fn probe() -> Command {
    let own = std::env::current_exe().unwrap();
    let built: PathBuf = own.parent().unwrap().parent().unwrap().join("examples/probe");
    assert!(built.exists(), "run the tests of the whole package: `{}` is missing", built.display());
    command(built)
}

impl Process {
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = sync_channel(1024);
        std::thread::spawn(move || {
            for line in stdout.lines() {
                if sender.send(line.unwrap()).is_err() {
                    return;
                }
            }
        });
        Self { stdin: child.stdin.take(), child, lines }
    }

    pub(crate) fn probe() -> Self {
        Self::start(&mut probe())
    }

    pub(crate) fn send(&mut self, message: impl ToString) {
        let line = message.to_string() + "\n";
        self.stdin.as_mut().unwrap().write_all(line.as_bytes()).unwrap();
    }

    pub(crate) fn send_bytes(&mut self, bytes: &[u8]) {
        self.stdin.as_mut().unwrap().write_all(bytes).unwrap();
    }

    pub(crate) fn read(&mut self) -> Value {
        let line = self.lines.recv_timeout(PATIENCE).expect("the runner speaks in time");
        serde_json::from_str(&line).expect("stdout carries the wire alone")
    }

    /// Reads up to the message with this id; returns what came before, and it.
    pub(crate) fn read_until(&mut self, id: i64) -> (Vec<Value>, Value) {
        let mut before = Vec::new();
        loop {
            let message = self.read();
            if message["id"] == id && message.get("method").is_none() {
                return (before, message);
            }
            before.push(message);
        }
    }

    pub(crate) fn close_stdin(&mut self) {
        self.stdin = None;
    }

    /// Waits for the end of the output, and so of the process.
    pub(crate) fn wait(&mut self) -> ExitStatus {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(_) => {}
                Err(RecvTimeoutError::Disconnected) => return self.child.wait().unwrap(),
                Err(RecvTimeoutError::Timeout) => panic!("the runner does not end"),
            }
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Fails only when the process has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A `run_agent` request for the probe.
pub(crate) fn run_agent(id: i64, run_id: &str, text: &str, config: Value) -> Value {
    json!({
        "jsonrpc": "2.0",
        "id": id,
        "method": "run_agent",
        "params": {
            "runner_id": "plugin:test/probe/default",
            "runner_name": "default",
            "context": {
                "run_id": run_id,
                "trigger": { "type": "message.received", "source": "api" },
                "event": { "event_id": "e1", "event_type": "message.received", "source": "api" },
                "input": { "text": text },
                "delivery": { "surface": "api" },
                "resources": resources(),
                "context": {
                    "inline_policy": { "mode": "current_event" },
                    "available_apis": {
                        "history_page": true, "history_search": true, "event_get": true,
                        "event_page": true, "artifact_metadata": true, "artifact_read": true,
                        "artifact_create": true, "state": true, "storage": true,
                        "steering_pull": true,
                    },
                },
                "state": {},
                "runtime": { "trace_id": "t1", "metadata": { "remaining_ms": 60_000 } },
                "config": config,
            },
        },
    })
}

fn resources() -> Value {
    json!({
        "models": [{ "model_id": "m", "operations": ["invoke", "stream", "rerank", "embed"] }],
        "tools": [{ "tool_name": "t", "operations": ["detail", "call"] }],
        "knowledge_bases": [{ "kb_id": "k", "operations": ["list", "retrieve"] }],
        "storage": { "plugin": true, "workspace": true, "binding": true },
    })
}

pub(crate) fn result(run_id: &str, sequence: i64, kind: &str, data: Value) -> Value {
    json!({
        "jsonrpc": "2.0",
        "method": "run.result",
        "params": { "run_id": run_id, "type": kind, "data": data, "sequence": sequence },
    })
}

pub(crate) fn delta(run_id: &str, sequence: i64, text: &str) -> Value {
    let data = json!({ "chunk": { "role": "assistant", "content": text } });
    result(run_id, sequence, "message.delta", data)
}

pub(crate) fn message(run_id: &str, sequence: i64, text: &str) -> Value {
    let data = json!({ "message": { "role": "assistant", "content": text } });
    result(run_id, sequence, "message.completed", data)
}

pub(crate) fn completed(run_id: &str, sequence: i64) -> Value {
    result(run_id, sequence, "run.completed", json!({ "finish_reason": "stop" }))
}

pub(crate) fn failed(run_id: &str, sequence: i64, code: &str, text: &str) -> Value {
    let data = json!({ "code": code, "message": text, "retryable": false });
    result(run_id, sequence, "run.failed", data)
}
