//! `Host` and `Origin` checks, and CORS.
//!
//! Invariant: a page of another site cannot reach the host through a visitor's browser. Every `Host` value of a
//! request is an IP address, a loopback name or an allowed name (which rules out DNS rebinding), and `Origin`,
//! where present, is the host's own or an allowed one. Sessions work from the host's own pages only: an allowed
//! site uses a token of its own.

use crate::request_policy::{ClientView, RequestPolicy, Scheme};
use crate::response::Problem;
use axum::http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD, ORIGIN,
    VARY,
};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method};
use std::net::IpAddr;

/// Set by browsers: the relation between the requesting page and the host.
const SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
/// Sent by the host's own pages with every write. RequestOrigin another site it needs a preflight, which is rejected.
const OWN: HeaderName = HeaderName::from_static("x-greenroom");

/// The site a permitted request comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RequestOrigin {
    /// Not a browser, or a page of the host itself.
    SameOrigin,
    /// Another site that the configuration allows.
    AllowedSite(HeaderValue),
}

pub(crate) fn check(
    policy: &RequestPolicy,
    client: &ClientView,
    headers: &HeaderMap,
) -> Result<RequestOrigin, Problem> {
    if !is_known(policy, &client.host) {
        let hint = "add it to `server.allowed_hosts`";
        return Err(Problem::forbidden(format!("`Host` is not an allowed host name; {hint}")));
    }
    let Some(origin) = headers.get(ORIGIN) else { return Ok(RequestOrigin::SameOrigin) };
    if is_own(origin, client) {
        return Ok(RequestOrigin::SameOrigin);
    }
    let text = origin.to_str().unwrap_or_default();
    if policy.allowed_origins.iter().any(|allowed| allowed == text) {
        return Ok(RequestOrigin::AllowedSite(origin.clone()));
    }
    Err(Problem::forbidden("`Origin` is not allowed; add it to `server.allowed_origins`"))
}

/// For requests that may carry a session cookie, which browsers attach on their own: requires that the host's
/// own page sent the request. Other ports of this machine count as other sites.
pub(crate) fn check_own_page(parts: &Parts) -> Result<(), Problem> {
    let (method, headers) = (&parts.method, &parts.headers);
    let client: &ClientView = parts.extensions.get().ok_or_else(Problem::internal)?;
    let is_read = method == Method::GET || method == Method::HEAD;
    let site = headers.get(SITE).map(|site| site.to_str().unwrap_or_default());
    let is_foreign = match site {
        None | Some("same-origin") => false,
        // Typed by the user, or a bookmark.
        Some("none") => !is_read,
        Some(_) => true,
    };
    if is_foreign || headers.get_all(ORIGIN).iter().any(|origin| !is_own(origin, client)) {
        return Err(Problem::forbidden("sessions work only from the host's own pages"));
    }
    if is_read {
        return Ok(());
    }
    if headers.get(OWN).is_none_or(|value| value != "1") {
        return Err(Problem::forbidden(
            "`X-Greenroom: 1` is missing: writes with a session need it",
        ));
    }
    match site.is_some() || headers.contains_key(ORIGIN) {
        true => Ok(()),
        false => Err(Problem::forbidden("`Origin` is missing: writes with a session need it")),
    }
}

/// An `http` page is not the host's own if the host is reached by `https`: it may have been tampered with. The
/// reverse is accepted, because a proxy may terminate TLS without forwarding the scheme.
fn is_own(origin: &HeaderValue, client: &ClientView) -> bool {
    let text = origin.to_str().unwrap_or_default();
    let authority = match (text.strip_prefix("https://"), text.strip_prefix("http://")) {
        (Some(authority), _) => authority,
        (None, Some(authority)) if client.scheme == Scheme::Http => authority,
        _ => return false,
    };
    authority.eq_ignore_ascii_case(&client.host)
}

