//! Content negotiation: JSON or event stream, and the language.
//!
//! Invariant: a stream is returned only to a caller that names `text/event-stream`, does not exclude it (`q=0`)
//! and does not prefer JSON.

use axum::extract::FromRequestParts;
use axum::http::HeaderMap;
use axum::http::header::{ACCEPT, ACCEPT_LANGUAGE, HeaderName};
use axum::http::request::Parts;
use greenroom_tools::ui::Language;
use std::convert::Infallible;

const STREAM: &str = "text/event-stream";
const JSON: &str = "application/json";

pub(crate) fn wants_stream(headers: &HeaderMap) -> bool {
    let ranges = ranges(headers, ACCEPT);
    let stream = weight(&ranges, STREAM).unwrap_or(0.0);
    stream > 0.0 && stream >= weight(&ranges, JSON).unwrap_or(0.0)
}

/// The caller's preferred language, for texts that the host writes itself.
pub(crate) struct AcceptLanguage(pub(crate) Language);

impl<S: Sync> FromRequestParts<S> for AcceptLanguage {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Infallible> {
        Ok(Self(language(&parts.headers)))
    }
}

/// The supported language with the highest weight; the first one named among equals.
pub(crate) fn language(headers: &HeaderMap) -> Language {
    let mut best = (Language::default(), 0.0);
    for range in ranges(headers, ACCEPT_LANGUAGE) {
        let (tag, weight) = weighted(range);
        let known = match tag.split('-').next().unwrap_or_default() {
            first if first.eq_ignore_ascii_case("zh") => Language::Chinese,
            first if first.eq_ignore_ascii_case("en") => Language::English,
            _ => continue,
        };
        if weight > best.1 {
            best = (known, weight);
        }
    }
    best.0
}

/// Longest language tag.
const TAG_BYTES_MAX: usize = 64;

/// The language tag with the highest weight, the first one among equals; none if any language will do.
pub(crate) fn locale(headers: &HeaderMap) -> Option<String> {
    let is_tag = |tag: &str| {
        (1..=TAG_BYTES_MAX).contains(&tag.len())
            && tag.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    let mut best = (None, 0.0);
    for (tag, weight) in ranges(headers, ACCEPT_LANGUAGE).into_iter().map(weighted) {
        if weight > best.1 && is_tag(tag) {
            best = (Some(tag), weight);
        }
    }
    best.0.map(str::to_owned)
}

fn ranges(headers: &HeaderMap, name: HeaderName) -> Vec<&str> {
    let lists = headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
    lists.flat_map(|list| list.split(',')).collect()
}

/// The weight of a type, 0 to 1; `None` if it is not named.
fn weight(ranges: &[&str], kind: &str) -> Option<f32> {
    let named = ranges.iter().map(|range| weighted(range));
    let weights = named.filter(|(name, _)| name.eq_ignore_ascii_case(kind));
    weights.map(|(_, weight)| weight).reduce(f32::max)
}

/// The name in a range, and its weight.
fn weighted(range: &str) -> (&str, f32) {
    let mut parts = range.split(';').map(str::trim);
    let name = parts.next().unwrap_or_default();
    let quality = parts.find_map(|part| part.strip_prefix("q=").or(part.strip_prefix("Q=")));
    // An invalid weight counts as missing, which means 1.
    let parsed = quality.and_then(|text| text.parse::<f32>().ok());
    (name, parsed.filter(|weight| (0.0..=1.0).contains(weight)).unwrap_or(1.0))
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
    fn the_locale_is_the_tag_that_the_caller_prefers() {
        let of = |value: &str| {
            let value = HeaderValue::from_str(value).unwrap();
            locale(&HeaderMap::from_iter([(ACCEPT_LANGUAGE, value)]))
        };
        assert_eq!(of("zh-CN,zh;q=0.9,en;q=0.8").as_deref(), Some("zh-CN"));
        assert_eq!(of("en;q=0.5, pt-BR").as_deref(), Some("pt-BR"));
        assert_eq!((of("*"), of(""), of("x y, <b>"), of("de;q=0")), (None, None, None, None));
    }

    #[test]
    fn callers_that_accept_a_stream_get_one() {
        for accept in [
            "text/event-stream",
            "Text/Event-Stream; charset=utf-8",
            "application/json, text/event-stream",
            "text/event-stream;q=0.5, */*;q=0.1",
            "text/event-stream;q=junk",
        ] {
            assert!(wants(&[accept]), "{accept}");
        }
        assert!(wants(&["text/html", "text/event-stream"]), "in a second header");
    }

    #[test]
    fn other_callers_get_no_stream() {
        for accept in [
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
            assert!(!wants(&[accept]), "{accept}");
        }
        assert!(!wants(&[]));
    }

    #[test]
    fn chinese_is_chosen_where_it_has_the_highest_weight() {
        let read = |value: &str| {
            let value = HeaderValue::from_bytes(value.as_bytes()).unwrap();
            language(&HeaderMap::from_iter([(ACCEPT_LANGUAGE, value)]))
        };
        for accept in ["zh", "zh-CN,zh;q=0.9,en;q=0.8", "de, ZH-hant;q=0.5", "en;q=0.2, zh;q=0.3"] {
            assert_eq!(read(accept), Language::Chinese, "{accept}");
        }
        for accept in ["", "*", "en", "en, zh", "zh;q=0", "zh;q=0.5, en", "zhx", "de", "中文"] {
            assert_eq!(read(accept), Language::English, "{accept}");
        }
        assert_eq!(language(&HeaderMap::new()), Language::English);
    }

    proptest! {
        #[test]
        fn a_caller_that_does_not_name_streams_gets_none(list in "[ -~]{0,60}") {
            prop_assume!(!list.to_lowercase().contains(STREAM));
            prop_assert!(!wants(&[&list]));
        }
    }
}
