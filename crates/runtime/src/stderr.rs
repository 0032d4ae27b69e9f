//! A runner's stderr: logged under its name, within limits of rate and size.
//!
//! Invariant: a flood slows the runner down and costs the host neither memory nor log space.

use crate::quote::Cleaner;
use crate::spec::Limits;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::net::unix::pipe;

/// Pause in reading from a runner that writes more than it may.
const PAUSE: Duration = Duration::from_millis(10);
const CHUNK_BYTES: usize = 16 * 1024;

/// Lines kept to explain a crash, their length, and how many of them are shown.
const KEPT_LINES: usize = 40;
const KEPT_CHARS: usize = 400;
const SHOWN_LINES: usize = 4;
/// Lines older than this at the end of the process do not explain it.
const LAST_WORDS_AGE: Duration = Duration::from_secs(1);
/// Words that mark a line as an error.
const WRONG: [&str; 5] = ["error", "fatal", "panic", "exception", "not found"];

/// The last line of a pydantic error: a URL that explains less than the line before.
const POINTER: &str = "For further information visit";

/// The last lines, to explain a crash.
#[derive(Debug, Clone, Default)]
pub(crate) struct LastLines {
    lines: Arc<Mutex<VecDeque<String>>>,
    /// When the last line arrived.
    at: Arc<Mutex<Option<Instant>>>,
    cleaner: Cleaner,
}

impl LastLines {
    pub(crate) fn new(cleaner: Cleaner) -> Self {
        Self { lines: Arc::default(), at: Arc::default(), cleaner }
    }

    /// The last words before an end at this moment.
    pub(crate) fn last_words(&self, end: Instant) -> Option<String> {
        let at = *self.at.lock().unwrap_or_else(PoisonError::into_inner);
        let is_recent = |at: Instant| end.saturating_duration_since(at) <= LAST_WORDS_AGE;
        at.filter(|at| is_recent(*at)).map(|_| self.last()).filter(|line| !line.is_empty())
    }

    /// The last line, or the last unindented one with the indented lines that belong to it; empty without
    /// lines.
    fn last(&self) -> String {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let at_margin = |line: &String| !line.starts_with(char::is_whitespace);
        let from = lines.iter().rposition(at_margin).unwrap_or(lines.len().saturating_sub(1));
        let shown = lines.iter().skip(from).map(|line| line.trim());
        let shown = shown.filter(|line| !line.starts_with(POINTER)).take(SHOWN_LINES);
        let shown = shown.collect::<Vec<_>>().join(" ");
        match python_place(lines.iter().take(from).rev()) {
            Some(place) if !shown.contains(", line ") => format!("{shown} ({place})"),
            _ => shown,
        }
    }

    /// The error in one line: from the first line that looks like one, else the last line.
    pub(crate) fn complaint(&self) -> String {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let speaks_of_it = |line: &String| {
            let line = line.to_lowercase();
            WRONG.iter().any(|word| line.contains(word))
        };
        let from = lines.iter().position(speaks_of_it).unwrap_or(lines.len().saturating_sub(1));
        let mut shown: Vec<&str> = Vec::new();
        for line in lines.iter().skip(from).map(|line| line.trim()) {
            // Stack frames and repeated lines explain nothing.
            let is_known = shown.iter().any(|before| before.contains(line));
            if !is_known && !line.starts_with("at ") && shown.len() < SHOWN_LINES {
                shown.push(line);
            }
        }
        shown.join("; ")
    }

    fn push(&self, line: &str) {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.push_back(self.cleaner.quote(line, KEPT_CHARS));
        if lines.len() > KEPT_LINES {
            lines.pop_front();
        }
        *self.at.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }
}

/// Where a Python error was raised: the traceback comes before it.
fn python_place<'a>(before: impl Iterator<Item = &'a String>) -> Option<String> {
    let mut traceback = before.take_while(|line| line.starts_with(char::is_whitespace));
    let frame = traceback.find_map(|line| line.trim().strip_prefix("File \""))?;
    let (path, rest) = frame.split_once("\", line ")?;
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let (name, number) = (path.rsplit('/').next()?, &rest[..digits]);
    (!number.is_empty()).then(|| format!("{name}, line {number}"))
}

