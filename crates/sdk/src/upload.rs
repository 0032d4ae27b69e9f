//! Artifacts that are larger than one call: uploaded in parts.
//!
//! Invariant: parts go out in order, each after the one before it was accepted; nothing is stored before the commit.

use crate::artifacts::{ArtifactOptions, ArtifactsApi};
use crate::{RunCtx, bytes};
use greenroom_protocol::AgentAPIError;
use greenroom_protocol::api::Method;
use greenroom_protocol::api::artifacts::{
    ArtifactAppendParams, ArtifactAppended, ArtifactBeginParams, ArtifactCommitParams,
    ArtifactUpload, ArtifactView,
};

/// Largest part, even if the host would take more.
const PART_BYTES_MAX: u64 = 1 << 20;

/// An open upload; dropped without a commit, it stores nothing.
pub struct Upload {
    ctx: RunCtx,
    upload_id: String,
    part_bytes_max: usize,
    size_bytes: u64,
}

impl ArtifactsApi<'_> {
    /// Begins an artifact of this run's conversation that is written in parts.
    ///
    /// ```
    /// # use greenroom_sdk::{ArtifactOptions, RunCtx, RunFailure};
    /// # async fn example(ctx: &RunCtx) -> Result<(), RunFailure> {
    /// let mut upload = ctx.artifacts().upload(ArtifactOptions::default()).await?;
    /// upload.append(b"first part").await?;
    /// upload.append(b"second part").await?;
    /// let artifact = upload.commit().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn upload(&self, options: ArtifactOptions) -> Result<Upload, AgentAPIError> {
        let params = ArtifactBeginParams {
            name: options.name,
            mime_type: options.mime_type,
            size_bytes: None,
            metadata: options.metadata,
            expires_in_s: options.expires_in_s,
        };
        let ArtifactUpload { upload_id, part_bytes_max } = self.0.ask(&params).await?;
        let part_bytes_max = part_bytes_max.clamp(1, PART_BYTES_MAX) as usize;
        Ok(Upload { ctx: self.0.clone(), upload_id, part_bytes_max, size_bytes: 0 })
    }
}

impl Upload {
    /// Adds bytes; any number of them.
    pub async fn append(&mut self, content: &[u8]) -> Result<(), AgentAPIError> {
        for part in content.chunks(self.part_bytes_max) {
            let params = ArtifactAppendParams {
                upload_id: self.upload_id.clone(),
                offset: self.size_bytes,
                data_base64: bytes::encode(Method::ArtifactsAppend, part)?,
            };
            let appended: ArtifactAppended = self.ctx.ask(&params).await?;
            self.size_bytes = appended.size_bytes;
        }
        Ok(())
    }

    /// Bytes so far.
    pub fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    /// Stores the artifact.
    pub async fn commit(self) -> Result<ArtifactView, AgentAPIError> {
        let params = ArtifactCommitParams {
            upload_id: self.upload_id,
            sha256: None,
            size_bytes: Some(self.size_bytes),
        };
        self.ctx.ask(&params).await
    }
}
