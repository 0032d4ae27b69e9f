//! Server-sent events: a run's results as they come, resumable by number.

use crate::answer::{Answer, Problem};
use crate::router::App;
use crate::silence::Silence;
use crate::standing::Standing;
use axum::body::Body;
use axum::http::HeaderValue;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream::{self, Stream, StreamExt};
use greenroom_host::Subscription;
use greenroom_protocol::EventAnswer;
use std::convert::Infallible;
use std::time::Duration;

/// A sign of life on a quiet stream, so that proxies keep it open.
pub(crate) const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// The answer to an accepted event, followed by its run's results.
pub(crate) async fn accepted(
    app: &App,
    standing: Standing,
    workspace: &str,
    answer: EventAnswer,
) -> Answer {
    let body = serde_json::to_string(&answer).unwrap_or_default();
    let first = Bytes::from(format!("event: accepted\ndata: {body}\n\n"));
    let results = match &answer.run_id {
        Some(run_id) => app.host.subscribe(workspace, run_id, 0).await?,
        None => None,
    };
    let head = stream::once(async move { first });
    Ok(match results {
        Some(results) => respond(head.chain(frames(app, standing, results))),
        None => respond(head),
    })
}

/// The results of a run from behind a number.
pub(crate) async fn follow(
    app: &App,
    standing: Standing,
    workspace: &str,
    run_id: &str,
    after: i64,
) -> Answer {
    let results = app.host.subscribe(workspace, run_id, after).await?;
    let results = results.ok_or_else(|| Problem::not_found("run"))?;
    // A comment first, so that headers and a sign of life go out at once.
    let head = stream::once(async { Bytes::from_static(b": following\n\n") });
    Ok(respond(head.chain(frames(app, standing, results))))
}

fn frames(
    app: &App,
    standing: Standing,
    results: Subscription,
) -> impl Stream<Item = Bytes> + Send + use<> {
    let (close, open) = (app.streams.close.clone(), app.streams.open.token());
    let silence = Silence::new(KEEP_ALIVE);
    stream::unfold((results, standing, silence, close, open), |state| async move {
        let (mut results, mut standing, mut silence, close, open) = state;
        let bytes = tokio::select! {
            // What has come is seen before the end, but not by whoever may not.
            biased;
            () = standing.lost() => return None,
            next = results.next() => match next {
                Ok(Some(frames)) => frames.sse,
                Ok(None) => return None,
                Err(error) => {
                    tracing::warn!(%error, "a reader was cut off");
                    return None;
                }
            },
            () = close.cancelled() => return None,
            () = silence.lasts() => Bytes::from_static(b": keep-alive\n\n"),
        };
        silence.broken();
        Some((bytes, (results, standing, silence, close, open)))
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
