//! The wall clock of the writer, for times that only the transaction knows.

use std::time::SystemTime;

/// Milliseconds since the Unix epoch.
pub(crate) fn now_ms() -> i64 {
    let since = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
