//! The baseline: the same runner process and the same frames, without a host in between.
//!
//! Invariant: nothing is stored, checked or numbered; one thread, blocking reads and writes.

use anyhow::{Context, ensure};
use greenroom_protocol::wire::{Incoming, RequestId};
use memchr::memmem;
use serde_json::json;
use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

pub(super) struct Pipe {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    line: Vec<u8>,
    answers: Vec<u8>,
    requests: u64,
}

/// What one run looked like from here.
#[derive(Default)]
pub(super) struct Ran {
    pub took: Duration,
    pub deltas: usize,
    /// The line of `message.completed`.
    pub message: String,
}

impl Pipe {
    pub(super) fn start() -> anyhow::Result<Self> {
        let args = ["runner-process", "echo"].map(OsStr::new);
        Self::start_with(&std::env::current_exe()?, &args)
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "the baseline speaks to the runner process itself"
    )]
    pub(super) fn start_with(program: &Path, args: &[&OsStr]) -> anyhow::Result<Self> {
        let mut child = Command::new(program)
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let input = child.stdin.take().context("a pipe is missing")?;
        let output = child.stdout.take().context("a pipe is missing")?;
        let output = BufReader::with_capacity(256 * 1024, output);
        let mut pipe =
            Self { child, input, output, line: Vec::new(), answers: Vec::new(), requests: 0 };
        let host = json!({ "name": "greenroom", "version": env!("CARGO_PKG_VERSION") });
        pipe.request("initialize", &json!({ "protocol_version": "1", "host": host }))?;
        pipe.until_answered()?;
        pipe.request("list_agent_runners", &json!({}))?;
        pipe.until_answered()?;
        Ok(pipe)
    }

    /// One run from its request to its answer; calls of the runner's are answered with an empty state.
    pub(super) fn run(&mut self, text: &str) -> anyhow::Result<Ran> {
        let run_id = format!("run_{}", uuid::Uuid::now_v7().simple());
        let params = json!({
            "runner_id": "plugin:greenroom/echo/default", "runner_name": "default",
            "context": context(&run_id, text),
        });
        let begin = Instant::now();
        self.request("run_agent", &params)?;
        let mut ran = self.until_answered()?;
        ran.took = begin.elapsed();
        Ok(ran)
    }

    fn request(&mut self, method: &str, params: &serde_json::Value) -> anyhow::Result<()> {
        self.requests += 1;
        let id = self.requests;
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        Ok(self.input.write_all(format!("{request}\n").as_bytes())?)
    }

    /// Reads up to the answer of the last request.
    fn until_answered(&mut self) -> anyhow::Result<Ran> {
        let mut ran = Ran::default();
        loop {
            self.line.clear();
            let read = self.output.read_until(b'\n', &mut self.line)?;
            ensure!(read > 0, "the runner ended");
            if memmem::find(&self.line[..read.min(64)], b"\"run.result\"").is_some() {
                ran.take(&self.line);
                continue;
            }
            let message = Incoming::parse(std::str::from_utf8(&self.line)?)?;
            match (&message.method, message.id) {
                (Some(_), Some(RequestId::Number(id))) => {
                    let answer = r#""result":{"value":null,"version":0}}"#;
                    writeln!(self.answers, r#"{{"jsonrpc":"2.0","id":{id},{answer}"#)?;
                }
                (None, Some(_)) => return Ok(ran),
                _ => {}
            }
            // Calls that were made together are answered together.
            if self.output.buffer().is_empty() {
                self.input.write_all(&self.answers)?;
                self.answers.clear();
            }
        }
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        // Fails only when the process has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Ran {
    fn take(&mut self, line: &[u8]) {
        if memmem::find(&line[..line.len().min(256)], b"\"message.delta\"").is_some() {
            self.deltas += 1;
        } else if memmem::find(&line[..line.len().min(256)], b"\"message.completed\"").is_some() {
            self.message = String::from_utf8_lossy(line).into_owned();
        }
    }
}

/// A context as a host gives it, of the same size.
pub(super) fn context(run_id: &str, text: &str) -> serde_json::Value {
    json!({
        "run_id": run_id,
        "trigger": { "type": "message.received", "source": "api", "timestamp": null },
        "event": {
            "event_id": run_id.replacen("run", "evt", 1), "event_type": "message.received",
            "event_time": null, "source": "api", "source_event_type": null, "raw_ref": null,
            "data": {},
        },
        "conversation": {
            "conversation_id": "bench", "thread_id": null, "launcher_type": null,
            "launcher_id": null, "bot_id": null, "workspace_id": "default",
        },
        "actor": { "actor_type": "user", "actor_id": "bench", "actor_name": null, "metadata": {} },
        "subject": null,
        "input": { "text": text, "contents": [], "attachments": [], "message_chain": null },
        "delivery": {
            "surface": "api", "reply_target": null, "supports_streaming": true,
            "supports_edit": false, "supports_reaction": false, "max_message_size": null,
            "platform_capabilities": {},
        },
        "resources": {
            "models": [], "tools": [], "knowledge_bases": [], "files": [],
            "storage": { "plugin_storage": false, "workspace_storage": false },
            "platform_capabilities": {},
        },
        "context": {
            "conversation_id": "bench", "thread_id": null,
            "latest_cursor": "eyJoIjoiZGVmYXVsdCIsImMiOiJiZW5jaCJ9.0123456789abcdef0123456789abcdef",
            "event_seq": 1, "transcript_seq": 1, "has_history_before": true,
            "inline_policy": {
                "mode": "current_event", "delivered_count": 1, "source_total_count": null,
                "messages_complete": false, "reason": null,
            },
            "available_apis": { "state": true },
        },
        "state": { "conversation": {}, "actor": {}, "subject": {}, "runner": {} },
        "runtime": {
            "host": "greenroom", "protocol_version": "1", "langbot_version": null,
            "trace_id": run_id, "deadline_at": null, "locale": null, "timezone": null,
            "static_refs": {},
            "metadata": { "remaining_ms": 600_000, "host_version": env!("CARGO_PKG_VERSION") },
        },
        "config": { "modes": true },
        "adapter": null,
        "metadata": { "attempt": 1, "agent": "bench" },
    })
}
