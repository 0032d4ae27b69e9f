//! The cookie of a session: written for the browser, found in what it sends.
//!
//! Invariant: no script reads it, no other site's page sends it, and two hosts of one machine do not overwrite
//! each other's: browsers tell cookies apart by name and not by port.

use crate::front::Scheme;
use axum::http::header::COOKIE;
use axum::http::{HeaderMap, HeaderValue};
use std::time::Duration;

/// Cookies of one name that are looked at: other programs of the machine can add some.
const SAME_NAME_MAX: usize = 8;

/// Under which name a browser keeps it, and to which addresses it sends it.
pub(super) struct Cookie<'a> {
    pub(super) name: &'a str,
    /// The path of the host; nothing is the whole site.
    pub(super) path: &'a str,
    /// A cookie that came encrypted is sent encrypted alone.
    pub(super) scheme: Scheme,
}

impl Cookie<'_> {
    /// What tells the browser to keep a session.
    pub(super) fn kept(&self, secret: &str, life: Duration) -> Option<HeaderValue> {
        self.written(secret, life.as_secs())
    }

    /// What tells the browser to forget it.
    pub(super) fn forgotten(&self) -> Option<HeaderValue> {
        self.written("", 0)
    }

    fn written(&self, value: &str, max_age_s: u64) -> Option<HeaderValue> {
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

/// What a request has under a name.
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

    fn found(lists: &[&str]) -> Vec<String> {
        let headers = lists.iter().map(|list| (COOKIE, HeaderValue::from_str(list).unwrap()));
        values(&headers.collect(), "s_1").map(str::to_owned).collect()
    }

    #[test]
    fn a_cookie_is_found_by_its_whole_name() {
        assert_eq!(found(&["a=1; s_1=x; b=2"]), ["x"]);
        assert_eq!(found(&["s_1=x;s_1=y", "s_1=z"]), ["x", "y", "z"]);
        for other in ["", "s_1", "s_10=x", "xs_1=x", "S_1=x", "a=s_1=x", "s_2=x; t"] {
            assert_eq!(found(&[other]), [""; 0], "{other}");
        }
        assert_eq!(found(&["s_1=x; ".repeat(100).as_str()]).len(), SAME_NAME_MAX);
    }

    proptest! {
        #[test]
        fn any_cookies_are_read(list in "[ -~]{0,80}") {
            for value in found(&[&list]) {
                prop_assert!(list.contains(&value));
            }
        }
    }
}