/// Logs lines until the pipe ends, under the name of a runner or of a tool server.
pub(crate) async fn log(runner: Arc<str>, pipe: pipe::Receiver, limits: Limits, last: LastLines) {
    let mut budget = Budget::new(&limits);
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
            let kept = part.len().min(room);
            line.extend_from_slice(&part[..kept]);
            budget.dropped.bytes += (part.len() - kept) as u64;
            if part.ends_with(b"\n") {
                write(&runner, &line, &mut budget, &last);
                line.clear();
            }
        }
        if budget.dropped.lines > 0 {
            tokio::time::sleep(PAUSE).await;
        }
    }
    write(&runner, &line, &mut budget, &last);
    let Dropped { lines, bytes } = budget.dropped;
    if lines > 0 {
        tracing::info!(target: "runner", runner = &*runner, dropped_lines = lines, dropped_bytes = bytes, "dropped output over the rate limit");
    }
}

fn write(runner: &str, line: &[u8], budget: &mut Budget, last: &LastLines) {
    let text = String::from_utf8_lossy(line);
    let text = text.trim_end();
    if text.is_empty() {
        return;
    }
    last.push(text);
    match budget.take(line.len(), Instant::now()) {
        Some(Dropped { lines: 0, bytes: 0 }) => tracing::info!(target: "runner", runner, "{text}"),
        Some(Dropped { lines, bytes }) => {
            tracing::info!(target: "runner", runner, dropped_lines = lines, dropped_bytes = bytes, "{text}");
        }
        None => {}
    }
}

/// What was dropped since the last logged line.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Dropped {
    lines: u64,
    bytes: u64,
}

/// A rate limit on lines and bytes; counts what it refused.
struct Budget {
    lines: Bucket,
    bytes: Bucket,
    dropped: Dropped,
}

impl Budget {
    fn new(limits: &Limits) -> Self {
        let per_s = limits.configured.stderr_bytes_per_s;
        Self {
            lines: Bucket::new(limits.configured.stderr_lines_per_s, limits.stderr_lines_burst),
            bytes: Bucket::new(per_s, per_s.saturating_mul(limits.stderr_burst_s)),
            dropped: Dropped::default(),
        }
    }

    /// Admits one line: returns what was dropped before it, or nothing if the line is dropped as well.
    fn take(&mut self, bytes: usize, now: Instant) -> Option<Dropped> {
        self.lines.refill(now);
        self.bytes.refill(now);
        let cost = bytes as f64;
        if self.lines.tokens < 1.0 || self.bytes.tokens < cost {
            self.dropped.lines += 1;
            self.dropped.bytes += bytes as u64;
            return None;
        }
        self.lines.tokens -= 1.0;
        self.bytes.tokens -= cost;
        Some(std::mem::take(&mut self.dropped))
    }
}

struct Bucket {
    per_s: f64,
    burst: f64,
    tokens: f64,
    at: Instant,
}

impl Bucket {
    fn new(per_s: u32, burst: u32) -> Self {
        let burst = f64::from(burst);
        Self { per_s: f64::from(per_s), burst, tokens: burst, at: Instant::now() }
    }

