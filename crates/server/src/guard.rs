//! Before and after every request: where it comes from, its id, its log line.
//!
//! Invariant: every request is answered once and logged once, a handler that panics included. Neither
//! tokens nor query values reach the log. What is behind `/v1` stays in no cache that was not told to keep it.

use crate::answer::Problem;
use crate::front::{Outside, Peer};
use crate::origin::{self, From};
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
    let mut response = let_in(&app, request, next).instrument(span.clone()).await;
    response.headers_mut().insert(REQUEST_ID, id);
    let headers = response.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    // What pages of other sites embed without asking, they do not get.
    headers.insert(RESOURCE_POLICY, HeaderValue::from_static("same-origin"));
    if path.starts_with("/v1/") {
        let unkept = HeaderValue::from_static("no-store");
        headers.entry(header::CACHE_CONTROL).or_insert(unkept);
    }
    let status = response.status().as_u16();
    let took_us = started.elapsed().as_micros();
    span.in_scope(|| tracing::debug!(%method, path, status, took_us, "answered"));
    response
}

async fn let_in(app: &App, mut request: Request, next: Next) -> Response {
    let (outside, from) = match looked_at(app, &request) {
        Ok(found) => found,
        Err(problem) => return problem.into_response(),
    };
    request.extensions_mut().insert(outside);
    let From::Allowed(page) = from else { return answer(request, next).await };
    let mut response = if origin::is_preflight(request.method(), request.headers()) {
        let mut response = StatusCode::NO_CONTENT.into_response();
        origin::allow_requests(response.headers_mut());
        response
    } else {
        answer(request, next).await
    };
    origin::allow(page, response.headers_mut());
    response
}

/// How a request looks from outside, and where it comes from.
fn looked_at(app: &App, request: &Request) -> Result<(Outside, From), Problem> {
    let front = app.front.load();
    let peer: Peer = request.extensions().get().copied().ok_or_else(Problem::internal)?;
    let outside = Outside::of(&front, peer, request.uri(), request.headers())?;
    let from = origin::check(&front, &outside, request.headers())?;
    Ok((outside, from))
}

/// A panic is a mistake of ours; it ends this request and nothing else.
async fn answer(request: Request, next: Next) -> Response {
    match AssertUnwindSafe(next.run(request)).catch_unwind().await {
        Ok(response) => response,
        Err(_) => {
            tracing::error!("a request made the server panic");
            Problem::internal().into_response()
        }
    }
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
