//! `artifacts.*`: bytes within the run's reach, read in parts and created.
//!
//! Invariant: an artifact that is out of reach, expired or missing is the same `not_found`; an artifact that
//! a run creates belongs to it and to its conversation.

use super::call::{Answer, Call, answer, failed, refuse, stale};
use super::events::reach_name;
use super::readable::Readable;
use crate::artifacts::{ArtifactError, Draft, Kept, expiry, owner_of, view, view_of_new};
use crate::host::Shared;
use crate::ids::now_ms;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures_util::StreamExt;
use greenroom_objects::Staged;
use greenroom_protocol::api::artifacts::{
    ArtifactCreateParams, ArtifactIdParams, ArtifactRange, ArtifactStreamEnd, ArtifactStreamItem,
    ArtifactView, OpenStreamParams, ReadRangeParams,
};
use greenroom_protocol::manifest::ArtifactPermission;
use greenroom_protocol::{AgentAPIError, ErrorCode};
use greenroom_store::StoreError;
use greenroom_store::commands::{ArtifactWritten, CreateArtifact, RunFence};
use greenroom_store::types::{ArtifactRow, AuditRecord};
use serde_json::value::to_raw_value;
use std::sync::Arc;

/// Bytes of one item of a stream.
const STREAM_PIECE_BYTES: usize = 64 * 1024;

pub(super) async fn metadata(call: &mut Call<'_>) -> Answer {
    let params: ArtifactIdParams = call.params()?;
    let found = asked_for(call, &params.artifact_id, ArtifactPermission::Metadata).await?;
    answer(&view(&found.row))
}

pub(super) async fn read_range(call: &mut Call<'_>) -> Answer {
    let params: ReadRangeParams = call.params()?;
    let found = asked_for(call, &params.artifact_id, ArtifactPermission::Read).await?;
    let size = found.size();
    let start = params.offset.min(size);
    let length = u64::from(params.length).min(call.settings.limits.read_range_bytes);
    let end = size.min(start.saturating_add(length));
    let bytes = found.read(call, start..end).await?;
    answer(&ArtifactRange {
        data_base64: STANDARD.encode(&bytes),
        offset: params.offset,
        length: end - start,
        size_bytes: size,
        eof: end == size,
    })
}

pub(super) async fn open_stream(call: &mut Call<'_>) -> Answer {
    let params: OpenStreamParams = call.params()?;
    let found = asked_for(call, &params.artifact_id, ArtifactPermission::Read).await?;
    let size = found.size();
    let mut offset = params.offset.min(size);
    let mut pieces = found.stream(call, offset..size).await?;
    loop {
        // Nothing is read from the object store before the runner has room for it.
        call.sink.room().await;
        let Some(piece) = pieces.next().await else { break };
        let piece = piece.map_err(|error| failure(ArtifactError::Objects(error)))?;
        for part in piece.chunks(STREAM_PIECE_BYTES) {
            let item = ArtifactStreamItem { offset, data_base64: STANDARD.encode(part) };
            let item = to_raw_value(&item)
                .map_err(|error| refuse(ErrorCode::RuntimeError, error.to_string()))?;
            let sent = call.sink.send(&item).await;
            sent.map_err(|error| refuse(ErrorCode::RuntimeError, error.to_string()))?;
            offset += part.len() as u64;
        }
    }
    answer(&ArtifactStreamEnd { size_bytes: size, sha256: found.row.sha256 })
}

pub(super) async fn create(call: &mut Call<'_>) -> Answer {
    about(call, None);
    let params: ArtifactCreateParams = call.params()?;
    let bytes = STANDARD.decode(&params.content_base64).map_err(|error| {
        refuse(ErrorCode::InvalidArgument, format!("`content_base64`: {error}"))
    })?;
    let bytes_max = call.settings.limits.artifact_bytes;
    if bytes.len() as u64 > bytes_max {
        return Err(failure(ArtifactError::TooLarge { bytes_max }));
    }
    let now_ms = now_ms();
    let draft = Draft {
        name: params.name,
        mime_type: params.mime_type,
        metadata: params.metadata,
        expires_at: expiry(now_ms, params.expires_in_s),
        owner: owner_of(&call.rights.identity),
    };
    let bytes = call.shared.redactor.exact().bytes(&bytes).into_owned();
    store(call, Staged::from_bytes(Bytes::from(bytes)), draft).await
}

