//! The session cookie: written to and read from headers.
//!
//! Invariant: no script reads it, no other site's page sends it, and two hosts on one machine do not overwrite
//! each other's: browsers distinguish cookies by name, not by port.

use crate::request_policy::Scheme;
use axum::http::header::COOKIE;
use axum::http::{HeaderMap, HeaderValue};
use std::time::Duration;

/// Cookies of the same name that are checked: other programs on the machine may add some.
const SAME_NAME_MAX: usize = 8;

pub(super) struct Cookie<'a> {
    pub(super) name: &'a str,
    /// The base path of the host; empty means the whole site.
    pub(super) path: &'a str,
    /// Cookies set over `https` are sent over `https` only.
    pub(super) scheme: Scheme,
}

impl Cookie<'_> {
    pub(super) fn set(&self, secret: &str, lifetime: Duration) -> Option<HeaderValue> {
        self.header(secret, lifetime.as_secs())
    }

    /// Makes the browser delete the cookie.
    pub(super) fn clear(&self) -> Option<HeaderValue> {
        self.header("", 0)
    }

    fn header(&self, value: &str, max_age_s: u64) -> Option<HeaderValue> {
        let name = self.name;
        let path = if self.path.is_empty() { "/" } else { self.path };
        let secure = match self.scheme {
            Scheme::Http => "",
            Scheme::Https => "; Secure",
        };
        let text = format!(
            "{name}={value}; HttpOnly; SameSite=Strict; Path={path}; Max-Age={max_age_s}{secure}"
        );
        let mut header = HeaderValue::from_str(&text).ok()?;
        header.set_sensitive(true);
        Some(header)
    }
}

/// The values of cookies with this name.
pub(crate) fn values<'a>(headers: &'a HeaderMap, name: &'a str) -> impl Iterator<Item = &'a str> {
    let lists = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    let pairs = lists.flat_map(|list| list.split(';')).filter_map(|pair| pair.split_once('='));
    pairs
        .filter(move |(key, _)| key.trim() == name)
        .map(|(_, value)| value.trim())
        .take(SAME_NAME_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(lists: &[&str]) -> Vec<String> {
        let headers = lists.iter().map(|list| (COOKIE, HeaderValue::from_str(list).unwrap()));
        values(&headers.collect(), "s_1").map(str::to_owned).collect()
    }

    #[test]
    fn a_cookie_is_found_by_its_whole_name() {
        assert_eq!(parse(&["a=1; s_1=x; b=2"]), ["x"]);
        assert_eq!(parse(&["s_1=x;s_1=y", "s_1=z"]), ["x", "y", "z"]);
        for other in ["", "s_1", "s_10=x", "xs_1=x", "S_1=x", "a=s_1=x", "s_2=x; t"] {
            assert_eq!(parse(&[other]), [""; 0], "{other}");
        }
        assert_eq!(parse(&["s_1=x; ".repeat(100).as_str()]).len(), SAME_NAME_MAX);
    }

    proptest! {
        #[test]
        fn any_cookie_header_is_parsed(list in "[ -~]{0,80}") {
            for value in parse(&[&list]) {
                prop_assert!(list.contains(&value));
            }
        }
    }
}
