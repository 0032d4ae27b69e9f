//! The handshake on the native wire: `initialize`, then the lists of runners and tools.

use crate::connection::{Connection, NoResult};
use crate::handshake::{Introduction, LateTools, Listed, Terms, read_tools};
use greenroom_protocol::PROTOCOL_VERSION;
use greenroom_protocol::wire::{
    HostIdentity, InitializeParams, InitializeResult, METHOD_NOT_FOUND, method,
};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::sync::Arc;
use std::time::Duration;

pub(in crate::wires) async fn introduce(
    connection: &Arc<Connection>,
    terms: &Terms<'_>,
) -> Result<Introduction, String> {
    let version = terms.host_version.to_owned();
    let host = HostIdentity { name: "greenroom".to_owned(), version };
    let params = InitializeParams { protocol_version: PROTOCOL_VERSION.to_owned(), host };
    let answer = connection.request(method::INITIALIZE, &params).await;
    let answer = answer.map_err(|why| why.about(method::INITIALIZE))?;
    let answer: InitializeResult = serde_json::from_str(answer.get())
        .map_err(|error| format!("answered `initialize` with something malformed: {error}"))?;
    terms.identify(connection, &answer)?;
    let list = connection.request(method::LIST_AGENT_RUNNERS, &serde_json::json!({})).await;
    let list = match list {
        Ok(list) => Ok(list),
        // A plugin for tools alone need not know what a runner is.
        Err(NoResult::Refused(error)) if error.code == METHOD_NOT_FOUND => Err(error.message),
        Err(why) => return Err(why.about(method::LIST_AGENT_RUNNERS)),
    };
    let limits = &connection.limits;
    let wait = if list.is_ok() { limits.tools_wait } else { limits.configured.runner_start };
    let (tools, late) = list_tools(connection, wait).await;
    let has_tools = tools.as_ref().is_some_and(|listed| !listed.tools.is_empty());
    let manifests = match list {
        Ok(list) => manifests(&list)?,
        Err(_) if has_tools => Vec::new(),
        Err(message) => return Err(format!("offers neither runners nor tools: {message}")),
    };
    Ok(Introduction { plugin: answer.plugin, manifests, warnings: Vec::new(), tools, late })
}

/// Asks for tools; a process that answers late gets its first runs before it has answered.
async fn list_tools(
    connection: &Arc<Connection>,
    wait: Duration,
) -> (Option<Listed>, Option<LateTools>) {
    let asked = connection.clone();
    let mut answer: LateTools =
        Box::pin(async move { asked.request(method::LIST_TOOLS, &serde_json::json!({})).await });
    match tokio::time::timeout(wait, &mut answer).await {
        Ok(answer) => (Some(read_tools(answer)), None),
        Err(_) => (None, Some(answer)),
    }
}

fn manifests(list: &RawValue) -> Result<Vec<Box<RawValue>>, String> {
    #[derive(Deserialize)]
    struct List {
        runners: Vec<Box<RawValue>>,
    }
    serde_json::from_str::<List>(list.get())
        .map(|list| list.runners)
        .map_err(|error| format!("answered `list_agent_runners` with something malformed: {error}"))
}
