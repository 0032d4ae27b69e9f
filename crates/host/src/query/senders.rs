//! What a limited token reaches (decision 020).
//!
//! Invariant: an id of another sender is answered as one that does not exist.

use crate::host::Host;
use greenroom_store::commands::uploaded_by;
use greenroom_store::reads::conversations::{Own, Reach, stored_id, within};
use greenroom_store::sql::Tx;
use greenroom_store::types::{ArtifactRow, RunRow};
use greenroom_store::{StoreError, reads};
use std::sync::Arc;

impl Host {
    /// The stored id of the conversation that a limited token calls `id`.
    pub async fn stored_conversation(
        &self,
        workspace: &str,
        own: &Arc<Own>,
        id: &str,
    ) -> Result<String, StoreError> {
        let (workspace, own, id) = (workspace.to_owned(), Arc::clone(own), id.to_owned());
        self.store().read(move |tx| stored_id(tx, &workspace, &own, &id)).await
    }

    /// Whether a limited token reaches a run: by its conversation, or because it sent the event.
    pub async fn reaches_run(
        &self,
        workspace: &str,
        own: &Arc<Own>,
        run_id: &str,
    ) -> Result<bool, StoreError> {
        let (workspace, own, run_id) = (workspace.to_owned(), Arc::clone(own), run_id.to_owned());
        let read = self.store().read(move |tx| match reads::runs::get(tx, &workspace, &run_id)? {
            Some(run) => is_own_run(tx, &own, &run),
            None => Ok(false),
        });
        read.await
    }

    /// Whether a limited token reaches an artifact: by its conversation or run, or because it uploaded it.
    pub async fn reaches_artifact(
        &self,
        own: &Arc<Own>,
        artifact: &ArtifactRow,
    ) -> Result<bool, StoreError> {
        let (own, artifact) = (Arc::clone(own), artifact.clone());
        let read = self.store().read(move |tx| {
            let workspace = &artifact.workspace_id;
            if let Some(conversation) = &artifact.conversation_id {
                let reach = Reach::Own(Arc::clone(&own));
                return Ok(within(tx, workspace, conversation, &reach)?.is_some());
            }
            match &artifact.run_id {
                Some(run_id) => match reads::runs::get(tx, workspace, run_id)? {
                    Some(run) => is_own_run(tx, &own, &run),
                    None => Ok(false),
                },
                None => Ok(artifact.metadata == uploaded_by(&own.begun_by)),
            }
        });
        read.await
    }
}

fn is_own_run(tx: &mut dyn Tx, own: &Arc<Own>, run: &RunRow) -> Result<bool, StoreError> {
    if let Some(conversation) = &run.conversation_id {
        let reach = Reach::Own(Arc::clone(own));
        return Ok(within(tx, &run.workspace_id, conversation, &reach)?.is_some());
    }
    let event = reads::events::load(tx, &run.workspace_id, run.event_seq)?;
    Ok(event.is_some_and(|event| event.sender.as_ref() == Some(&own.begun_by)))
}
