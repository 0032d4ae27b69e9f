//! `POST /v1/events`.
//!
//! Invariant: a body is read within its size limit and timeout, and only after authentication.

use crate::accept::{language, wants_stream};
use crate::access::Caller;
use crate::query::Params;
use crate::response::{ApiResult, Problem};
use crate::router::App;
use crate::stream;
use crate::stream_access::StreamAccess;
use axum::Json;
use axum::body::{Body, HttpBody};
use axum::extract::{Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse;
use bytes::Bytes;
use futures_util::StreamExt;
use greenroom_host::ids::DEFAULT_WORKSPACE;
use greenroom_host::telemetry::TraceParent;
use greenroom_protocol::{ErrorCode, NewEvent};

/// How much of a body that is too large is read and dropped: a sender that is still writing when its
/// connection closes cannot read the response.
const DROPPED_BYTES_MAX: usize = 16 * 1024 * 1024;

pub(crate) async fn accept(
    State(app): State<App>,
    caller: Caller,
    params: Params,
    request: Request,
) -> ApiResult {
    let mut sender = caller.require_sender()?;
    params.only(&[])?;
    check_type(request.headers())?;
    sender.traceparent = traceparent(request.headers());
    let live = wants_stream(request.headers());
    let language = language(request.headers());
    let body = read_body(&app, request.into_body()).await?;
    let event = NewEvent::parse(&body).map_err(|error| Problem::invalid(error.to_string()))?;
    let workspace = event.workspace_id.clone().unwrap_or_else(|| DEFAULT_WORKSPACE.to_owned());
    let (answer, new) = app.host.accept(&sender, event).await?;
    if live {
        let access = StreamAccess::new(&app, &caller);
        return stream::accepted(&app, access, &workspace, answer, language).await;
    }
    let status = if new { StatusCode::ACCEPTED } else { StatusCode::OK };
    Ok((status, Json(answer)).into_response())
}

/// The trace that a run continues; a header that is not one is ignored.
pub(crate) fn traceparent(headers: &HeaderMap) -> Option<String> {
    let given = headers.get("traceparent")?.to_str().ok()?.trim();
    TraceParent::parse(given).map(|_| given.to_owned())
}

pub(crate) fn check_type(headers: &HeaderMap) -> Result<(), Problem> {
    let Some(given) = headers.get(CONTENT_TYPE) else { return Ok(()) };
    let given = given.to_str().unwrap_or_default().split(';').next().unwrap_or_default();
    if given.trim().eq_ignore_ascii_case("application/json") {
        return Ok(());
    }
    let message = "the body is JSON: `Content-Type: application/json`";
    Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, ErrorCode::InvalidArgument, message))
}

/// Reads the body of an event within its size limit and timeout.
pub(crate) async fn read_body(app: &App, body: Body) -> Result<Bytes, Problem> {
    read_body_within(app, body, app.options.limits.event_bytes).await
}

pub(crate) async fn read_body_within(
    app: &App,
    body: Body,
    bytes_max: usize,
) -> Result<Bytes, Problem> {
    let is_announced = body.size_hint().lower() > bytes_max as u64;
    let read = async {
        let mut parts = body.into_data_stream();
        let (mut collected, mut dropped) = (Vec::new(), 0);
        while let Some(part) = parts.next().await {
            let part = part.map_err(|_| Problem::invalid("the body is incomplete"))?;
            if dropped > 0 || collected.len() + part.len() > bytes_max {
                dropped += part.len();
            } else {
                collected.extend_from_slice(&part);
            }
            if dropped > DROPPED_BYTES_MAX {
                break;
            }
        }
        match dropped {
            0 => Ok(Bytes::from(collected)),
            _ => Err(Problem::too_large(bytes_max)),
        }
    };
    tokio::time::timeout(app.options.limits.request_timeout, read).await.unwrap_or_else(|_| {
        if is_announced {
            return Err(Problem::too_large(bytes_max));
        }
        let message = "the body did not arrive in time";
        Err(Problem::new(StatusCode::REQUEST_TIMEOUT, ErrorCode::DeadlineExceeded, message))
    })
}
