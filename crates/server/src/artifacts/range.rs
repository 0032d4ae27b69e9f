//! Conditional and range requests for artifacts (RFC 9110 §13, §14).
//!
//! Invariant: a range lies within the content and is not empty. An invalid header is ignored, and so is a header
//! with several ranges.

use axum::http::HeaderMap;
use axum::http::header::{IF_NONE_MATCH, IF_RANGE, RANGE};
use std::ops::Range;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Selection {
    All,
    Part(Range<u64>),
    /// The client has the current content.
    NotModified,
    Unsatisfiable,
}

pub(super) fn select(headers: &HeaderMap, tag: &str, size: u64) -> Selection {
    if etag_matches(headers, tag) {
        return Selection::NotModified;
    }
    let text = |name| headers.get(name).map(|value| value.to_str().unwrap_or_default());
    // The client has the beginning of another version: it needs everything.
    if text(IF_RANGE).is_some_and(|known| known != tag) {
        return Selection::All;
    }
    text(RANGE).and_then(parse).map_or(Selection::All, |range| range.of(size))
}

/// Whether `If-None-Match` contains the tag.
pub(crate) fn etag_matches(headers: &HeaderMap, tag: &str) -> bool {
    let known = headers.get_all(IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    let mut tags = known.flat_map(|list| list.split(',')).map(str::trim);
    tags.any(|known| known == "*" || known.strip_prefix("W/").unwrap_or(known) == tag)
}

enum ByteRange {
    From {
        first: u64,
        last: Option<u64>,
    },
    /// The last bytes.
    Suffix(u64),
}

impl ByteRange {
    fn of(self, size: u64) -> Selection {
        let part = match self {
            ByteRange::Suffix(length) => size.saturating_sub(length)..size,
            ByteRange::From { first, last } => {
                let end = last.map_or(size, |last| size.min(last.saturating_add(1)));
                first..end
            }
        };
        if part.is_empty() { Selection::Unsatisfiable } else { Selection::Part(part) }
    }
}

fn parse(text: &str) -> Option<ByteRange> {
    let (unit, range) = text.split_once('=')?;
    if !unit.trim().eq_ignore_ascii_case("bytes") {
        return None;
    }
    let (first, last) = range.trim().split_once('-')?;
    let number = |text: &str| {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        // A number too large to parse is beyond every size.
        digits.then(|| text.parse().unwrap_or(u64::MAX))
    };
    match (first, last) {
        ("", last) => Some(ByteRange::Suffix(number(last)?)),
        (first, "") => Some(ByteRange::From { first: number(first)?, last: None }),
        (first, last) => {
            let (first, last) = (number(first)?, number(last)?);
            (first <= last).then_some(ByteRange::From { first, last: Some(last) })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::{HeaderName, HeaderValue};
    use proptest::prelude::*;

    const TAG: &str = "\"abc\"";

    fn selected(headers: &[(HeaderName, &str)]) -> Selection {
        let headers = headers
            .iter()
            .map(|(name, value)| (name.clone(), HeaderValue::from_str(value).unwrap()));
        select(&headers.collect(), TAG, 10)
    }

    #[test]
    fn one_range_is_served_from_either_end() {
        for (range, part) in [
            ("bytes=0-0", 0..1),
            ("bytes=2-5", 2..6),
            ("bytes=2-", 2..10),
            ("bytes=9-99", 9..10),
            ("bytes=0-99999999999999999999999", 0..10),
            ("bytes=-3", 7..10),
            ("bytes=-99", 0..10),
            ("BYTES = 1-2", 1..3),
        ] {
            assert_eq!(selected(&[(RANGE, range)]), Selection::Part(part), "{range}");
        }
        for range in ["bytes=10-", "bytes=10-12", "bytes=-0", "bytes=99999999999999999999-"] {
            assert_eq!(selected(&[(RANGE, range)]), Selection::Unsatisfiable, "{range}");
        }
        for range in ["bytes=5-2", "bytes=0-1,3-4", "bytes", "lines=1-2", "bytes=a-b", "bytes=--1"]
        {
            assert_eq!(selected(&[(RANGE, range)]), Selection::All, "{range}");
        }
    }

    #[test]
    fn known_bytes_are_not_sent_again() {
        for known in [TAG, "*", "W/\"abc\"", "\"x\", \"abc\""] {
            assert_eq!(
                selected(&[(IF_NONE_MATCH, known), (RANGE, "bytes=0-0")]),
                Selection::NotModified
            );
        }
        assert_eq!(selected(&[(IF_NONE_MATCH, "\"x\"")]), Selection::All);
        assert_eq!(selected(&[(IF_RANGE, TAG), (RANGE, "bytes=0-0")]), Selection::Part(0..1));
        assert_eq!(selected(&[(IF_RANGE, "\"x\""), (RANGE, "bytes=0-0")]), Selection::All);
    }

    proptest! {
        #[test]
        fn a_selected_range_is_always_within_the_content(range in "[ -~]{0,30}", size in 0_u64..50) {
            let headers = [(RANGE, HeaderValue::from_str(&format!("bytes={range}")).unwrap())];
            if let Selection::Part(part) = select(&headers.into_iter().collect(), TAG, size) {
                prop_assert!(part.start < part.end && part.end <= size);
            }
        }
    }
}
