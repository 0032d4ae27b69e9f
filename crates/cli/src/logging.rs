//! The log: structured lines on standard error.
//!
//! Invariant: secrets are redacted from every line.

use greenroom_host::Redactor;
use std::io::{self, IsTerminal, Write};
use tracing_subscriber::EnvFilter;

/// The MCP library would log messages of servers.
const DEFAULT: &str = "info,rmcp=error";

/// Starts logging; `GREENROOM_LOG` is the filter, with the prefix `json` for JSON lines.
pub(crate) fn start(redactor: Redactor) {
    let wanted = greenroom_config::env::get(greenroom_config::env::LOG).unwrap_or_default();
    let (json, filter) = match wanted.strip_prefix("json") {
        Some(rest) => (true, rest.trim_start_matches(',')),
        None => (false, wanted.as_str()),
    };
    let filter = if filter.is_empty() { DEFAULT } else { filter };
    let filter = EnvFilter::try_new(filter).unwrap_or_else(|_| EnvFilter::new(DEFAULT));
    let plain = greenroom_config::env::get(greenroom_config::env::NO_COLOR)
        .is_some_and(|value| !value.is_empty());
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(move || Clean { redactor: redactor.clone(), line: Vec::new() })
        .with_ansi(!plain && std::io::stderr().is_terminal());
    if json {
        builder.json().init();
    } else {
        builder.compact().init();
    }
}

/// One log line, written at once when it is complete.
struct Clean {
    redactor: Redactor,
    line: Vec<u8>,
}

impl Write for Clean {
    fn write(&mut self, part: &[u8]) -> io::Result<usize> {
        self.line.extend_from_slice(part);
        Ok(part.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Clean {
    fn drop(&mut self) {
        // A closed standard error must not stop the host.
        let _ = io::stderr().lock().write_all(&self.redactor.bytes(&self.line));
    }
}
