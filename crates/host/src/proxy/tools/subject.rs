//! The records that a call with an approval would change, read before the approval is requested.
//!
//! Invariant: reads only what the actor of the run may see. If the read fails, the approval is requested
//! without them.

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
            tracing::warn!(%error, "cannot read the records of an approval request");
            None
        }
    };
    work.toolbox.subject(&work.entry, &work.args, found.as_ref())
}

/// The records that the call names, as far as the actor may see them.
async fn found(work: &Work) -> Result<Option<BTreeMap<String, RecordView>>, StoreError> {
    let Some((module, ids)) = work.toolbox.named_records(&work.entry, &work.args) else {
        return Ok(None);
    };
    let Some(person) = work.identity.person() else { return Ok(None) };
    let module = module.as_str();
    let read = work.shared.store.read(move |tx| {
        let mut found = BTreeMap::new();
        for id in &ids {
            let record = reads::records::visible(tx, &person, module, id)?;
            found.extend(record.map(|(record, _)| (id.clone(), view(record))));
        }
        Ok(found)
    });
    read.await.map(Some)
}
