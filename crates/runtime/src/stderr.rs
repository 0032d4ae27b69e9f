//! A runner's stderr: into the log under its name, as much as a reader can take and not more.
//!
//! Invariant: a flood costs the runner its time, not the host its memory or its log.

use crate::spec::Limits;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::net::unix::pipe;

/// How long to look away from a runner that writes more than it may.
const PAUSE: Duration = Duration::from_millis(10);
const CHUNK_BYTES: usize = 16 * 1024;

/// The last line seen, for the story of a crash.
#[derive(Debug, Clone, Default)]
pub(crate) struct LastLine(Arc<Mutex<String>>);

impl LastLine {
    pub(crate) fn get(&self) -> String {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Logs lines until the pipe ends, under the name of a runner or of the tool that a child serves.
pub(crate) async fn log(runner: Arc<str>, pipe: pipe::Receiver, limits: Limits, last: LastLine) {
    let mut budget = Budget::new(limits.stderr_lines_per_s, limits.stderr_lines_burst);
    let mut chunk = vec![0; CHUNK_BYTES];
    let mut line: Vec<u8> = Vec::new();
    loop {
        let length = match pipe.try_read(&mut chunk) {
            Ok(0) => break,
            Ok(length) => length,
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                if pipe.readable().await.is_err() {
                    break;
                }
                continue;
            }
            Err(_) => break,
        };
        for part in chunk[..length].split_inclusive(|byte| *byte == b'\n') {
            let room = limits.stderr_line_bytes_max.saturating_sub(line.len());
            line.extend_from_slice(&part[..part.len().min(room)]);
            if part.ends_with(b"\n") {
                write(&runner, &line, &mut budget, &last);
                line.clear();
            }
        }
        if budget.suppressed > 0 {
            tokio::time::sleep(PAUSE).await;
        }
    }
    write(&runner, &line, &mut budget, &last);
}

fn write(runner: &str, line: &[u8], budget: &mut Budget, last: &LastLine) {
    let text = String::from_utf8_lossy(line);
    let text = text.trim_end();
    if text.is_empty() {
        return;
    }
    text.clone_into(&mut last.0.lock().unwrap_or_else(PoisonError::into_inner));
    match budget.take() {
        Some(0) => tracing::info!(target: "runner", runner, "{text}"),
        Some(suppressed) => tracing::info!(target: "runner", runner, suppressed, "{text}"),
        None => {}
    }
}

/// A token bucket that counts what it refused.
struct Budget {
    per_s: f64,
    burst: f64,
    tokens: f64,
    at: Instant,
    suppressed: u64,
}

impl Budget {
    fn new(per_s: u32, burst: u32) -> Self {
        let burst = f64::from(burst);
        Self { per_s: f64::from(per_s), burst, tokens: burst, at: Instant::now(), suppressed: 0 }
    }

    /// One line: how many were refused before it, or nothing if it is refused as well.
    fn take(&mut self) -> Option<u64> {
        let now = Instant::now();
        let gained = now.duration_since(self.at).as_secs_f64() * self.per_s;
        self.tokens = (self.tokens + gained).min(self.burst);
        self.at = now;
        if self.tokens < 1.0 {
            self.suppressed += 1;
            return None;
        }
        self.tokens -= 1.0;
        Some(std::mem::take(&mut self.suppressed))
    }
}
