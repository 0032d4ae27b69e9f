//! Artifacts: metadata of bytes in the object store.
//!
//! Invariant: a row is written only after its bytes are stored, and removed before they are deleted; a run
//! writes one only while its fence holds.

use super::Command;
use super::audit::insert_outcome;
use super::fence::RunFence;
use crate::audit::{AuditRecord, OK};
use crate::sql::{Tx, prose};
use crate::types::NewArtifact;
use crate::{StoreError, params};
use greenroom_protocol::ErrorCode;

#[derive(Debug, Clone)]
pub struct CreateArtifact {
    pub workspace_id: String,
    pub artifact: NewArtifact,
    /// The run that creates it; none for an upload.
    pub run: Option<RunFence>,
    /// The audit record of the call, stored with its outcome.
    pub audit: Option<AuditRecord>,
    pub now_ms: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArtifactWritten {
    Created,
    /// The run has ended.
    Stale,
}

impl Command for CreateArtifact {
    type Outcome = ArtifactWritten;

    fn execute(&self, tx: &mut dyn Tx) -> Result<ArtifactWritten, StoreError> {
        let Some(run) = &self.run else {
            insert_artifact(tx, &self.workspace_id, &self.artifact, self.now_ms)?;
            return Ok(ArtifactWritten::Created);
        };
        let (written, code) = match run.holds(tx)? {
            true => {
                insert_artifact(tx, &self.workspace_id, &self.artifact, self.now_ms)?;
                (ArtifactWritten::Created, OK)
            }
            false => (ArtifactWritten::Stale, ErrorCode::Unauthorized.as_str()),
        };
        insert_outcome(tx, (&self.workspace_id, &run.run_id), self.audit.as_ref(), code)?;
        Ok(written)
    }
}

/// Forgets artifacts, by workspace and id. Their bytes are collected later.
#[derive(Debug, Clone)]
pub struct RemoveArtifacts {
    pub artifacts: Vec<(String, String)>,
}

impl Command for RemoveArtifacts {
    type Outcome = bool;

    fn execute(&self, tx: &mut dyn Tx) -> Result<bool, StoreError> {
        let mut removed = 0;
        for (workspace, artifact_id) in &self.artifacts {
            removed += tx.execute(
                "DELETE FROM artifacts WHERE workspace_id = ?1 AND artifact_id = ?2",
                params![workspace, artifact_id],
            )?;
        }
        Ok(removed > 0)
    }
}

/// A second time, the same artifact changes nothing.
pub(super) fn insert_artifact(
    tx: &mut dyn Tx,
    workspace: &str,
    artifact: &NewArtifact,
    now_ms: i64,
) -> Result<(), StoreError> {
    let (name, conversation) = (artifact.name.as_deref().map(prose), &artifact.conversation_id);
    tx.execute(
        "INSERT INTO artifacts (workspace_id, artifact_id, sha256, size, name, mime_type,
             conversation_id, run_id, agent, metadata, created_at, expires_at, session)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)
         ON CONFLICT (workspace_id, artifact_id) DO NOTHING",
        params![
            workspace,
            &artifact.artifact_id,
            &artifact.sha256,
            artifact.size,
            &name,
            &artifact.mime_type,
            conversation,
            &artifact.run_id,
            &artifact.agent,
            &artifact.metadata,
            now_ms,
            artifact.expires_at,
            &artifact.session,
        ],
    )?;
    Ok(())
}

/// The metadata of an upload of a limited token.
pub fn uploaded_by(sender: &str) -> String {
    serde_json::json!({"uploaded_by": sender}).to_string()
}

/// An upload that an event names belongs to the event's conversation and run from then on. One that has an
/// owner keeps it, and one of another limited token stays where it is.
pub(super) fn adopt_artifact(
    tx: &mut dyn Tx,
    workspace: &str,
    artifact_id: &str,
    owner: &Owner<'_>,
) -> Result<(), StoreError> {
    let uploaded_by = owner.limited_to.map(uploaded_by);
    tx.execute(
        "UPDATE artifacts SET conversation_id = ?3, run_id = ?4, agent = ?5, session = ?7
         WHERE workspace_id = ?1 AND artifact_id = ?2 AND run_id IS NULL AND agent IS NULL
           AND (conversation_id IS NULL OR conversation_id = ?3)
           AND (CAST(?6 AS TEXT) IS NULL OR metadata = ?6 OR metadata = '{}')",
        params![
            workspace,
            artifact_id,
            owner.conversation_id,
            owner.run_id,
            owner.agent,
            &uploaded_by,
            owner.session,
        ],
    )?;
    Ok(())
}

/// Whose an artifact becomes.
pub(super) struct Owner<'a> {
    /// The limited token that sends the event.
    pub(super) limited_to: Option<&'a str>,
    pub(super) conversation_id: Option<&'a str>,
    pub(super) session: &'a str,
    pub(super) run_id: Option<&'a str>,
    pub(super) agent: Option<&'a str>,
}
