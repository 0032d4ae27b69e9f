//! Ids, times and hashes, made in one place.

use std::time::SystemTime;
use time::OffsetDateTime;
use time::format_description::BorrowedFormatItem;
use time::format_description::well_known::Rfc3339;
use time::macros::format_description;
use uuid::Uuid;

/// The default workspace.
pub const DEFAULT_WORKSPACE: &str = "default";

/// A new id, ordered by time: `run_0197…`.
pub(crate) fn fresh(prefix: &str) -> String {
    format!("{prefix}_{}", Uuid::now_v7().simple())
}

/// Unix milliseconds.
pub fn now_ms() -> i64 {
    unix_ms(SystemTime::now())
}

pub fn unix_ms(at: SystemTime) -> i64 {
    let elapsed = at.duration_since(SystemTime::UNIX_EPOCH);
    elapsed.ok().and_then(|age| i64::try_from(age.as_millis()).ok()).unwrap_or(0)
}

const RFC3339_MS: &[BorrowedFormatItem<'_>] =
    format_description!("[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:3]Z");

/// RFC 3339, UTC, with milliseconds.
pub fn rfc3339(unix_ms: i64) -> String {
    let nanos = i128::from(unix_ms) * 1_000_000;
    OffsetDateTime::from_unix_timestamp_nanos(nanos)
        .ok()
        .and_then(|at| at.format(RFC3339_MS).ok())
        .unwrap_or_default()
}

/// Unix milliseconds of a time in RFC 3339.
pub fn parse_rfc3339(text: &str) -> Option<i64> {
    let at = OffsetDateTime::parse(text, &Rfc3339).ok()?;
    i64::try_from(at.unix_timestamp_nanos().div_euclid(1_000_000)).ok()
}

/// A time as text, cached: thousands of deltas share a millisecond.
#[derive(Debug, Default)]
pub struct Moment {
    at_ms: i64,
    text: String,
}

impl Moment {
    pub fn text(&mut self, at_ms: i64) -> &str {
        if self.text.is_empty() || self.at_ms != at_ms {
            self.at_ms = at_ms;
            self.text = rfc3339(at_ms);
        }
        &self.text
    }
}

/// Lower-case hexadecimal. Every run needs some, so this avoids a formatter call per byte.
pub(crate) fn hex(bytes: &[u8]) -> String {
    const DIGITS: [char; 16] =
        ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f'];
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        text.push(DIGITS[usize::from(byte >> 4)]);
        text.push(DIGITS[usize::from(byte & 15)]);
    }
    text
}
