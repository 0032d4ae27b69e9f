//! Addresses at which a receiver without a token reads a file for a while.
//!
//! Invariant: an address that opens was made by this host for one artifact of one workspace, and its time is not over.

use crate::context::owner;
use crate::cursor::Cursors;
use crate::host::Host;
use crate::ids::{now_ms, rfc3339};
use greenroom_protocol::ArtifactRef;
use greenroom_store::StoreError;
use greenroom_store::types::ArtifactRow;
use greenroom_surfaces::File;

/// Longer than deliveries are retried, unless that is configured otherwise.
const LIFETIME_MS: i64 = 7 * 24 * 60 * 60 * 1000;
const DOMAIN: [&str; 1] = ["file"];

#[derive(Clone)]
pub(crate) struct Links {
    pub(crate) cursors: Cursors,
    /// What addresses begin with: the public address of the host, or its path alone.
    pub(crate) base: String,
}

impl std::fmt::Debug for Links {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Links").field("base", &self.base).finish_non_exhaustive()
    }
}

impl Links {
    /// A file for a surface.
    pub(crate) fn file(&self, workspace: &str, artifact: &ArtifactRef) -> File {
        let expires_at = now_ms() + LIFETIME_MS;
        let target = owner(&[workspace, &artifact.artifact_id, &expires_at.to_string()]);
        let token = self.cursors.seal(&DOMAIN, &target);
        File {
            artifact_id: artifact.artifact_id.clone(),
            name: artifact.name.clone(),
            mime_type: artifact.mime_type.clone(),
            size_bytes: artifact.size_bytes,
            sha256: artifact.sha256.clone(),
            url: format!("{}/v1/files/{token}", self.base),
            expires_at: rfc3339(expires_at),
        }
    }
}

impl Host {
    /// The artifact of an address that `Links` made; none if it is altered, over, or the artifact is gone.
    pub async fn linked_artifact(&self, token: &str) -> Result<Option<ArtifactRow>, StoreError> {
        let target = self.shared.cursors.open(&DOMAIN, token);
        let target = target.and_then(|target| serde_json::from_str::<[String; 3]>(&target).ok());
        let Some([workspace, artifact_id, expires_at]) = target else { return Ok(None) };
        if expires_at.parse::<i64>().is_ok_and(|expires_at| expires_at > now_ms()) {
            return self.shared.artifact(&workspace, &artifact_id).await;
        }
        Ok(None)
    }
}
