//! Streamed responses of the model gateway.
//!
//! Invariant: an error before the first item is an HTTP error; one after it is the last event of the stream. A
//! client that goes away cancels its call; the finish is sent once the call is over and its usage recorded.

use super::failure::Failure;
use crate::idle_timer::IdleTimer;
use crate::router::App;
use crate::stream::KEEP_ALIVE;
use axum::body::Body;
use axum::http::HeaderValue;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures_util::stream::{self, Stream, StreamExt};
use greenroom_host::{Answering, Items, RunProgram};
use greenroom_models::serve::gateway::{ClientRequest, ClientStream, Wire};
use greenroom_protocol::api::Method;
use greenroom_protocol::api::artifacts::{ArtifactRange, ReadRangeParams};
use greenroom_protocol::api::models::{ModelInvokeParams, ModelStreamItem};
use greenroom_protocol::{AgentAPIError, Object};
use std::convert::Infallible;
use tokio_util::sync::CancellationToken;
use tokio_util::task::task_tracker::TaskTrackerToken;

/// Bytes of one piece of an artifact.
const PIECE_BYTES: u32 = 1024 * 1024;
/// Bytes of media that a response contains at most.
const MEDIA_BYTES_MAX: u64 = 32 * 1024 * 1024;

/// A streamed response; waits for its first item.
pub(super) async fn streamed(
    app: &App,
    program: RunProgram,
    request: ClientRequest,
    params: ModelInvokeParams,
) -> Result<Response, Failure> {
    let wire = request.wire();
    let (items, answering) = program.stream(Method::ModelsStream, params);
    let mut call = Call { program, items, answering: Some(answering), answer: None, finish: None };
    let first = match call.next().await {
        Next::Item(item) => with_bytes(&call.program, item).await,
        Next::End(Err(error)) => return Err(Failure::of_call(wire, &error)),
        // A stream has a finish at least.
        Next::End(Ok(())) => return Err(Failure::internal(wire)),
    };
    let mut encoder = request.into_stream();
    let mut begun = encoder.begin();
    begun.push_str(&encoder.item(first));
    let (content_type, takes_comments) = (encoder.content_type(), encoder.takes_comments());
    let writing = Writing {
        wire,
        call,
        encoder,
        idle: takes_comments.then(|| IdleTimer::new(KEEP_ALIVE)),
        close: app.streams.close.clone(),
        _open: app.streams.open.token(),
    };
    let head = stream::once(async move { Bytes::from(begun) });
    let body = Body::from_stream(head.chain(pieces(writing)).map(Ok::<_, Infallible>));
    let mut response = body.into_response();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    Ok(response)
}

struct Writing {
    wire: Wire,
    call: Call,
    encoder: ClientStream,
    idle: Option<IdleTimer>,
    close: CancellationToken,
    _open: TaskTrackerToken,
}

fn pieces(writing: Writing) -> impl Stream<Item = Bytes> + Send {
    stream::unfold(Some(writing), |writing| async move {
        let mut writing = writing?;
        loop {
            let next = tokio::select! {
                biased;
                next = writing.call.next() => next,
                () = writing.close.cancelled() => return None,
                () = idle(writing.idle.as_mut()) => {
                    writing.idle.iter_mut().for_each(IdleTimer::reset);
                    return Some((Bytes::from_static(b": keep-alive\n\n"), Some(writing)));
                }
            };
            writing.idle.iter_mut().for_each(IdleTimer::reset);
            match next {
                Next::Item(item @ ModelStreamItem::Finish { .. }) => {
                    writing.call.finish = Some(item);
                }
                Next::Item(item) => {
                    let item = with_bytes(&writing.call.program, item).await;
                    let text = writing.encoder.item(item);
                    if !text.is_empty() {
                        return Some((Bytes::from(text), Some(writing)));
                    }
                }
                Next::End(Ok(())) => {
                    let finish = writing.call.finish.take()?;
                    return Some((Bytes::from(writing.encoder.item(finish)), None));
                }
                Next::End(Err(error)) => {
                    let failure = Failure::of_call(writing.wire, &error);
                    let text = writing.encoder.error(failure.status(), failure.message());
                    return Some((Bytes::from(text), None));
                }
            }
        }
    })
}

async fn idle(timer: Option<&mut IdleTimer>) {
    match timer {
        Some(timer) => timer.elapsed().await,
        None => std::future::pending().await,
    }
}

/// A `models.stream` in progress.
struct Call {
    program: RunProgram,
    items: Items,
    /// `None` after its end; then its answer is known.
    answering: Option<Answering>,
    answer: Option<Result<(), AgentAPIError>>,
    /// The last item, until the call is over.
    finish: Option<ModelStreamItem>,
}

enum Next {
    Item(ModelStreamItem),
    End(Result<(), AgentAPIError>),
}

impl Call {
    /// The next item, or the end after all of them.
    async fn next(&mut self) -> Next {
        loop {
            let Some(answering) = &mut self.answering else {
                // Nothing can be sent any more, but items may wait.
                match self.items.recv().await {
                    Some(raw) => match serde_json::from_str(raw.get()) {
                        Ok(item) => return Next::Item(item),
                        Err(_) => continue,
                    },
                    None => return Next::End(self.answer.take().unwrap_or(Ok(()))),
                }
            };
            let answer = tokio::select! {
                biased;
                item = self.items.recv() => match item {
                    Some(raw) => match serde_json::from_str(raw.get()) {
                        Ok(item) => return Next::Item(item),
                        Err(_) => continue,
                    },
                    None => answering.await,
                },
                answer = &mut *answering => answer,
            };
            self.answer = Some(answer.map(drop));
            self.answering = None;
        }
    }
}

async fn with_bytes(program: &RunProgram, mut item: ModelStreamItem) -> ModelStreamItem {
    if let ModelStreamItem::Media { segment } = &mut item {
        inline(program, segment).await;
    }
    item
}

/// Large media of a response are artifacts of the run; clients of other wires expect the bytes.
pub(super) async fn inline(program: &RunProgram, segment: &mut Object) {
    let Some(artifact_id) = segment.get("artifact_id").and_then(|id| id.as_str()) else { return };
    match read_artifact(program, artifact_id).await {
        Ok(bytes) => {
            segment.remove("artifact_id");
            segment.insert("data".to_owned(), STANDARD.encode(bytes).into());
        }
        Err(error) => {
            tracing::debug!(%error, "media of a response cannot be read by its run");
        }
    }
}

async fn read_artifact(program: &RunProgram, id: &str) -> Result<Vec<u8>, AgentAPIError> {
    let mut bytes = Vec::new();
    loop {
        let offset = bytes.len() as u64;
        let params = ReadRangeParams { artifact_id: id.to_owned(), offset, length: PIECE_BYTES };
        let answer = program.call(Method::ArtifactsReadRange, &params).await?;
        let Ok(range) = serde_json::from_str::<ArtifactRange>(answer.get()) else {
            return Ok(bytes);
        };
        let piece = STANDARD.decode(&range.data_base64).unwrap_or_default();
        bytes.extend_from_slice(&piece);
        if range.eof || piece.is_empty() || bytes.len() as u64 >= MEDIA_BYTES_MAX {
            return Ok(bytes);
        }
    }
}
