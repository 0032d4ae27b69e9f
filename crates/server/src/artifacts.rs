//! `POST /v1/artifacts` and `GET /v1/artifacts/{id}`: upload and download.
//!
//! Invariant: a body is streamed to disk within its size limit, and only after authentication; a download is
//! never rendered by a browser as a page of this host.

mod range;

use crate::access::Caller;
use crate::facts::{can_read, empty_page};
use crate::id::Id;
use crate::query::Params;
use crate::response::{ApiResult, Problem, ok};
use crate::router::App;
use axum::Json;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{self, HeaderMap, HeaderValue};
use axum::http::{HeaderName, StatusCode};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use greenroom_host::artifacts::{ArtifactError, Upload, view};
use greenroom_host::mime;
use greenroom_protocol::ErrorCode;
use greenroom_protocol::api::artifacts::check_artifact_name;
use greenroom_store::reads::artifacts::ArtifactFilter;
use greenroom_store::types::ArtifactRow;
use range::Selection;
pub(crate) use range::etag_matches;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How much of a rejected body is read and dropped, so that its sender can read the error.
const DROPPED_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Longest lifetime that can be requested: a hundred years.
const LIFETIME_S_MAX: i64 = 3_155_760_000;

pub(crate) async fn upload(
    State(app): State<App>,
    caller: Caller,
    params: Params,
    request: Request,
) -> ApiResult {
    caller.require_sender()?;
    let known = ["workspace_id", "name", "conversation_id", "expires_in_s"];
    let params = params.only(&known)?;
    let upload = upload_options(&params, request.headers())?;
    let timed_out = AtomicBool::new(false);
    let body =
        with_idle_timeout(request.into_body(), app.options.limits.request_timeout, &timed_out);
    let mut body = Box::pin(body.fuse());
    let stored = app.host.upload(upload, &mut body).await;
    match stored {
        Ok(artifact) => Ok((StatusCode::CREATED, Json(artifact)).into_response()),
        Err(_) if timed_out.load(Ordering::Relaxed) => {
            let message = "the body did not arrive in time";
            let status = StatusCode::REQUEST_TIMEOUT;
            Err(Problem::new(status, ErrorCode::DeadlineExceeded, message))
        }
        Err(error) => {
            drain(&mut body).await;
            Err(error.into())
        }
    }
}

pub(crate) async fn download(
    State(app): State<App>,
    caller: Caller,
    params: Params,
    Id(artifact_id): Id,
    headers: HeaderMap,
) -> ApiResult {
    let params = params.only(&["workspace_id"])?;
    let row = load(&app, &caller, params.workspace(), &artifact_id).await?;
    let (tag, size) = (format!("\"{}\"", row.sha256), u64::try_from(row.size).unwrap_or(0));
    let artifact_headers = artifact_headers(&row, &tag)?;
    let mut response = match range::select(&headers, &tag, size) {
        Selection::NotModified => StatusCode::NOT_MODIFIED.into_response(),
        Selection::Unsatisfiable => {
            let message =
                format!("the artifact has {size} bytes, the range starts after the last one");
            let status = StatusCode::RANGE_NOT_SATISFIABLE;
            let problem = Problem::new(status, ErrorCode::InvalidArgument, message);
            let mut response = problem.into_response();
            let range = value(&format!("bytes */{size}"))?;
            response.headers_mut().insert(header::CONTENT_RANGE, range);
            return Ok(response);
        }
        Selection::All => {
            let bytes = app.host.artifact_bytes(&row, 0..size).await?;
            body_of(StatusCode::OK, Body::from_stream(bytes), size)
        }
        Selection::Part(part) => {
            let range = format!("bytes {}-{}/{size}", part.start, part.end - 1);
            let bytes = app.host.artifact_bytes(&row, part.clone()).await?;
            let length = part.end - part.start;
            let mut response =
                body_of(StatusCode::PARTIAL_CONTENT, Body::from_stream(bytes), length);
            response.headers_mut().insert(header::CONTENT_RANGE, value(&range)?);
            response
        }
    };
    response.headers_mut().extend(artifact_headers);
    Ok(response)
}

pub(crate) async fn list(State(app): State<App>, caller: Caller, params: Params) -> ApiResult {
    let known = ["workspace_id", "conversation_id", "run_id", "mime", "cursor", "limit"];
    let params = params.only(&known)?;
    let (workspace, conversation) = (params.workspace(), params.text("conversation_id"));
    caller.require_reader_of(conversation)?;
    let filter = ArtifactFilter {
        conversation_id: params.text("conversation_id").map(str::to_owned),
        run_id: params.text("run_id").map(str::to_owned),
        mime: params.text("mime").map(mime),
    };
    let limit = params.limit()?;
    if !can_read(&app, &caller, workspace, conversation).await? {
        return ok(empty_page());
    }
    let page = app.host.artifact_list(workspace, filter, params.cursor(), limit).await?;
    let mut page = page.ok_or_else(Problem::foreign_cursor)?;
    page.items.retain(|artifact| caller.can_see_artifact(artifact.agent.as_deref()));
    ok(page)
}

pub(crate) async fn metadata(
    State(app): State<App>,
    caller: Caller,
    params: Params,
    Id(artifact_id): Id,
) -> ApiResult {
    let params = params.only(&["workspace_id"])?;
    ok(view(&load(&app, &caller, params.workspace(), &artifact_id).await?))
}

async fn load(
    app: &App,
    caller: &Caller,
    workspace: &str,
    artifact_id: &str,
) -> Result<ArtifactRow, Problem> {
    let row = app.host.artifact(workspace, artifact_id).await?;
    let row = row.filter(|row| caller.can_see_artifact(row.agent.as_deref()));
    row.ok_or_else(|| Problem::not_found("artifact"))
}