fn is_known(policy: &RequestPolicy, host: &str) -> bool {
    let Some(name) = host_name(host) else { return false };
    name.eq_ignore_ascii_case("localhost")
        || name.parse::<IpAddr>().is_ok()
        || policy
            .allowed_hosts
            .iter()
            .any(|allowed| allowed.eq_ignore_ascii_case(name) || allowed.eq_ignore_ascii_case(host))
}

/// The name without port and IPv6 brackets.
fn host_name(host: &str) -> Option<&str> {
    let (name, rest) = match host.strip_prefix('[') {
        Some(rest) => rest.split_once(']')?,
        None => host.split_at(host.find(':').unwrap_or(host.len())),
    };
    let port = match rest.strip_prefix(':') {
        Some(port) => port,
        None => return rest.is_empty().then_some(name),
    };
    port.bytes().all(|byte| byte.is_ascii_digit()).then_some(name)
}

pub(crate) fn is_preflight(method: &Method, headers: &HeaderMap) -> bool {
    method == Method::OPTIONS && headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD)
}

/// Lets an allowed site read the response.
pub(crate) fn allow(site: HeaderValue, headers: &mut HeaderMap) {
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, site);
    headers.append(VARY, HeaderValue::from_static("origin"));
    let exposed = HeaderValue::from_static("x-request-id, retry-after");
    headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
}