    fn refill(&mut self, now: Instant) {
        let gained = now.duration_since(self.at).as_secs_f64() * self.per_s;
        self.tokens = (self.tokens + gained).min(self.burst);
        self.at = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaint(lines: &str) -> String {
        let last = LastLines::default();
        for line in lines.lines().filter(|line| !line.trim().is_empty()) {
            last.push(line);
        }
        last.complaint()
    }

    #[test]
    fn what_was_said_long_before_the_end_has_nothing_to_do_with_it() {
        let kept = LastLines::default();
        let before = Instant::now();
        assert_eq!(kept.last_words(before), None);
        kept.push("ValueError: of a run long ago");
        assert_eq!(kept.last_words(before).as_deref(), Some("ValueError: of a run long ago"));
        assert_eq!(kept.last_words(Instant::now() + Duration::from_secs(2)), None);
    }

    #[test]
    fn an_error_of_python_is_told_with_its_place() {
        let shown = |lines: &[&str]| {
            let kept = LastLines::default();
            lines.iter().for_each(|line| kept.push(line));
            kept.last()
        };
        let syntax =
            ["  File \"/home/me/main.py\", line 34", "    foo(", "       ^", "SyntaxError: odd"];
        assert_eq!(shown(&syntax), "SyntaxError: odd (main.py, line 34)");
        let raised = [
            "Traceback (most recent call last):",
            "  File \"/home/me/main.py\", line 3, in <module>",
            "    main()",
            "  File \"/home/me/deep.py\", line 12, in main",
            "    raise ValueError(\"no\")",
            "ValueError: no",
        ];
        assert_eq!(shown(&raised), "ValueError: no (deep.py, line 12)");
        assert_eq!(shown(&[raised.as_slice(), &["bye"]].concat()), "bye");
        assert_eq!(shown(&["  File \"x\", line y", "what"]), "what");
    }

    #[test]
    fn the_last_words_go_from_the_margin_on() {
        let last = |lines: &str| {
            let kept = LastLines::default();
            lines.lines().for_each(|line| kept.push(line));
            kept.last()
        };
        assert_eq!(last(""), "");
        assert_eq!(last("Traceback:\n  File \"a.py\"\nKeyError: 'x'"), "KeyError: 'x'");
        let pydantic = "ValueError: Invalid Runner manifest a.yaml: 1 validation error\n\
            \u{20} Value error, Event usage requires spec.events\n\
            \u{20}   For further information visit https://errors.pydantic.dev/2/v/value_error";
        assert_eq!(
            last(pydantic),
            "ValueError: Invalid Runner manifest a.yaml: 1 validation error \
             Value error, Event usage requires spec.events"
        );
        assert_eq!(last("  only this"), "only this");
    }

    #[test]
    fn the_lines_that_say_what_is_wrong_are_told_and_not_the_last_one() {
        let npx = "npm error code E404\n\
            npm error 404 Not Found - GET https://registry.npmjs.org/no-such-server - Not found\n\
            npm error 404\n\
            npm error 404  'no-such-server@*' is not in this registry.\n\
            npm error 404\n\
            npm error 404 Note that you can also install from a\n\
            npm error 404 tarball, folder, http url, or git folder.\n\
            npm error A complete log of this run can be found in: /home/.npm/_logs/debug-0.log";
        assert_eq!(
            complaint(npx),
            "npm error code E404; \
             npm error 404 Not Found - GET https://registry.npmjs.org/no-such-server - Not found; \
             npm error 404  'no-such-server@*' is not in this registry.; \
             npm error 404 Note that you can also install from a"
        );
        let node = "node:internal/modules/cjs/loader:1228\n  throw err;\n  ^\n\
            Error: Cannot find module '/srv/x.js'\n    at Module._load (loader:1)\n\
            \u{20}   at node:internal/main:28 {\n  code: 'MODULE_NOT_FOUND'\n}\n\nNode.js v22.0.0";
        assert_eq!(
            complaint(node),
            "Error: Cannot find module '/srv/x.js'; code: 'MODULE_NOT_FOUND'; }; Node.js v22.0.0"
        );
        let python = "Traceback (most recent call last):\n  File \"srv.py\", line 1, in <module>\n\
            ModuleNotFoundError: No module named 'mcp'";
        assert_eq!(complaint(python), "ModuleNotFoundError: No module named 'mcp'");
        assert_eq!(complaint("loading\ngoodbye"), "goodbye");
        assert_eq!(complaint(""), "");
    }

    #[test]
    fn a_flood_of_long_lines_is_kept_within_bytes_and_what_was_dropped_is_counted() {
        let configured =
            greenroom_config::Limits { stderr_bytes_per_s: 1000, ..Default::default() };
        let limits = Limits { stderr_burst_s: 4, ..Limits::from(configured) };
        let mut budget = Budget::new(&limits);
        let began = Instant::now();
        let at = |ms: u64| began + Duration::from_millis(ms);
        let taken = (0..100).filter(|_| budget.take(1000, began).is_some()).count();
        assert_eq!(taken, 4);
        assert_eq!(budget.take(1000, at(500)), None);
        let dropped = Dropped { lines: 97, bytes: 97_000 };
        assert_eq!(budget.take(1000, at(1500)), Some(dropped));
        // Ten seconds of it: what the burst gave, and a thousand bytes for each second.
        let later = (0..10_000).filter(|n| budget.take(1000, at(1500 + n)).is_some()).count();
        assert!((9..=11).contains(&later), "{later}");
    }
}
