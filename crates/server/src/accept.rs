//! What kind of answer a caller asks for.
//!
//! Invariant: a stream is given only to a caller that names `text/event-stream`, does not refuse it (`q=0`)
//! and does not like JSON better.

use axum::http::HeaderMap;
use axum::http::header::ACCEPT;

const STREAM: &str = "text/event-stream";
const JSON: &str = "application/json";

pub(crate) fn wants_stream(headers: &HeaderMap) -> bool {
    let lists = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let ranges: Vec<&str> = lists.flat_map(|list| list.split(',')).collect();
    let stream = weight(&ranges, STREAM).unwrap_or(0.0);
    stream > 0.0 && stream >= weight(&ranges, JSON).unwrap_or(0.0)
}

/// How much a type is liked, 0 to 1; nothing if it is not named.
fn weight(ranges: &[&str], kind: &str) -> Option<f32> {
    let weights = ranges.iter().filter_map(|range| {
        let mut parts = range.split(';').map(str::trim);
        parts.next().filter(|name| name.eq_ignore_ascii_case(kind))?;
        let quality = parts.find_map(|part| part.strip_prefix("q=").or(part.strip_prefix("Q=")));
        // A weight that does not parse counts as none at all, which is 1.
        let parsed = quality.and_then(|text| text.parse::<f32>().ok());
        Some(parsed.filter(|weight| (0.0..=1.0).contains(weight)).unwrap_or(1.0))
    });
    weights.reduce(f32::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;
    use proptest::prelude::*;

    fn wants(values: &[&str]) -> bool {
        let values = values.iter().map(|value| (ACCEPT, HeaderValue::from_str(value).unwrap()));
        wants_stream(&values.collect())
    }

    #[test]
    fn a_stream_is_given_to_those_who_ask_for_it() {
        for asked in [
            "text/event-stream",
            "Text/Event-Stream; charset=utf-8",
            "application/json, text/event-stream",
            "text/event-stream;q=0.5, */*;q=0.1",
            "text/event-stream;q=junk",
        ] {
            assert!(wants(&[asked]), "{asked}");
        }
        assert!(wants(&["text/html", "text/event-stream"]), "in a second header");
    }

    #[test]
    fn a_stream_is_not_given_to_others() {
        for asked in [
            "",
            "*/*",
            "text/*",
            "application/json",
            "text/event-stream;q=0",
            "text/event-stream; q=0.0",
            "application/json, text/event-stream;q=0.1",
            "text/event-streams",
            "x-text/event-stream",
        ] {
            assert!(!wants(&[asked]), "{asked}");
        }
        assert!(!wants(&[]));
    }

    proptest! {
        #[test]
        fn a_caller_that_does_not_name_streams_gets_none(list in "[ -~]{0,60}") {
            prop_assume!(!list.to_lowercase().contains(STREAM));
            prop_assert!(!wants(&[&list]));
        }
    }
}
