//! Stored files: `artifacts.*` (CONTRACT §4).
//!
//! Invariant: content is returned as bytes; what the host sent is checked first.

use crate::RunCtx;
use crate::bytes::{self, decode};
use crate::ctx::read;
use crate::items::{Event, Items};
use futures_util::{Stream, StreamExt};
use greenroom_protocol::api::artifacts::{
    ArtifactCreateParams, ArtifactIdParams, ArtifactRange, ArtifactStreamEnd, ArtifactStreamItem,
    ArtifactView, OpenStreamParams, ReadRangeParams,
};
use greenroom_protocol::api::{Method, Params};
use greenroom_protocol::{AgentAPIError, ErrorCode, Object};
use serde_json::value::RawValue;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Bytes of an artifact that is created with one call.
const ONE_CALL_BYTES_MAX: usize = 2 << 20;

/// The methods `artifacts.*`, for one run.
pub struct ArtifactsApi<'a>(pub(crate) &'a RunCtx);

/// A part of an artifact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArtifactBytes {
    pub bytes: Vec<u8>,
    /// Where the part starts.
    pub offset: u64,
    /// Bytes of the whole artifact.
    pub size_bytes: u64,
    /// The part reaches the end.
    pub eof: bool,
}

/// Properties of a new artifact.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ArtifactOptions {
    /// A file name, not a path.
    pub name: Option<String>,
    /// Default: detected; rejected if it does not match the content.
    pub mime_type: Option<String>,
    pub metadata: Object,
    /// Default: it does not expire.
    pub expires_in_s: Option<i64>,
}

impl<'a> ArtifactsApi<'a> {
    /// The metadata of an artifact.
    pub async fn metadata(
        &self,
        artifact_id: impl Into<String>,
    ) -> Result<ArtifactView, AgentAPIError> {
        self.0.ask(&ArtifactIdParams { artifact_id: artifact_id.into() }).await
    }

    /// Up to `length` bytes from `offset`; the host may return fewer.
    pub async fn read_range(
        &self,
        artifact_id: impl Into<String>,
        offset: u64,
        length: u32,
    ) -> Result<ArtifactBytes, AgentAPIError> {
        let params = ReadRangeParams { artifact_id: artifact_id.into(), offset, length };
        let range: ArtifactRange = self.0.ask(&params).await?;
        Ok(ArtifactBytes {
            bytes: decode(Method::ArtifactsReadRange, &range.data_base64)?,
            offset: range.offset,
            size_bytes: range.size_bytes,
            eof: range.eof,
        })
    }

    /// The whole artifact as a stream of pieces.
    ///
    /// ```
    /// # use greenroom_sdk::{RunCtx, RunFailure};
    /// # async fn example(ctx: &RunCtx) -> Result<(), RunFailure> {
    /// let mut pieces = ctx.artifacts().open_stream("a1").await?;
    /// let mut bytes = Vec::new();
    /// while let Some(piece) = pieces.next().await {
    ///     bytes.extend(piece?);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn open_stream(
        &self,
        artifact_id: impl Into<String>,
    ) -> Result<ArtifactStream, AgentAPIError> {
        self.open_stream_at(artifact_id, 0).await
    }

    /// The same, starting at an offset.
    pub async fn open_stream_at(
        &self,
        artifact_id: impl Into<String>,
        offset: u64,
    ) -> Result<ArtifactStream, AgentAPIError> {
        let params = OpenStreamParams { artifact_id: artifact_id.into(), offset };
        self.0.check(&params)?;
        self.0.room().await?;
        let items = Some(Items::open(self.0, &params)?);
        Ok(ArtifactStream { ctx: self.0.clone(), params, items })
    }

    /// The content of a static part of the run's context, such as `tools` or `instructions`. None if the run has no such
    /// part, or may not read artifacts. `ctx.runtime.static_refs[kind].hash` is the same for the same content, so a
    /// runner can keep what it made of it.
    pub async fn static_part(&self, kind: &str) -> Result<Option<Vec<u8>>, AgentAPIError> {
        let reference = self.0.runtime.static_refs.get(kind);
        let Some(id) = reference.and_then(|reference| reference.artifact_id.clone()) else {
            return Ok(None);
        };
        let mut pieces = self.open_stream(id).await?;
        let mut bytes = Vec::new();
        while let Some(piece) = pieces.next().await {
            bytes.extend(piece?);
        }
        Ok(Some(bytes))
    }

    /// Stores bytes as an artifact of this run's conversation; many bytes are uploaded in parts.
    pub async fn create(
        &self,
        content: &[u8],
        options: ArtifactOptions,
    ) -> Result<ArtifactView, AgentAPIError> {
        if content.len() > ONE_CALL_BYTES_MAX {
            let mut upload = self.upload(options).await?;
            upload.append(content).await?;
            return upload.commit().await;
        }
        let params = ArtifactCreateParams {
            name: options.name,
            mime_type: options.mime_type,
            content_base64: bytes::encode(Method::ArtifactsCreate, content)?,
            metadata: options.metadata,
            expires_in_s: options.expires_in_s,
        };
        self.0.ask(&params).await
    }
}

