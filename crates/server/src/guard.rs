//! Middleware of every request: host and origin checks, request id, log line.
//!
//! Invariant: every request gets one response and one log line, also when its handler panics. Neither tokens
//! nor query values are logged. Responses under `/v1` are not cached unless their handler says so.

use crate::origin::{self, RequestOrigin};
use crate::request_policy::{ClientView, Peer};
use crate::response::Problem;
use crate::router::App;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;
use std::panic::AssertUnwindSafe;
use std::time::Instant;
use tracing::Instrument;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");

pub(crate) async fn guard(State(app): State<App>, mut request: Request, next: Next) -> Response {
    let id = request_id(request.headers());
    request.headers_mut().insert(REQUEST_ID, id.clone());
    let method = request.method().clone();
    let path = request.uri().path().to_owned();
    let span = tracing::info_span!("request", id = id.to_str().unwrap_or_default());
    let started = Instant::now();
    let mut response = handle(&app, request, next).instrument(span.clone()).await;
    response.headers_mut().insert(REQUEST_ID, id);
    let headers = response.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    // Other sites may not embed responses.
    headers.insert(RESOURCE_POLICY, HeaderValue::from_static("same-origin"));
    if path.starts_with("/v1/") {
        let no_store = HeaderValue::from_static("no-store");
        headers.entry(header::CACHE_CONTROL).or_insert(no_store);
    }
    let status = response.status().as_u16();
    let took_us = started.elapsed().as_micros();
    span.in_scope(|| tracing::debug!(%method, path, status, took_us, "request handled"));
    response
}

async fn handle(app: &App, mut request: Request, next: Next) -> Response {
    let (client, origin) = match check(app, &request) {
        Ok(checked) => checked,
        Err(problem) => return problem.into_response(),
    };
    request.extensions_mut().insert(client);
    let RequestOrigin::AllowedSite(site) = origin else { return run(request, next).await };
    let mut response = if origin::is_preflight(request.method(), request.headers()) {
        let mut response = StatusCode::NO_CONTENT.into_response();
        origin::allow_requests(response.headers_mut());
        response
    } else {
        run(request, next).await
    };
    origin::allow(site, response.headers_mut());
    response
}

/// The request as its client sent it, and the site it comes from.
fn check(app: &App, request: &Request) -> Result<(ClientView, RequestOrigin), Problem> {
    let policy = app.request_policy.load();
    let peer: Peer = request.extensions().get().copied().ok_or_else(Problem::internal)?;
    let client = ClientView::new(&policy, peer, request.uri(), request.headers())?;
    let origin = origin::check(&policy, &client, request.headers())?;
    Ok((client, origin))
}

/// A panic is a bug; it fails this request only.
async fn run(request: Request, next: Next) -> Response {
    match AssertUnwindSafe(next.run(request)).catch_unwind().await {
        Ok(response) => response,
        Err(_) => {
            tracing::error!("a request handler panicked");
            Problem::internal().into_response()
        }
    }
}

/// The caller's own id if it is valid, else a new one.
fn request_id(headers: &HeaderMap) -> HeaderValue {
    let is_valid = |value: &&HeaderValue| {
        value.len() <= 128 && value.to_str().is_ok_and(|text| !text.is_empty())
    };
    headers.get(REQUEST_ID).filter(is_valid).cloned().unwrap_or_else(|| {
        let id = uuid::Uuid::now_v7().simple().to_string();
        HeaderValue::from_str(&id).unwrap_or_else(|_| HeaderValue::from_static("none"))
    })
}
