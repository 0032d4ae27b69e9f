//! The path that the host is reached under, behind a proxy that other things are behind as well.
//!
//! Invariant: a request with the prefix and the same request without it are one request, so that it does not
//! matter whether the proxy takes the prefix off.

use crate::router::routes;
use crate::ui;
use axum::http::Uri;
use axum::http::uri::PathAndQuery;

/// Longest prefix.
const BYTES_MAX: usize = 255;

/// Nothing, or a path such as `/greenroom`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BasePath(String);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadBasePath {
    #[error("it has to begin with `/` and have plain names, e.g. `/greenroom`")]
    Malformed,
    #[error("`/{0}` is an address of the host's own")]
    Taken(String),
}

impl BasePath {
    /// Slashes at the end do not count.
    pub fn parse(text: &str) -> Result<Self, BadBasePath> {
        let path = text.trim_end_matches('/');
        if path.is_empty() && text.len() <= 1 {
            return Ok(Self::default());
        }
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.~".contains(c);
        let is_name = |part: &str| {
            !part.is_empty() && part.chars().all(is_plain) && part.chars().any(|c| c != '.')
        };
        let names = path.strip_prefix('/').filter(|_| path.len() <= BYTES_MAX);
        let names = names.filter(|names| names.split('/').all(is_name));
        let first =
            names.and_then(|names| names.split('/').next()).ok_or(BadBasePath::Malformed)?;
        match is_taken(first) {
            true => Err(BadBasePath::Taken(first.to_owned())),
            false => Ok(Self(path.to_owned())),
        }
    }

    /// As it stands in front of a path that begins with `/`.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The address without the prefix.
    pub(crate) fn strip(&self, uri: &Uri) -> Option<Uri> {
        let rest = uri.path_and_query()?.as_str().strip_prefix(&self.0)?;
        if self.0.is_empty() {
            return None;
        }
        let inside = match rest.chars().next() {
            Some('/') => rest.to_owned(),
            None | Some('?') => format!("/{rest}"),
            Some(_) => return None,
        };
        let mut parts = uri.clone().into_parts();
        parts.path_and_query = Some(PathAndQuery::try_from(inside).ok()?);
        Uri::from_parts(parts).ok()
    }
}

/// Whether addresses of the host begin with a name, which could not be told from a prefix.
fn is_taken(name: &str) -> bool {
    let begins = |path: &str| path.split('/').nth(1) == Some(name);
    ui::is_own(name) || routes().iter().any(|route| begins(route.path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_is_taken_off_where_it_stands() {
        let base = BasePath::parse("/a/greenroom/").unwrap();
        assert_eq!(base.as_str(), "/a/greenroom");
        let inside = |text: &str| base.strip(&text.parse().unwrap()).map(|uri| uri.to_string());
        for (outer, inner) in [
            ("/a/greenroom", "/"),
            ("/a/greenroom/", "/"),
            ("/a/greenroom?x=1", "/?x=1"),
            ("/a/greenroom/v1/runs?limit=1", "/v1/runs?limit=1"),
            ("/a/greenroom/a/greenroom/x", "/a/greenroom/x"),
            ("http://h:1/a/greenroom/v1", "http://h:1/v1"),
        ] {
            assert_eq!(inside(outer).as_deref(), Some(inner), "{outer}");
        }
        for other in
            ["/", "/v1/runs", "/a", "/a/greenrooms/v1", "/A/greenroom/v1", "/b?/a/greenroom"]
        {
            assert_eq!(inside(other), None, "{other}");
        }
        assert_eq!(BasePath::default().strip(&Uri::from_static("/v1/runs")), None);
    }

    #[test]
    fn a_prefix_is_a_plain_path_that_is_not_the_hosts_own() {
        for none in ["", "/"] {
            assert_eq!(BasePath::parse(none), Ok(BasePath::default()));
        }
        for text in
            ["greenroom", "//", "/a//b", "/a b", "/a/../b", "/.", "/a?b", "/a%20", "/é", "/a\"b"]
        {
            assert_eq!(BasePath::parse(text), Err(BadBasePath::Malformed), "{text}");
        }
        for name in ["v1", "healthz", "chat", "assets", "metrics", "icon.svg"] {
            let taken = BasePath::parse(&format!("/{name}/x"));
            assert_eq!(taken, Err(BadBasePath::Taken(name.to_owned())));
        }
    }
}