/// The preflight response: what an allowed site may send.
pub(crate) fn allow_requests(headers: &mut HeaderMap) {
    let methods = HeaderValue::from_static("GET, POST");
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, methods);
    let allowed = "authorization, content-type, last-event-id, x-request-id";
    headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static(allowed));
    headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request_policy::Peer;
    use axum::http::{Request, Uri};
    use proptest::prelude::*;

    fn policy() -> RequestPolicy {
        RequestPolicy {
            allowed_hosts: vec!["bots.example.com".to_owned()],
            allowed_origins: vec!["https://chat.example.com".to_owned()],
            trusted_proxies: Vec::new(),
        }
    }

    fn checked_at(
        scheme: Scheme,
        uri: &Uri,
        headers: &[(&'static str, &str)],
    ) -> Result<RequestOrigin, Problem> {
        let headers = headers.iter().map(|(name, value)| {
            (name.parse::<HeaderName>().unwrap(), HeaderValue::from_str(value).unwrap())
        });
        let (headers, peer) = (headers.collect(), Peer { address: [127, 0, 0, 1].into(), scheme });
        check(&policy(), &ClientView::new(&policy(), peer, uri, &headers)?, &headers)
    }

    fn checked(headers: &[(&'static str, &str)]) -> Result<RequestOrigin, Problem> {
        checked_at(Scheme::Http, &Uri::from_static("/"), headers)
    }

    #[test]
    fn a_host_reached_by_https_accepts_https_pages_only() {
        let from = |scheme, origin| {
            let headers = [("host", "bots.example.com"), ("origin", origin)];
            checked_at(scheme, &Uri::from_static("/"), &headers).is_ok()
        };
        assert!(from(Scheme::Https, "https://bots.example.com"));
        assert!(!from(Scheme::Https, "http://bots.example.com"));
        assert!(from(Scheme::Http, "https://bots.example.com"), "a proxy that says nothing");
        assert!(from(Scheme::Http, "http://bots.example.com"));
    }

    #[test]
    fn the_hosts_own_names_are_accepted() {
        for host in [
            "localhost",
            "LOCALHOST:8700",
            "127.0.0.1:8700",
            "[::1]:8700",
            "[::1]",
            "192.168.1.4:80",
            "bots.example.com",
            "Bots.Example.Com:443",
        ] {
            assert!(checked(&[("host", host)]).is_ok(), "{host}");
        }
    }

    #[test]
    fn other_names_are_rejected() {
        for host in [
            "",
            ":8700",
            "evil.example",
            "evil.example:8700",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "localhost:80@evil.example",
            "evil.example:127.0.0.1",
            "[::1",
            "[::1]evil.example",
            "::1.evil.example",
        ] {
            assert!(checked(&[("host", host)]).is_err(), "{host}");
        }
        assert!(checked(&[]).is_err());
        assert!(checked(&[("host", "localhost"), ("host", "evil.example")]).is_err());
        let elsewhere = Uri::from_static("http://evil.example/v1/runs");
        assert!(checked_at(Scheme::Http, &elsewhere, &[("host", "localhost")]).is_err());
    }

    #[test]
    fn origins_are_checked() {
        let from = |origin| checked(&[("host", "localhost:8700"), ("origin", origin)]);
        assert_eq!(from("http://localhost:8700").unwrap(), RequestOrigin::SameOrigin);
        let allowed =
            RequestOrigin::AllowedSite(HeaderValue::from_static("https://chat.example.com"));
        assert_eq!(from("https://chat.example.com").unwrap(), allowed);
        for origin in [
            "null",
            "",
            "http://localhost:9999",
            "http://evil.example",
            "https://chat.example.com.evil.example",
            "http://chat.example.com",
            "http://localhost:8700.evil.example",
            "file://localhost:8700",
        ] {
            assert!(from(origin).is_err(), "{origin}");
        }
    }

    fn own_page(method: &Method, headers: &[(&'static str, &str)]) -> bool {
        let (host, client) = ("localhost:8700".to_owned(), [127, 0, 0, 1].into());
        let request = Request::builder().method(method).extension(ClientView {
            client,
            scheme: Scheme::Http,
            host,
        });
        let add = |request: axum::http::request::Builder, (name, value): &(&str, &str)| {
            request.header(*name, *value)
        };
        let (parts, ()) = headers.iter().fold(request, add).body(()).unwrap().into_parts();
        check_own_page(&parts).is_ok()
    }

    #[test]
    fn session_cookies_work_from_the_hosts_own_pages_only() {
        let (origin, marked) = (("origin", "http://localhost:8700"), ("x-greenroom", "1"));
        let site = |site| ("sec-fetch-site", site);
        // Headers, whether a read is accepted, whether a write is.
        let rows = [
            (vec![], true, false),
            (vec![origin, marked], true, true),
            (vec![site("same-origin"), marked], true, true),
            (vec![origin, site("same-origin"), marked], true, true),
            (vec![marked], true, false),
            (vec![origin], true, false),
            (vec![origin, ("x-greenroom", "0")], true, false),
            (vec![site("none"), marked], true, false),
            (vec![site("same-site"), origin, marked], false, false),
            (vec![site("cross-site"), origin, marked], false, false),
            (vec![site("Same-Origin "), origin, marked], false, false),
            (vec![("origin", "http://localhost:9999"), marked], false, false),
            (vec![("origin", "https://chat.example.com"), marked], false, false),
            (vec![("origin", "null"), site("same-origin"), marked], false, false),
            (vec![("origin", "http://127.0.0.1:8700"), marked], false, false),
            (vec![("origin", "http://localhost"), marked], false, false),
        ];
        for (headers, read, write) in rows {
            assert_eq!(own_page(&Method::GET, &headers), read, "read {headers:?}");
            assert_eq!(own_page(&Method::HEAD, &headers), read, "head {headers:?}");
            for method in [Method::POST, Method::PUT, Method::DELETE, Method::PATCH] {
                assert_eq!(own_page(&method, &headers), write, "{method} {headers:?}");
            }
        }
    }

    proptest! {
        #[test]
        fn a_host_that_is_not_allowed_is_rejected(host in "[!-~]{0,40}") {
            let name = host_name(&host).unwrap_or_default();
            let own = ["localhost", "bots.example.com"];
            prop_assume!(!own.contains(&&*name.to_lowercase()) && name.parse::<IpAddr>().is_err());
            prop_assert!(checked(&[("host", &host)]).is_err());
        }

        #[test]
        fn an_origin_that_is_not_allowed_is_rejected(origin in "[!-~]{0,40}") {
            let own = ["http://localhost", "https://localhost", "https://chat.example.com"];
            prop_assume!(!own.contains(&&*origin.to_lowercase()));
            prop_assert!(checked(&[("host", "localhost"), ("origin", &origin)]).is_err());
        }
    }
}
