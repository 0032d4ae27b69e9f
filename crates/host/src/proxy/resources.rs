//! `models.*`, `tools.*`, `knowledge.*`: checked against the grant here, answered by the registry.
//!
//! Invariant: a resource that was not granted looks like one that does not exist, also when it does.

use super::call::{Answer, Call, answer, not_found, refuse};
use crate::registry::ResourceCall;
use greenroom_protocol::api::Method;
use greenroom_protocol::api::tools::ToolSearchParams;
use greenroom_protocol::{AgentAPIError, ErrorCode};
use serde::Deserialize;
use serde_json::json;
use std::collections::BTreeSet;

/// The one of these that a method has names its resource.
#[derive(Deserialize)]
struct Named {
    #[serde(default)]
    model_id: Option<String>,
    #[serde(default)]
    tool_name: Option<String>,
    #[serde(default)]
    kb_id: Option<String>,
}

pub(super) async fn model(call: &mut Call<'_>) -> Answer {
    let named = named(call)?.model_id;
    one_of(call, "model_id", named, |call| &call.rights.grant.models.names)?;
    ask(call).await
}

pub(super) async fn tool(call: &mut Call<'_>) -> Answer {
    if call.method == Method::ToolsSearch {
        call.params::<ToolSearchParams>()?;
        // Among no tools there is nothing to find, whoever answers for them.
        return match call.rights.grant.tools.names.is_empty() {
            true => answer(&json!({"items": []})),
            false => ask(call).await,
        };
    }
    let named = named(call)?.tool_name;
    one_of(call, "tool_name", named, |call| &call.rights.grant.tools.names)?;
    ask(call).await
}

pub(super) async fn knowledge(call: &mut Call<'_>) -> Answer {
    if call.method == Method::KnowledgeList {
        let names = &call.rights.grant.knowledge.names;
        let items: Vec<_> =
            names.iter().filter_map(|name| call.shared.registry.knowledge(name)).collect();
        return answer(&json!({"items": items}));
    }
    let named = named(call)?.kb_id;
    one_of(call, "kb_id", named, |call| &call.rights.grant.knowledge.names)?;
    ask(call).await
}

fn named(call: &Call<'_>) -> Result<Named, AgentAPIError> {
    serde_json::from_str(call.params.get())
        .map_err(|error| refuse(ErrorCode::InvalidArgument, error.to_string()))
}

fn one_of<'a>(
    call: &mut Call<'a>,
    field: &str,
    named: Option<String>,
    granted: impl Fn(&Call<'a>) -> &'a BTreeSet<String>,
) -> Result<(), AgentAPIError> {
    let Some(name) = named else {
        return Err(refuse(ErrorCode::InvalidArgument, format!("`{field}` is missing")));
    };
    call.about(Some(&name), None);
    if granted(call).contains(&name) {
        return Ok(());
    }
    let what = field.trim_end_matches("_id").trim_end_matches("_name");
    Err(not_found(if what == "kb" { "knowledge base" } else { what }))
}

async fn ask(call: &mut Call<'_>) -> Answer {
    let identity = &call.rights.identity;
    let asked = ResourceCall {
        method: call.method,
        workspace_id: &identity.workspace_id,
        run_id: &identity.run_id,
        agent: &identity.agent,
        params: call.params,
        sink: call.sink,
        granted_tools: &call.rights.grant.tools.names,
    };
    call.shared.registry.call(asked).await
}
