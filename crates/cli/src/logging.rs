//! The log: structured lines on standard error.
//!
//! Invariant: no line is written before secrets are taken out of it, whoever it quotes.

use greenroom_host::Redactor;
use std::io::{self, IsTerminal, Write};
use tracing_subscriber::EnvFilter;

/// The MCP library would log what servers say.
const DEFAULT: &str = "info,rmcp=error";

/// Starts logging; `GREENROOM_LOG` says what, `json` in front of it how.
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

/// One line of the log, written as a whole once it is complete.
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
        // A closed standard error is no reason to stop.
        let _ = io::stderr().lock().write_all(&self.redactor.bytes(&self.line));
    }
}
