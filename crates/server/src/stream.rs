//! Server-sent events: the results of a run, resumable by sequence number.

use crate::idle_timer::IdleTimer;
use crate::response::{ApiResult, Problem};
use crate::router::App;
use crate::stream_access::StreamAccess;
use axum::body::Body;
use axum::http::HeaderValue;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream::{self, Stream, StreamExt};
use greenroom_host::Subscription;
use greenroom_protocol::EventAnswer;
use greenroom_tools::ui::Language;
use std::convert::Infallible;
use std::time::Duration;

/// Interval of keep-alive comments, so that proxies keep an idle stream open.
pub(crate) const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// The response to an accepted event, followed by the results of its run.
pub(crate) async fn accepted(
    app: &App,
    access: StreamAccess,
    workspace: &str,
    accepted: EventAnswer,
    language: Language,
) -> ApiResult {
    let body = serde_json::to_string(&accepted).unwrap_or_default();
    let first = Bytes::from(format!("event: accepted\ndata: {body}\n\n"));
    let results = match &accepted.run_id {
        Some(run_id) => app.host.subscribe(workspace, run_id, 0).await?,
        None => None,
    };
    let head = stream::once(async move { first });
    Ok(match results {
        Some(results) => respond(head.chain(frames(app, access, results.with_cards(language)))),
        None => respond(head),
    })
}

/// The results of a run after a sequence number.
pub(crate) async fn follow(
    app: &App,
    access: StreamAccess,
    workspace: &str,
    run_id: &str,
    after: i64,
    language: Language,
) -> ApiResult {
    let results = app.host.subscribe(workspace, run_id, after).await?;
    let results = results.ok_or_else(|| Problem::not_found("run"))?;
    // A comment first, so that the headers are sent at once.
    let head = stream::once(async { Bytes::from_static(b": following\n\n") });
    Ok(respond(head.chain(frames(app, access, results.with_cards(language)))))
}

fn frames(
    app: &App,
    access: StreamAccess,
    results: Subscription,
) -> impl Stream<Item = Bytes> + Send + use<> {
    let (close, open) = (app.streams.close.clone(), app.streams.open.token());
    let idle = IdleTimer::new(KEEP_ALIVE);
    stream::unfold((results, access, idle, close, open), |state| async move {
        let (mut results, mut access, mut idle, close, open) = state;
        let bytes = tokio::select! {
            // Results are sent before the end of the stream, but none after access is revoked.
            biased;
            () = access.revoked() => return None,
            next = results.next() => match next {
                Ok(Some(frames)) => frames.sse,
                Ok(None) => return None,
                Err(error) => {
                    tracing::warn!(%error, "stream closed by a store error");
                    return None;
                }
            },
            () = close.cancelled() => return None,
            () = idle.elapsed() => Bytes::from_static(b": keep-alive\n\n"),
        };
        idle.reset();
        Some((bytes, (results, access, idle, close, open)))
    })
}

pub(crate) fn respond(body: impl Stream<Item = Bytes> + Send + 'static) -> Response {
    let mut response = Body::from_stream(body.map(Ok::<_, Infallible>)).into_response();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}
