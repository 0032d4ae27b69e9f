//! What a call that somebody is asked about would change, looked up before the question is stored.
//!
//! Invariant: reads what the actor of the run may see and nothing else. A look-up that fails leaves the question
//! without what it would have found; it is asked all the same.

use super::carry_out::Work;
use crate::records::view;
use greenroom_protocol::api::platform::ApprovalSubject;
use greenroom_protocol::records::RecordView;
use greenroom_store::{StoreError, reads};
use std::collections::BTreeMap;

pub(super) async fn of(work: &Work) -> Option<ApprovalSubject> {
    let found = match found(work).await {
        Ok(found) => found,
        Err(error) => {
            tracing::warn!(%error, "the records that a question is about cannot be read");
            None
        }
    };
    work.toolbox.subject(&work.entry, &work.args, found.as_ref())
}

/// The records that the call names, as far as the actor has them; nothing where no record can be named.
async fn found(work: &Work) -> Result<Option<BTreeMap<String, RecordView>>, StoreError> {
    let Some((module, ids)) = work.toolbox.named_records(&work.entry, &work.args) else {
        return Ok(None);
    };
    let actor = work.identity.actor.as_ref().and_then(|actor| actor.actor_id.clone());
    let Some(actor) = actor else { return Ok(None) };
    let (workspace, module) = (work.identity.workspace_id.clone(), module.as_str());
    let read = work.shared.store.read(move |tx| {
        let mut found = BTreeMap::new();
        for id in &ids {
            let record = reads::records::visible(tx, (&workspace, module, id), &actor)?;
            found.extend(record.map(|(record, _)| (id.clone(), view(record))));
        }
        Ok(found)
    });
    read.await.map(Some)
}
