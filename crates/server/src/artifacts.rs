//! `POST /v1/artifacts` and `GET /v1/artifacts/{id}`: upload and download.
//!
//! Invariant: a body is streamed to disk within its size limit and deadline, and only after authentication; a download is
//! never rendered by a browser as a page of this host.

mod range;

use crate::access::Caller;
use crate::facts::{can_read, empty_page, stored_filter};
use crate::id::Id;
use crate::query::Params;
use crate::response::{ApiResult, Problem, ok};
use crate::router::App;
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
use std::time::{Duration, Instant};

/// How much of a rejected body is read and dropped, so that its sender can read the error.
const DROPPED_BYTES_MAX: usize = 16 * 1024 * 1024;
/// The rate at which the body of an upload must arrive on average, after the first `limits.request_timeout_s`.
const UPLOAD_BYTES_PER_S_MIN: u64 = 16 * 1024;
/// Longest lifetime that can be requested: a hundred years.
pub(crate) const LIFETIME_S_MAX: i64 = 3_155_760_000;

pub(crate) async fn upload(
    State(app): State<App>,
    caller: Caller,
    params: Params,
    request: Request,
) -> ApiResult {
    caller.require_sender()?;
    let known = ["workspace_id", "name", "conversation_id", "expires_in_s"];
    let params = params.only(&known)?;
    let mut upload = upload_options(&params, request.headers())?;
    if let Some(own) = caller.limited() {
        let (workspace, id) = (params.workspace(), upload.conversation_id.as_deref());
        upload.conversation_id = upload_conversation(&app, &caller, workspace, id).await?;
        upload.limited_to = Some(own.begun_by.clone());
    }
    let timed_out = AtomicBool::new(false);
    let body = with_deadline(request.into_body(), app.options.limits.request_timeout, &timed_out);
    let mut body = Box::pin(body.fuse());
    let stored = app.host.upload(upload, &mut body).await;
    match stored {
        Ok(artifact) => {
            let mut response = caller.ok(artifact)?;
            *response.status_mut() = StatusCode::CREATED;
            Ok(response)
        }
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

/// The conversation of a limited caller's upload. One that does not exist yet is left open: the upload belongs to
/// the first event of this caller that names it.
async fn upload_conversation(
    app: &App,
    caller: &Caller,
    workspace: &str,
    id: Option<&str>,
) -> Result<Option<String>, Problem> {
    let stored = stored_filter(app, caller, workspace, id).await?;
    match stored {
        Some(id) if can_read(app, caller, workspace, Some(&id)).await? => Ok(Some(id)),
        _ => Ok(None),
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
    bytes_of(&app, &row, &headers).await
}

/// The bytes behind an address that a surface was given; the address is the permission.
pub(crate) async fn linked(
    State(app): State<App>,
    params: Params,
    Id(token): Id,
    headers: HeaderMap,
) -> ApiResult {
    params.only(&[])?;
    let row = app.host.linked_artifact(&token).await?;
    let row = row.ok_or_else(|| Problem::not_found("file"))?;
    bytes_of(&app, &row, &headers).await
}

async fn bytes_of(app: &App, row: &ArtifactRow, headers: &HeaderMap) -> ApiResult {
    let (tag, size) = (format!("\"{}\"", row.sha256), u64::try_from(row.size).unwrap_or(0));
    let artifact_headers = artifact_headers(row, &tag)?;
    let mut response = match range::select(headers, &tag, size) {
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
            let bytes = app.host.artifact_bytes(row, 0..size).await?;
            body_of(StatusCode::OK, Body::from_stream(bytes), size)
        }
        Selection::Part(part) => {
            let range = format!("bytes {}-{}/{size}", part.start, part.end - 1);
            let bytes = app.host.artifact_bytes(row, part.clone()).await?;
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
    let stored = stored_filter(&app, &caller, workspace, conversation).await?;
    let conversation = stored.as_deref();
    let filter = ArtifactFilter {
        conversation_id: stored.clone(),
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
    caller.ok(page)
}

pub(crate) async fn metadata(
    State(app): State<App>,
    caller: Caller,
    params: Params,
    Id(artifact_id): Id,
) -> ApiResult {
    let params = params.only(&["workspace_id"])?;
    caller.ok(view(&load(&app, &caller, params.workspace(), &artifact_id).await?))
}

async fn load(
    app: &App,
    caller: &Caller,
    workspace: &str,
    artifact_id: &str,
) -> Result<ArtifactRow, Problem> {
    let row = app.host.artifact(workspace, artifact_id).await?;
    let row = row.ok_or_else(|| Problem::not_found("artifact"))?;
    let is_own = match caller.limited() {
        Some(own) => app.host.reaches_artifact(own, &row).await?,
        None => true,
    };
    // An upload of a limited caller has no agent until an event names it.
    let is_fresh_upload = caller.limited().is_some() && row.agent.is_none() && row.run_id.is_none();
    match is_own && (is_fresh_upload || caller.can_see_artifact(row.agent.as_deref())) {
        true => Ok(row),
        false => Err(Problem::not_found("artifact")),
    }
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
        limited_to: None,
    })
}

/// The body stream; it fails when nothing arrives for `timeout`, or when the whole of it arrives too slowly.
fn with_deadline(
    body: Body,
    timeout: Duration,
    timed_out: &AtomicBool,
) -> impl Stream<Item = Result<Bytes, std::io::Error>> + '_ {
    let start = (Some(body.into_data_stream()), Instant::now(), 0_u64);
    futures_util::stream::unfold(start, move |(parts, began, received)| async move {
        let mut parts = parts?;
        let deadline = began + timeout + Duration::from_secs(received / UPLOAD_BYTES_PER_S_MIN);
        let wait = deadline.saturating_duration_since(Instant::now()).min(timeout);
        match tokio::time::timeout(wait, parts.next()).await {
            Ok(None) => None,
            Ok(Some(Ok(part))) => {
                let received = received + part.len() as u64;
                Some((Ok(part), (Some(parts), began, received)))
            }
            Ok(Some(Err(error))) => {
                Some((Err(std::io::Error::other(error)), (None, began, received)))
            }
            Err(_) => {
                timed_out.store(true, Ordering::Relaxed);
                Some((Err(std::io::ErrorKind::TimedOut.into()), (None, began, received)))
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
