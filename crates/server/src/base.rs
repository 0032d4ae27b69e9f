//! Requests under the path prefix that a shared proxy gives the host (`server.base_path`).
//!
//! Invariant: a request with the prefix and the same request without it are equal, so the proxy may or may not
//! strip the prefix.

use crate::router::routes;
use crate::ui;
use axum::http::Uri;
use axum::http::uri::PathAndQuery;
use greenroom_config::BasePath;

/// The address without the prefix.
pub(crate) fn strip(base: &BasePath, uri: &Uri) -> Option<Uri> {
    let rest = uri.path_and_query()?.as_str().strip_prefix(base.as_str())?;
    if base.as_str().is_empty() {
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

/// Whether a path of the host begins with a name, which could then not be told from a prefix.
pub fn is_route(name: &str) -> bool {
    let begins = |path: &str| path.split('/').nth(1) == Some(name);
    ui::is_own(name) || routes().iter().any(|route| begins(route.path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_is_stripped_from_the_start_of_a_path() {
        let base = BasePath::parse("/a/greenroom/", is_route).unwrap();
        assert_eq!(base.as_str(), "/a/greenroom");
        let inside = |text: &str| strip(&base, &text.parse().unwrap()).map(|uri| uri.to_string());
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
        assert_eq!(strip(&BasePath::default(), &Uri::from_static("/v1/runs")), None);
    }

    #[test]
    fn a_prefix_is_not_a_path_of_the_host() {
        for name in ["v1", "healthz", "chat", "assets", "metrics", "icon.svg"] {
            assert!(is_route(name), "{name}");
        }
        assert!(!is_route("greenroom"));
    }
}
