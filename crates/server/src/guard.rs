//! Before and after every request: where it claims to come from, its id, its log line.
//!
//! Invariant: a page of another site cannot reach the host through a visitor's browser: `Host` must be a
//! known name and `Origin`, where there is one, the host's own.

use crate::answer::Problem;
use crate::router::App;
use axum::extract::{Request, State};
use axum::http::header::{HOST, ORIGIN};
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::time::Instant;
use tracing::Instrument;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

pub(crate) async fn guard(State(app): State<App>, mut request: Request, next: Next) -> Response {
    let id = request_id(request.headers());
    request.headers_mut().insert(REQUEST_ID, id.clone());
    let method = request.method().clone();
    let path = request.uri().path().to_owned();
    let span = tracing::info_span!("request", id = id.to_str().unwrap_or_default());
    let started = Instant::now();
    let mut response = match check_origin(&app, &request) {
        Ok(()) => next.run(request).instrument(span.clone()).await,
        Err(problem) => problem.into_response(),
    };
    response.headers_mut().insert(REQUEST_ID, id);
    response.headers_mut().insert("x-content-type-options", HeaderValue::from_static("nosniff"));
    let status = response.status().as_u16();
    let took_us = started.elapsed().as_micros();
    span.in_scope(|| tracing::debug!(%method, path, status, took_us, "answered"));
    response
}

/// The caller's own id if it is a sane one, else a new one.
fn request_id(headers: &HeaderMap) -> HeaderValue {
    let sane = |value: &&HeaderValue| {
        value.len() <= 128 && value.to_str().is_ok_and(|text| !text.is_empty())
    };
    headers.get(REQUEST_ID).filter(sane).cloned().unwrap_or_else(|| {
        let id = uuid::Uuid::now_v7().simple().to_string();
        HeaderValue::from_str(&id).unwrap_or_else(|_| HeaderValue::from_static("none"))
    })
}

fn check_origin(app: &App, request: &Request) -> Result<(), Problem> {
    let host = request.headers().get(HOST).and_then(|value| value.to_str().ok());
    let host = host.or_else(|| request.uri().authority().map(|authority| authority.as_str()));
    let host = host.unwrap_or_default();
    let name = host_name(host);
    let known = is_loopback(name)
        || name.parse::<std::net::IpAddr>().is_ok()
        || app.options.allowed_hosts.iter().any(|allowed| allowed.eq_ignore_ascii_case(name));
    if !known {
        let hint = "add it to `server.allowed_hosts`";
        return Err(Problem::forbidden(format!("`Host` is not a name of this host; {hint}")));
    }
    let Some(origin) = request.headers().get(ORIGIN) else { return Ok(()) };
    let origin = origin.to_str().unwrap_or_default();
    let own = origin.split_once("://").is_some_and(|(_, authority)| authority == host);
    if own || app.options.allowed_origins.iter().any(|allowed| allowed == origin) {
        return Ok(());
    }
    Err(Problem::forbidden("`Origin` is another site; add it to `server.allowed_origins`"))
}

/// The name without its port; brackets of IPv6 addresses taken off.
fn host_name(host: &str) -> &str {
    if let Some(rest) = host.strip_prefix('[') {
        return rest.split(']').next().unwrap_or_default();
    }
    host.rsplit_once(':').map_or(host, |(name, _)| name)
}

fn is_loopback(name: &str) -> bool {
    name.eq_ignore_ascii_case("localhost")
}
