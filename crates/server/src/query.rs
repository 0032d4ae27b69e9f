//! Query parameters: parsed by name, validated; unknown ones are rejected.
//!
//! Invariant: every parsed value is bounded, free of control characters and given once.

use crate::response::Problem;
use crate::router::App;
use axum::extract::{FromRequestParts, Query};
use axum::http::Uri;
use axum::http::request::Parts;
use greenroom_host::ids::{DEFAULT_WORKSPACE, parse_rfc3339};
use greenroom_protocol::event::EVENT_ID_BYTES_MAX;
use std::collections::BTreeMap;

/// Default page size.
pub(crate) const LIMIT_DEFAULT: usize = 50;
/// Longest value of a parameter.
pub(crate) const VALUE_BYTES_MAX: usize = 1024;

#[derive(Debug)]
pub(crate) struct Params {
    values: BTreeMap<String, String>,
    page_size_max: usize,
}

impl Params {
    fn parse(uri: &Uri, page_size_max: usize) -> Result<Self, Problem> {
        let query: Result<Query<Vec<(String, String)>>, _> = Query::try_from_uri(uri);
        let pairs = query.map_err(|_| Problem::invalid("the query does not parse"))?.0;
        let mut values = BTreeMap::new();
        for (name, value) in pairs {
            if value.len() > VALUE_BYTES_MAX || value.contains(char::is_control) {
                return Err(Problem::invalid(
                    "a query parameter is too long or contains control characters",
                ));
            }
            if name == "workspace_id" && !(1..=EVENT_ID_BYTES_MAX).contains(&value.len()) {
                return Err(Problem::invalid(format!(
                    "`workspace_id` must have 1 to {EVENT_ID_BYTES_MAX} bytes"
                )));
            }
            if values.insert(name, value).is_some() {
                return Err(Problem::invalid("a query parameter is given twice"));
            }
        }
        Ok(Params { values, page_size_max })
    }

    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.values.get(name).map(String::as_str)
    }

    pub(crate) fn workspace(&self) -> &str {
        self.text("workspace_id").unwrap_or(DEFAULT_WORKSPACE)
    }

    pub(crate) fn cursor(&self) -> Option<&str> {
        self.text("cursor")
    }

    pub(crate) fn limit(&self) -> Result<usize, Problem> {
        let Some(text) = self.text("limit") else {
            return Ok(LIMIT_DEFAULT.min(self.page_size_max));
        };
        let limit = number(text).and_then(|limit| usize::try_from(limit).ok());
        limit.filter(|limit| (1..=self.page_size_max).contains(limit)).ok_or_else(|| {
            Problem::invalid(format!("`limit` must be a number from 1 to {}", self.page_size_max))
        })
    }

    pub(crate) fn number(&self, name: &str) -> Result<Option<i64>, Problem> {
        let Some(text) = self.text(name) else { return Ok(None) };
        match number(text) {
            Some(number) => Ok(Some(number)),
            None => Err(Problem::invalid(format!("`{name}` must be a non-negative integer"))),
        }
    }

    /// An RFC 3339 time as Unix milliseconds, at least 0.
    pub(crate) fn time(&self, name: &str) -> Result<Option<i64>, Problem> {
        let Some(text) = self.text(name) else { return Ok(None) };
        let at = parse_rfc3339(text).map(|at| at.max(0));
        at.map(Some).ok_or_else(|| {
            let example = "2026-01-31T12:00:00Z";
            Problem::invalid(format!("`{name}` must be a time such as `{example}`"))
        })
    }

    /// Rejects parameters that the endpoint does not know.
    pub(crate) fn only(self, known: &[&str]) -> Result<Self, Problem> {
        let Some(name) = self.values.keys().find(|name| !known.contains(&name.as_str())) else {
            return Ok(self);
        };
        let name: String = name.escape_debug().take(64).collect();
        Err(Problem::invalid(match known {
            [] => format!("unknown parameter `{name}`: this endpoint has none"),
            _ => format!("unknown parameter `{name}`, expected one of: {}", known.join(", ")),
        }))
    }
}

/// Digits only: no sign, no spaces.
pub(crate) fn number(text: &str) -> Option<i64> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten()
}

impl FromRequestParts<App> for Params {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        Self::parse(&parts.uri, app.host.settings().limits.page_size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn params(query: &str) -> Result<Params, Problem> {
        Params::parse(&format!("/x?{query}").parse().unwrap(), 200)
    }

    #[test]
    fn numbers_are_digits_alone() {
        for text in ["", "+1", "-1", "1.0", "1e3", "0x1", " 1", "٣", "9223372036854775808"] {
            assert_eq!(number(text), None, "{text}");
        }
        assert_eq!(number("9223372036854775807"), Some(i64::MAX));
    }

    #[test]
    fn a_limit_is_within_its_bounds() {
        assert_eq!(params("").unwrap().limit().unwrap(), LIMIT_DEFAULT);
        assert_eq!(params("limit=200").unwrap().limit().unwrap(), 200);
        for query in ["limit=0", "limit=201", "limit=", "limit=x", "limit=99999999999999999999"] {
            assert!(params(query).unwrap().limit().is_err(), "{query}");
        }
    }

    #[test]
    fn malformed_and_unknown_parameters_are_rejected() {
        assert!(params("a=1&a=2").is_err());
        assert!(params("a=%00").is_err());
        assert!(params(&format!("a={}", "x".repeat(VALUE_BYTES_MAX + 1))).is_err());
        assert!(params("b=1").unwrap().only(&["a"]).is_err());
    }

    proptest! {
        #[test]
        fn any_query_is_parsed_or_rejected(query in "[!-~&&[^#]]{0,80}") {
            let Ok(uri) = format!("/x?{query}").parse::<Uri>() else { return Ok(()) };
            if let Ok(params) = Params::parse(&uri, 200) {
                for value in params.values.values() {
                    prop_assert!(value.len() <= VALUE_BYTES_MAX);
                    prop_assert!(!value.contains(char::is_control));
                }
                let _ = params.limit();
                let _ = params.number("after");
                let _ = params.only(&["limit"]);
            }
        }

        #[test]
        fn values_are_decoded_unchanged(value in "[^\\p{Cc}]{0,100}") {
            let encoded: String = value.bytes().map(|byte| format!("%{byte:02x}")).collect();
            let params = params(&format!("a={encoded}")).unwrap();
            prop_assert_eq!(params.text("a"), Some(&*value));
        }
    }
}
