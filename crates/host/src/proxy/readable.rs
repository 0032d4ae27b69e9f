//! What `artifacts.*` read: stored artifacts, granted files, and static parts of the run's context.
//!
//! Invariant: each needs its own permission; what is missing and what is out of reach is the same `not_found`.

use super::artifacts::failure;
use super::call::{Call, failed, not_found};
use crate::artifacts::{ArtifactError, Artifacts, is_within};
use crate::ids::now_ms;
use crate::statics;
use bytes::Bytes;
use futures_util::stream::{StreamExt, once};
use greenroom_objects::ByteStream;
use greenroom_protocol::AgentAPIError;
use greenroom_protocol::manifest::ArtifactPermission;
use greenroom_store::types::ArtifactRow;
use serde_json::json;
use std::ops::Range;

/// Something within the run's reach, with its bytes if they are not in the object store.
pub(super) struct Readable {
    pub(super) row: ArtifactRow,
    inline: Option<Bytes>,
}

impl Readable {
    /// What an id stands for, if the run may do this with it.
    pub(super) async fn find(
        call: &Call<'_>,
        id: &str,
        operation: ArtifactPermission,
    ) -> Result<Self, AgentAPIError> {
        let (rights, workspace) = (call.rights, call.workspace());
        if let Some(file) = rights.files.iter().find(|file| file.granted.file_id == id) {
            let row = file.as_artifact(workspace, &rights.identity.run_id);
            return Ok(Self { row, inline: None });
        }
        if !rights.grant.artifacts.operations.contains(&operation) {
            return Err(not_found("artifact"));
        }
        if id.starts_with(statics::PREFIX) {
            return static_part(call, id).ok_or_else(|| not_found("artifact"));
        }
        let row = call.shared.artifact(workspace, id).await.map_err(|error| failed(&error))?;
        let (identity, reach) = (&rights.identity, rights.grant.artifacts.reach);
        let row = row.filter(|row| is_within(row, identity, reach));
        let row = row.ok_or_else(|| not_found("artifact"))?;
        Ok(Self { row, inline: None })
    }

    pub(super) fn size(&self) -> u64 {
        u64::try_from(self.row.size).unwrap_or(0)
    }

    /// A range within the size.
    pub(super) async fn read(
        &self,
        call: &Call<'_>,
        range: Range<u64>,
    ) -> Result<Bytes, AgentAPIError> {
        if let Some(bytes) = &self.inline {
            return Ok(slice(bytes, &range));
        }
        let id = Artifacts::place_of(&self.row).map_err(failure)?;
        let bytes = call.shared.artifacts.objects.read(id, range).await;
        bytes.map_err(|error| failure(ArtifactError::Objects(error)))
    }

    /// The same in pieces.
    pub(super) async fn stream(
        &self,
        call: &Call<'_>,
        range: Range<u64>,
    ) -> Result<ByteStream, AgentAPIError> {
        if let Some(bytes) = &self.inline {
            let bytes = slice(bytes, &range);
            return Ok(once(async move { Ok(bytes) }).boxed());
        }
        let id = Artifacts::place_of(&self.row).map_err(failure)?;
        let pieces = call.shared.artifacts.objects.stream(id, range).await;
        pieces.map_err(|error| failure(ArtifactError::Objects(error)))
    }
}

fn slice(bytes: &Bytes, range: &Range<u64>) -> Bytes {
    let at = |offset: u64| usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
    bytes.slice(at(range.start)..at(range.end))
}

fn static_part(call: &Call<'_>, id: &str) -> Option<Readable> {
    let rights = call.rights;
    let (kind, bytes) = statics::resolve(&rights.grant, &rights.resources, id)?;
    let is_text =
        kind == "instructions" && serde_json::from_slice::<serde::de::IgnoredAny>(&bytes).is_err();
    let mime_type = if is_text { "text/plain" } else { "application/json" };
    let row = ArtifactRow {
        workspace_id: call.workspace().to_owned(),
        artifact_id: id.to_owned(),
        sha256: id.strip_prefix(statics::PREFIX).unwrap_or_default().to_owned(),
        size: i64::try_from(bytes.len()).unwrap_or(i64::MAX),
        name: None,
        mime_type: mime_type.to_owned(),
        conversation_id: None,
        session: String::new(),
        run_id: Some(rights.identity.run_id.clone()),
        agent: Some(rights.identity.agent.clone()),
        metadata: json!({"kind": kind}).to_string(),
        created_at: now_ms(),
        expires_at: None,
    };
    Some(Readable { row, inline: Some(bytes) })
}
