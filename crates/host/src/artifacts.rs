//! Artifacts: bytes that belong to a conversation or a run, with an id that cannot be guessed.
//!
//! Invariant: bytes are stored and pinned before their row is written, so a row never lacks its bytes; a failure
//! in between leaves neither. Names are names, never paths; a type agrees with its bytes.

mod access;
mod collect;
pub(crate) mod ingest;
mod links;
mod parts;
mod pins;
mod spill;
mod upload;

pub(crate) use access::is_within;
pub(crate) use collect::collect_regularly;
pub(crate) use ingest::{Ingested, uploads_of};
pub(crate) use links::Links;
pub(crate) use spill::{Spilled, is_large, may_spill, owner_of, reference};
pub use upload::Upload;
pub(crate) use upload::expiry;

use crate::ids::{hex, rfc3339};
use crate::redaction::Redactor;
use greenroom_objects::{Objects, ObjectsError, Staged, mime};
use greenroom_protocol::Object;
use greenroom_protocol::api::artifacts::{ArtifactView, check_artifact_name};
use greenroom_store::types::{ArtifactRow, NewArtifact};
use greenroom_store::{StoreError, fault};
use pins::{Pin, Pins};
use sha2::{Digest, Sha256};
use std::sync::Arc;
use uuid::Uuid;

/// Longest metadata of an artifact, as JSON.
const METADATA_BYTES_MAX: usize = 16 * 1024;

/// The object store, and the pins of bytes whose rows are about to be written.
pub(crate) struct Artifacts {
    pub(crate) objects: Objects,
    pins: Arc<Pins>,
}

/// Why an artifact could not be made or read.
#[derive(Debug, thiserror::Error)]
pub enum ArtifactError {
    #[error("{0}")]
    Invalid(String),
    #[error("an artifact has at most {bytes_max} bytes")]
    TooLarge { bytes_max: u64 },
    /// The run that asked for it has ended.
    #[error("the run has ended")]
    Stale,
    #[error("cannot store or read the bytes")]
    Objects(#[source] ObjectsError),
    #[error("cannot store the artifact")]
    Store(#[from] StoreError),
}

impl From<ObjectsError> for ArtifactError {
    fn from(error: ObjectsError) -> Self {
        match error {
            ObjectsError::TooLarge { bytes_max } => ArtifactError::TooLarge { bytes_max },
            ObjectsError::Interrupted(_) => ArtifactError::Invalid(error.to_string()),
            error => ArtifactError::Objects(error),
        }
    }
}

/// The description of incoming bytes.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    pub(crate) name: Option<String>,
    pub(crate) mime_type: Option<String>,
    pub(crate) metadata: Object,
    pub(crate) expires_at: Option<i64>,
    pub(crate) owner: Owner,
}

/// The owner of an artifact.
#[derive(Debug, Clone, Default)]
pub(crate) struct Owner {
    pub(crate) conversation_id: Option<String>,
    /// Its session there (`session_key`).
    pub(crate) session: String,
    pub(crate) run_id: Option<String>,
    pub(crate) agent: Option<String>,
}

/// Stored bytes with the row that is still to be written. They are not collected while this lives.
#[derive(Debug)]
pub(crate) struct Kept {
    pub(crate) row: NewArtifact,
    _pin: Pin,
}

impl Artifacts {
    pub(crate) fn new(objects: Objects) -> Self {
        Self { objects, pins: Arc::default() }
    }

    /// Checks the description of the bytes, then stores them.
    pub(crate) async fn keep(
        &self,
        staged: Staged,
        draft: Draft,
        redactor: &Redactor,
    ) -> Result<Kept, ArtifactError> {
        let row = describe(&staged, draft, redactor).map_err(ArtifactError::Invalid)?;
        let pin = self.pins.pin(staged.id()).await;
        fault::point("before_artifact_kept");
        self.objects.keep(staged).await?;
        fault::point("after_artifact_kept");
        Ok(Kept { row, _pin: pin })
    }
}

/// The name under which this database claims its objects.
pub fn owner_of_bytes(cursor_key: &str) -> String {
    hex(&Sha256::digest(format!("greenroom artifacts {cursor_key}")))
}

/// An artifact as callers see it.
pub fn view(row: &ArtifactRow) -> ArtifactView {
    ArtifactView {
        artifact_id: row.artifact_id.clone(),
        name: row.name.clone(),
        mime_type: row.mime_type.clone(),
        size_bytes: u64::try_from(row.size).unwrap_or(0),
        sha256: row.sha256.clone(),
        conversation_id: row.conversation_id.clone(),
        run_id: row.run_id.clone(),
        agent: row.agent.clone(),
        created_at: rfc3339(row.created_at),
        expires_at: row.expires_at.map(rfc3339),
        metadata: serde_json::from_str(&row.metadata).unwrap_or_default(),
    }
}

/// The view of a new artifact.
pub(crate) fn view_of_new(row: NewArtifact, workspace_id: &str, created_at: i64) -> ArtifactView {
    view(&ArtifactRow {
        workspace_id: workspace_id.to_owned(),
        artifact_id: row.artifact_id,
        sha256: row.sha256,
        size: row.size,
        name: row.name,
        mime_type: row.mime_type,
        conversation_id: row.conversation_id,
        session: row.session,
        run_id: row.run_id,
        agent: row.agent,
        metadata: row.metadata,
        created_at,
        expires_at: row.expires_at,
    })
}

fn describe(staged: &Staged, draft: Draft, redactor: &Redactor) -> Result<NewArtifact, String> {
    let name = draft.name.map(|name| redactor.text(&name).into_owned());
    if let Some(name) = &name {
        check_artifact_name(name)?;
    }
    let declared = draft.mime_type.map(|mime_type| redactor.text(&mime_type).into_owned());
    let mime_type = mime::agree(declared.as_deref(), staged.head());
    let mut metadata = serde_json::Value::Object(draft.metadata);
    redactor.value(&mut metadata);
    let metadata = metadata.to_string();
    if metadata.len() > METADATA_BYTES_MAX {
        return Err(format!("`metadata` has at most {METADATA_BYTES_MAX} bytes"));
    }
    Ok(NewArtifact {
        artifact_id: fresh_id(),
        sha256: staged.id().to_string(),
        size: i64::try_from(staged.size()).unwrap_or(i64::MAX),
        name,
        mime_type: mime_type.map_err(|error| error.to_string())?,
        conversation_id: draft.owner.conversation_id,
        session: draft.owner.session,
        run_id: draft.owner.run_id,
        agent: draft.owner.agent,
        metadata,
        expires_at: draft.expires_at,
    })
}

/// Fully random: the time of an artifact reveals nothing about its id.
fn fresh_id() -> String {
    format!("art_{}", Uuid::new_v4().simple())
}
