//! The log: structured lines on standard error.

use std::io::IsTerminal;
use tracing_subscriber::EnvFilter;

/// Starts logging; `GREENROOM_LOG` says what, `json` in front of it how.
pub(crate) fn start() {
    let wanted = crate::env::get(crate::env::LOG).unwrap_or_default();
    let (json, filter) = match wanted.strip_prefix("json") {
        Some(rest) => (true, rest.trim_start_matches(',')),
        None => (false, wanted.as_str()),
    };
    let filter = if filter.is_empty() { "info" } else { filter };
    let filter = EnvFilter::try_new(filter).unwrap_or_else(|_| EnvFilter::new("info"));
    let plain = crate::env::get(crate::env::NO_COLOR).is_some_and(|value| !value.is_empty());
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(!plain && std::io::stderr().is_terminal());
    if json {
        builder.json().init();
    } else {
        builder.compact().init();
    }
}