/// The bytes of an artifact in order. If pieces arrive faster than they are read, the stream is reopened where it
/// stopped, so a slow reader costs time but no memory.
pub struct ArtifactStream {
    ctx: RunCtx,
    /// The next request: `offset` is where the next piece starts.
    params: OpenStreamParams,
    /// `None` after the end.
    items: Option<Items>,
}

impl ArtifactStream {
    /// The next piece; `None` after the end.
    pub async fn next(&mut self) -> Option<Result<Vec<u8>, AgentAPIError>> {
        StreamExt::next(self).await
    }

    /// Where the next piece starts.
    pub fn offset(&self) -> u64 {
        self.params.offset
    }

    fn piece(&mut self, item: &RawValue) -> Result<Vec<u8>, AgentAPIError> {
        let item: ArtifactStreamItem = read(OpenStreamParams::METHOD.as_str(), item)?;
        let piece = decode(Method::ArtifactsOpenStream, &item.data_base64)?;
        if item.offset != self.params.offset {
            return Err(invalid_stream("a piece is missing"));
        }
        self.params.offset += piece.len() as u64;
        Ok(piece)
    }

    fn end(&self, answer: &RawValue) -> Result<(), AgentAPIError> {
        let end: ArtifactStreamEnd = read(OpenStreamParams::METHOD.as_str(), answer)?;
        match self.params.offset < end.size_bytes {
            true => Err(invalid_stream("it ended early")),
            false => Ok(()),
        }
    }

    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Vec<u8>, AgentAPIError>>> {
        loop {
            let Some(items) = &mut self.items else { return Poll::Ready(None) };
            let event = std::task::ready!(items.poll_next(cx));
            let piece = match event {
                Event::Item(item) => return Poll::Ready(Some(self.piece(&item))),
                Event::Overflowed => Items::open(&self.ctx, &self.params).map(Some),
                Event::Answer(answer) => self.end(&answer).map(|()| None),
                Event::Failed(error) => Err(error),
            };
            match piece {
                Ok(items) => self.items = items,
                Err(error) => return Poll::Ready(Some(Err(error))),
            }
        }
    }
}

impl Stream for ArtifactStream {
    type Item = Result<Vec<u8>, AgentAPIError>;

    /// Nothing follows an error.
    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let polled = self.poll_piece(cx);
        if let Poll::Ready(Some(Err(_))) = polled {
            self.items = None;
        }
        polled
    }
}

fn invalid_stream(what: &str) -> AgentAPIError {
    let text = format!("unexpected response to `{}`: {what}", Method::ArtifactsOpenStream);
    AgentAPIError::new(ErrorCode::RuntimeError, text)
}