/// Upload options from query and headers.
fn upload_options(params: &Params, headers: &HeaderMap) -> Result<Upload, Problem> {
    if let Some(name) = params.text("name") {
        check_artifact_name(name).map_err(Problem::invalid)?;
    }
    if params.text("conversation_id").is_some_and(str::is_empty) {
        return Err(Problem::invalid("`conversation_id` is empty"));
    }
    let expires_in_s = params.number("expires_in_s")?;
    if expires_in_s.is_some_and(|seconds| !(1..=LIFETIME_S_MAX).contains(&seconds)) {
        let message = format!("`expires_in_s` is a number from 1 to {LIFETIME_S_MAX}");
        return Err(Problem::invalid(message));
    }
    let mime_type = headers.get(header::CONTENT_TYPE).map(|value| {
        value
            .to_str()
            .map(str::to_owned)
            .map_err(|_| Problem::invalid("`Content-Type` is not ASCII"))
    });
    Ok(Upload {
        workspace_id: params.workspace().to_owned(),
        name: params.text("name").map(str::to_owned),
        mime_type: mime_type.transpose()?,
        conversation_id: params.text("conversation_id").map(str::to_owned),
        expires_in_s,
    })
}

/// The body stream; it fails when the sender sends empty_page for `timeout`.
fn with_idle_timeout(
    body: Body,
    timeout: Duration,
    timed_out: &AtomicBool,
) -> impl Stream<Item = Result<Bytes, std::io::Error>> + '_ {
    futures_util::stream::unfold(Some(body.into_data_stream()), move |parts| async move {
        let mut parts = parts?;
        match tokio::time::timeout(timeout, parts.next()).await {
            Ok(None) => None,
            Ok(Some(Ok(part))) => Some((Ok(part), Some(parts))),
            Ok(Some(Err(error))) => Some((Err(std::io::Error::other(error)), None)),
            Err(_) => {
                timed_out.store(true, Ordering::Relaxed);
                Some((Err(std::io::ErrorKind::TimedOut.into()), None))
            }
        }
    })
}

async fn drain<E>(body: &mut (impl Stream<Item = Result<Bytes, E>> + Unpin)) {
    let mut dropped = 0;
    while let Some(Ok(part)) = body.next().await {
        dropped += part.len();
        if dropped > DROPPED_BYTES_MAX {
            return;
        }
    }
}

fn body_of(status: StatusCode, body: Body, length: u64) -> Response {
    let mut response = (status, body).into_response();
    response.headers_mut().insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    response
}

/// Headers of every response about an artifact.
fn artifact_headers(row: &ArtifactRow, tag: &str) -> Result<HeaderMap, Problem> {
    let headers: [(HeaderName, String); 6] = [
        (header::CONTENT_TYPE, row.mime_type.clone()),
        (header::CONTENT_DISPOSITION, disposition(row.name.as_deref())),
        (header::ETAG, tag.to_owned()),
        (header::ACCEPT_RANGES, "bytes".to_owned()),
        (header::CACHE_CONTROL, "private, no-cache".to_owned()),
        (header::CONTENT_SECURITY_POLICY, "default-src 'none'; sandbox".to_owned()),
    ];
    headers.into_iter().map(|(name, text)| Ok((name, value(&text)?))).collect()
}

fn value(text: &str) -> Result<HeaderValue, Problem> {
    HeaderValue::from_str(text).map_err(|_| Problem::internal())
}

/// `attachment` with the file name as in RFC 6266: an ASCII fallback, and the full name.
fn disposition(name: Option<&str>) -> String {
    let Some(name) = name else { return "attachment".to_owned() };
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_. ()".contains(c);
    let plain: String = name.chars().map(|c| if is_plain(c) { c } else { '_' }).collect();
    if plain == name {
        return format!("attachment; filename=\"{plain}\"");
    }
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.!#$&+^`|~".contains(&byte);
    let full: String = name
        .bytes()
        .map(|byte| match is_token(byte) {
            true => char::from(byte).to_string(),
            false => format!("%{byte:02X}"),
        })
        .collect();
    format!("attachment; filename=\"{plain}\"; filename*=UTF-8''{full}")
}

impl From<ArtifactError> for Problem {
    fn from(error: ArtifactError) -> Self {
        match error {
            ArtifactError::Invalid(reason) => Problem::invalid(reason),
            ArtifactError::TooLarge { bytes_max } => {
                Problem::too_large(usize::try_from(bytes_max).unwrap_or(usize::MAX))
            }
            ArtifactError::Store(error) => error.into(),
            ArtifactError::Objects(cause) if cause.is_passing() => {
                tracing::error!(
                    error = &cause as &dyn std::error::Error,
                    "artifact storage is unavailable"
                );
                Problem::unavailable("artifact storage is unavailable")
            }
            error => {
                tracing::error!(
                    error = &error as &dyn std::error::Error,
                    "artifact request failed"
                );
                Problem::internal()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::disposition;

    #[test]
    fn file_names_have_an_ascii_fallback() {
        assert_eq!(disposition(None), "attachment");
        assert_eq!(disposition(Some("a b.txt")), "attachment; filename=\"a b.txt\"");
        assert_eq!(
            disposition(Some("报告.txt")),
            "attachment; filename=\"__.txt\"; filename*=UTF-8''%E6%8A%A5%E5%91%8A.txt"
        );
        assert_eq!(
            disposition(Some("a\";x=\"b")),
            "attachment; filename=\"a__x__b\"; filename*=UTF-8''a%22%3Bx%3D%22b"
        );
    }
}
