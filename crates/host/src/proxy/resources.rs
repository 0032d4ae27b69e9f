//! Checks names of resources against the grant, for `models.*`, `tools.*` and `knowledge.*`.
//!
//! Invariant: a resource that is not granted looks like a missing one.

use super::call::{Answer, Call, answer, not_found};
use crate::grant::Grant;
use greenroom_protocol::AgentAPIError;
use greenroom_protocol::api::knowledge::KnowledgeRetrieveParams;
use serde_json::json;

/// Sets what the call is about, and checks that it is granted.
pub(super) fn granted(
    call: &mut Call<'_>,
    what: &str,
    name: &str,
    has: impl Fn(&Grant, &String) -> bool,
) -> Result<(), AgentAPIError> {
    call.about(Some(name), None);
    match has(&call.rights.grant, &name.to_owned()) {
        true => Ok(()),
        false => Err(not_found(what)),
    }
}

/// No knowledge base exists yet, so none is granted.
pub(super) fn list_knowledge() -> Answer {
    answer(&json!({"items": []}))
}

pub(super) async fn retrieve_knowledge(call: &mut Call<'_>) -> Answer {
    let params: KnowledgeRetrieveParams = call.params()?;
    granted(call, "knowledge base", &params.kb_id, |grant, name| {
        grant.knowledge.names.contains(name)
    })?;
    Err(not_found("knowledge base"))
}
