//! Upload and download of artifacts.
//!
//! Invariant: an upload is stored whole or not at all, also if its sender disconnects; downloaded bytes are
//! checked against their hash.

use super::{ArtifactError, Artifacts, Draft, Owner, view_of_new};
use crate::host::{Host, Shared};
use crate::ids::now_ms;
use bytes::Bytes;
use futures_util::Stream;
use greenroom_objects::{ByteStream, ObjectId, ObjectsError};
use greenroom_protocol::api::artifacts::ArtifactView;
use greenroom_store::commands::CreateArtifact;
use greenroom_store::types::ArtifactRow;
use greenroom_store::{StoreError, fault, reads};
use std::ops::Range;
use std::sync::Arc;

/// The description of an upload.
#[derive(Debug, Default)]
pub struct Upload {
    pub workspace_id: String,
    pub name: Option<String>,
    pub mime_type: Option<String>,
    /// The conversation it is for; without one it belongs to the first event that refers to it.
    pub conversation_id: Option<String>,
    pub expires_in_s: Option<i64>,
    /// The limited token that uploads it; no other limited token can use it.
    pub limited_to: Option<String>,
}

impl Host {
    /// Stores uploaded bytes. `Ok` means that they are durable.
    pub async fn upload<S, E>(
        &self,
        upload: Upload,
        bytes: S,
    ) -> Result<ArtifactView, ArtifactError>
    where
        S: Stream<Item = Result<Bytes, E>>,
        E: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let shared = Arc::clone(&self.shared);
        let bytes_max = shared.settings.load().limits.artifact_bytes;
        let staged = shared.artifacts.objects.stage(bytes, bytes_max).await?;
        fault::point("artifact_staged");
        let now_ms = now_ms();
        let draft = Draft {
            name: upload.name,
            mime_type: upload.mime_type,
            metadata: upload
                .limited_to
                .map(|sender| ("uploaded_by".to_owned(), sender.into()))
                .into_iter()
                .collect(),
            expires_at: expiry(now_ms, upload.expires_in_s),
            owner: Owner { conversation_id: upload.conversation_id, ..Owner::default() },
        };
        // In a task of its own, since the sender may disconnect: the pin must outlast the commit.
        let work = async move {
            let kept = shared.artifacts.keep(staged, draft, &shared.redactor).await?;
            let command = CreateArtifact {
                workspace_id: upload.workspace_id.clone(),
                artifact: kept.row.clone(),
                run: None,
                audit: None,
                now_ms,
            };
            shared.store.commit(command).await?;
            Ok(view_of_new(kept.row.clone(), &upload.workspace_id, now_ms))
        };
        let done = self.shared.tasks.spawn("upload", work).await;
        done.unwrap_or_else(|error| Err(StoreError::Refused(error.to_string()).into()))
    }

    /// An artifact that has not expired.
    pub async fn artifact(
        &self,
        workspace: &str,
        artifact_id: &str,
    ) -> Result<Option<ArtifactRow>, StoreError> {
        self.shared.artifact(workspace, artifact_id).await
    }

    /// The bytes of an artifact, or a range of them.
    pub async fn artifact_bytes(
        &self,
        row: &ArtifactRow,
        range: Range<u64>,
    ) -> Result<ByteStream, ArtifactError> {
        let id = Artifacts::place_of(row)?;
        Ok(self.shared.artifacts.objects.stream(id, range).await?)
    }
}

impl Shared {
    pub(crate) async fn artifact(
        &self,
        workspace: &str,
        artifact_id: &str,
    ) -> Result<Option<ArtifactRow>, StoreError> {
        let (workspace, id, now) = (workspace.to_owned(), artifact_id.to_owned(), now_ms());
        self.store.read_inline(move |tx| reads::artifacts::get(tx, &workspace, &id, now)).await
    }
}

impl Artifacts {
    /// The object id of an artifact.
    pub(crate) fn place_of(row: &ArtifactRow) -> Result<ObjectId, ArtifactError> {
        ObjectId::parse(&row.sha256).ok_or_else(|| {
            let message = format!("`{}` is not a hash", row.sha256);
            ArtifactError::Objects(ObjectsError::Remote(message))
        })
    }
}

/// When something that expires after this many seconds ends.
pub(crate) fn expiry(now_ms: i64, lifetime_s: Option<i64>) -> Option<i64> {
    lifetime_s.map(|seconds| now_ms.saturating_add(seconds.max(0).saturating_mul(1000)))
}
