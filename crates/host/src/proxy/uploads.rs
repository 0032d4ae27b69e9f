//! `artifacts.begin`, `append`, `commit`: an artifact that is larger than one call.
//!
//! Invariant: parts are written in order, each at the offset that the upload has reached; an upload belongs to its run
//! and ends with it, and its bytes are stored only by its commit.

use super::artifacts::{self, about, failure};
use super::call::{Answer, Call, answer, not_found, refuse};
use crate::artifacts::{ArtifactError, Draft, expiry, owner_of};
use crate::host::Shared;
use crate::ids::{self, now_ms};
use crate::redaction::Stream as Redaction;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use greenroom_objects::{ObjectsError, Staged};
use greenroom_protocol::api::artifacts::{
    ArtifactAppendParams, ArtifactAppended, ArtifactBeginParams, ArtifactCommitParams,
    ArtifactUpload,
};
use greenroom_protocol::{AgentAPIError, ErrorCode};
use greenroom_store::StoreError;
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// Uploads that one run has open at the same time.
const UPLOADS_MAX: usize = 16;
/// Parts of one upload that wait to be written.
const PARTS_WAITING_MAX: usize = 2;

/// The open uploads of one run.
#[derive(Debug, Default)]
pub(crate) struct Uploads {
    open: Mutex<HashMap<String, Arc<tokio::sync::Mutex<Upload>>>>,
}

struct Upload {
    draft: Draft,
    /// Bytes that were appended.
    size: u64,
    /// The hash of those bytes.
    hash: Sha256,
    redaction: Redaction,
    parts: mpsc::Sender<Bytes>,
    staged: JoinHandle<Result<Staged, ObjectsError>>,
}

/// Shows nothing of what it holds.
impl std::fmt::Debug for Upload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Upload").field("size", &self.size).finish_non_exhaustive()
    }
}

impl Uploads {
    fn insert(&self, id: &str, upload: Upload) -> Result<(), AgentAPIError> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.len() >= UPLOADS_MAX {
            let message = format!("a run has at most {UPLOADS_MAX} open uploads: commit one first");
            return Err(refuse(ErrorCode::RateLimited, message));
        }
        open.insert(id.to_owned(), Arc::new(tokio::sync::Mutex::new(upload)));
        Ok(())
    }

    fn get(&self, id: &str) -> Result<Arc<tokio::sync::Mutex<Upload>>, AgentAPIError> {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.get(id).cloned().ok_or_else(|| not_found("upload"))
    }

    fn remove(&self, id: &str) {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
    }
}

pub(super) async fn begin(call: &mut Call<'_>) -> Answer {
    about(call, None);
    let params: ArtifactBeginParams = call.params()?;
    let limits = &call.settings.limits;
    if params.size_bytes.is_some_and(|size| size > limits.artifact_bytes) {
        let bytes_max = limits.artifact_bytes;
        return Err(failure(ArtifactError::TooLarge { bytes_max }));
    }
    let draft = Draft {
        name: params.name,
        mime_type: params.mime_type,
        metadata: params.metadata,
        expires_at: expiry(now_ms(), params.expires_in_s),
        owner: owner_of(&call.rights.identity),
    };
    let (parts, waiting) = mpsc::channel(PARTS_WAITING_MAX);
    let shared = Arc::clone(call.shared);
    let bytes_max = limits.artifact_bytes;
    let staged = call.shared.tasks.spawn("upload", stage(shared, waiting, bytes_max));
    let redaction = call.shared.redactor.exact().stream();
    let upload_id = ids::fresh("upl");
    call.live.uploads.insert(
        &upload_id,
        Upload { draft, size: 0, hash: Sha256::new(), redaction, parts, staged },
    )?;
    // A part is base64 in a call, and a call has more than its part.
    let part_bytes_max = (limits.call_bytes / 2) as u64;
    answer(&ArtifactUpload { upload_id, part_bytes_max })
}

/// Writes the parts as they come; they end when the upload is committed or dropped.
async fn stage(
    shared: Arc<Shared>,
    parts: mpsc::Receiver<Bytes>,
    bytes_max: u64,
) -> Result<Staged, ObjectsError> {
    let parts = futures_util::stream::unfold(parts, async |mut parts| {
        let part = parts.recv().await?;
        Some((Ok::<_, Infallible>(part), parts))
    });
    shared.artifacts.objects.stage(parts, bytes_max).await
}

pub(super) async fn append(call: &mut Call<'_>) -> Answer {
    about(call, None);
    let params: ArtifactAppendParams = call.params()?;
    let part = STANDARD
        .decode(&params.data_base64)
        .map_err(|error| refuse(ErrorCode::InvalidArgument, format!("`data_base64`: {error}")))?;
    let upload = call.live.uploads.get(&params.upload_id)?;
    let mut upload = upload.lock().await;
    if params.offset != upload.size {
        let message = format!("the upload has {} bytes so far", upload.size);
        let error = refuse(ErrorCode::InvalidArgument, message).detail("reason", "offset");
        return Err(error.detail("size_bytes", upload.size));
    }
    let bytes_max = call.settings.limits.artifact_bytes;
    let size = upload.size + part.len() as u64;
    if size > bytes_max {
        call.live.uploads.remove(&params.upload_id);
        return Err(failure(ArtifactError::TooLarge { bytes_max }));
    }
    upload.hash.update(&part);
    let clean = upload.redaction.push_bytes(&part);
    if upload.parts.send(clean.into()).await.is_err() {
        call.live.uploads.remove(&params.upload_id);
        return Err(refuse(ErrorCode::RuntimeError, "the part could not be written").retryable());
    }
    upload.size = size;
    answer(&ArtifactAppended { size_bytes: size })
}

pub(super) async fn commit(call: &mut Call<'_>) -> Answer {
    about(call, None);
    let params: ArtifactCommitParams = call.params()?;
    let upload = call.live.uploads.get(&params.upload_id)?;
    call.live.uploads.remove(&params.upload_id);
    let upload = Arc::try_unwrap(upload)
        .map_err(|_| refuse(ErrorCode::InvalidArgument, "a part of the upload is being written"))?;
    let Upload { draft, mut redaction, parts, staged, size, hash } = upload.into_inner();
    let rest = redaction.flush_bytes();
    // An error of the writer is reported by its result.
    let _ = parts.send(rest.into()).await;
    drop(parts);
    let staged = staged.await;
    let staged = staged.map_err(|error| failure(StoreError::Refused(error.to_string()).into()))?;
    let staged = staged.map_err(|error| failure(error.into()))?;
    let hash = ids::hex(&hash.finalize());
    if params.sha256.is_some_and(|claimed| claimed.to_ascii_lowercase() != hash)
        || params.size_bytes.is_some_and(|claimed| claimed != size)
    {
        let message = "the bytes of the upload do not match `sha256` or `size_bytes`";
        return Err(refuse(ErrorCode::InvalidArgument, message).detail("reason", "mismatch"));
    }
    artifacts::store(call, staged, draft).await
}
