//! Which part of an artifact a request asks for (RFC 9110 §13, §14).
//!
//! Invariant: a part lies within the bytes and is not empty. What does not parse is as if it were not there;
//! of several ranges at once none is served.

use axum::http::HeaderMap;
use axum::http::header::{IF_NONE_MATCH, IF_RANGE, RANGE};
use std::ops::Range;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    All,
    Part(Range<u64>),
    /// The caller has them already.
    Nothing,
    OutOfReach,
}

pub(super) fn wanted(headers: &HeaderMap, tag: &str, size: u64) -> Wanted {
    if has_bytes(headers, tag) {
        return Wanted::Nothing;
    }
    let text = |name| headers.get(name).map(|value| value.to_str().unwrap_or_default());
    // A part of other bytes than the caller has the beginning of would be of no use.
    if text(IF_RANGE).is_some_and(|known| known != tag) {
        return Wanted::All;
    }
    text(RANGE).and_then(parse).map_or(Wanted::All, |range| range.of(size))
}

/// Whether the caller has what the tag stands for.
pub(crate) fn has_bytes(headers: &HeaderMap, tag: &str) -> bool {
    let known = headers.get_all(IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    let mut tags = known.flat_map(|list| list.split(',')).map(str::trim);
    tags.any(|known| known == "*" || known.strip_prefix("W/").unwrap_or(known) == tag)
}

enum Asked {
    From {
        first: u64,
        last: Option<u64>,
    },
    /// The last so many.
    Suffix(u64),
}

impl Asked {
    fn of(self, size: u64) -> Wanted {
        let part = match self {
            Asked::Suffix(length) => size.saturating_sub(length)..size,
            Asked::From { first, last } => {
                let end = last.map_or(size, |last| size.min(last.saturating_add(1)));
                first..end
            }
        };
        if part.is_empty() { Wanted::OutOfReach } else { Wanted::Part(part) }
    }
}

fn parse(text: &str) -> Option<Asked> {
    let (unit, range) = text.split_once('=')?;
    if !unit.trim().eq_ignore_ascii_case("bytes") {
        return None;
    }
    let (first, last) = range.trim().split_once('-')?;
    let number = |text: &str| {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        // A number beyond all sizes is behind every end.
        digits.then(|| text.parse().unwrap_or(u64::MAX))
    };
    match (first, last) {
        ("", last) => Some(Asked::Suffix(number(last)?)),
        (first, "") => Some(Asked::From { first: number(first)?, last: None }),
        (first, last) => {
            let (first, last) = (number(first)?, number(last)?);
            (first <= last).then_some(Asked::From { first, last: Some(last) })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::{HeaderName, HeaderValue};
    use proptest::prelude::*;

    const TAG: &str = "\"abc\"";

    fn asked(headers: &[(HeaderName, &str)]) -> Wanted {
        let headers = headers
            .iter()
            .map(|(name, value)| (name.clone(), HeaderValue::from_str(value).unwrap()));
        wanted(&headers.collect(), TAG, 10)
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
            assert_eq!(asked(&[(RANGE, range)]), Wanted::Part(part), "{range}");
        }
        for range in ["bytes=10-", "bytes=10-12", "bytes=-0", "bytes=99999999999999999999-"] {
            assert_eq!(asked(&[(RANGE, range)]), Wanted::OutOfReach, "{range}");
        }
        for range in ["bytes=5-2", "bytes=0-1,3-4", "bytes", "lines=1-2", "bytes=a-b", "bytes=--1"]
        {
            assert_eq!(asked(&[(RANGE, range)]), Wanted::All, "{range}");
        }
    }

    #[test]
    fn known_bytes_are_not_sent_again() {
        for known in [TAG, "*", "W/\"abc\"", "\"x\", \"abc\""] {
            assert_eq!(asked(&[(IF_NONE_MATCH, known), (RANGE, "bytes=0-0")]), Wanted::Nothing);
        }
        assert_eq!(asked(&[(IF_NONE_MATCH, "\"x\"")]), Wanted::All);
        assert_eq!(asked(&[(IF_RANGE, TAG), (RANGE, "bytes=0-0")]), Wanted::Part(0..1));
        assert_eq!(asked(&[(IF_RANGE, "\"x\""), (RANGE, "bytes=0-0")]), Wanted::All);
    }

    proptest! {
        #[test]
        fn whatever_is_asked_for_a_part_lies_within(range in "[ -~]{0,30}", size in 0_u64..50) {
            let headers = [(RANGE, HeaderValue::from_str(&format!("bytes={range}")).unwrap())];
            if let Wanted::Part(part) = wanted(&headers.into_iter().collect(), TAG, size) {
                prop_assert!(part.start < part.end && part.end <= size);
            }
        }
    }
}