/// Stores bytes without secrets as the artifact that a call creates.
pub(super) async fn store(call: &mut Call<'_>, staged: Staged, draft: Draft) -> Answer {
    let kept = keep(call.shared, staged, draft).await.map_err(failure)?;
    about(call, Some(&kept.row.artifact_id));
    let (fence, audit) = (call.fence(), call.audit());
    let view = commit(call.shared, kept, fence, audit, now_ms()).await.map_err(failure)?;
    answer(&view)
}

/// An artifact that the run may read, with at most `bytes_max` bytes.
pub(super) async fn read_whole(
    call: &Call<'_>,
    artifact_id: &str,
    bytes_max: u64,
) -> Result<(ArtifactRow, Bytes), AgentAPIError> {
    let found = Readable::find(call, artifact_id, ArtifactPermission::Read).await?;
    let size = found.size();
    if size > bytes_max {
        return Err(failure(ArtifactError::TooLarge { bytes_max }));
    }
    let bytes = found.read(call, 0..size).await?;
    Ok((found.row, bytes))
}

/// Stores bytes that a call of the run produced; they belong to the run and its conversation.
pub(super) async fn keep_for_run(
    call: &Call<'_>,
    bytes: Vec<u8>,
    mime_type: Option<String>,
) -> Result<String, AgentAPIError> {
    let draft = Draft { mime_type, owner: owner_of(&call.rights.identity), ..Draft::default() };
    let bytes = call.shared.redactor.exact().bytes(&bytes).into_owned();
    let staged = Staged::from_bytes(Bytes::from(bytes));
    let kept = keep(call.shared, staged, draft).await.map_err(failure)?;
    let view = commit(call.shared, kept, call.fence(), None, now_ms()).await.map_err(failure)?;
    Ok(view.artifact_id)
}

/// In a task of its own, like `commit`: a run that ends meanwhile must not drop the bytes before their row is
/// decided.
async fn keep(shared: &Arc<Shared>, staged: Staged, draft: Draft) -> Result<Kept, ArtifactError> {
    let keeper = Arc::clone(shared);
    let work = async move { keeper.artifacts.keep(staged, draft, &keeper.redactor).await };
    let kept = shared.tasks.spawn("artifact", work).await;
    kept.unwrap_or_else(|error| Err(StoreError::Refused(error.to_string()).into()))
}

async fn commit(
    shared: &Arc<Shared>,
    kept: Kept,
    run: RunFence,
    audit: Option<AuditRecord>,
    now_ms: i64,
) -> Result<ArtifactView, ArtifactError> {
    let keeper = Arc::clone(shared);
    let work = async move {
        let command = CreateArtifact {
            workspace_id: run.workspace_id.clone(),
            artifact: kept.row.clone(),
            run: Some(run.clone()),
            audit,
            now_ms,
        };
        match keeper.store.commit(command).await? {
            ArtifactWritten::Created => {
                Ok(view_of_new(kept.row.clone(), &run.workspace_id, now_ms))
            }
            ArtifactWritten::Stale => Err(ArtifactError::Stale),
        }
    };
    let done = shared.tasks.spawn("artifact", work).await;
    done.unwrap_or_else(|error| Err(StoreError::Refused(error.to_string()).into()))
}

/// Sets what the audit record is about.
pub(super) fn about(call: &mut Call<'_>, artifact_id: Option<&str>) {
    let reach = call.rights.grant.artifacts.reach;
    call.about(artifact_id, Some(reach_name(reach).into()));
}

/// What a call is about.
async fn asked_for(
    call: &mut Call<'_>,
    artifact_id: &str,
    operation: ArtifactPermission,
) -> Result<Readable, AgentAPIError> {
    about(call, Some(artifact_id));
    Readable::find(call, artifact_id, operation).await
}

pub(super) fn failure(error: ArtifactError) -> AgentAPIError {
    match error {
        ArtifactError::Invalid(reason) => refuse(ErrorCode::InvalidArgument, reason),
        ArtifactError::TooLarge { .. } => refuse(ErrorCode::PayloadTooLarge, error.to_string()),
        ArtifactError::Stale => stale(),
        ArtifactError::Store(error) => failed(&error),
        ArtifactError::Objects(cause) => {
            tracing::error!(
                error = &cause as &dyn std::error::Error,
                "cannot read or write the bytes of an artifact"
            );
            let failure = refuse(ErrorCode::RuntimeError, "the bytes are not available");
            if cause.is_passing() { failure.retryable() } else { failure }
        }
    }
}
