//! One call of a tool, from its name to its output.
//!
//! Invariant: a call ends by its deadline; one that is given up, for whatever reason, is called off at the server.

use super::client::Sinks;
use super::{Connection, McpCall, Shared, output};
use crate::{ToolFailure, ToolOutput};
use greenroom_protocol::Object;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResult, ClientRequest, ContentBlock, ErrorCode,
    ErrorData, ProgressToken, ReadResourceRequestParams, ResourceContents, ServerResult,
};
use rmcp::service::{PeerRequestOptions, RequestHandle};
use rmcp::{RoleClient, ServiceError};
use std::sync::Arc;
use tokio::time::{Instant, timeout_at};
use tokio_util::task::TaskTracker;

pub(super) async fn call(shared: &Shared, tool: &str, args: Object, call: McpCall) -> ToolOutput {
    let deadline = call.deadline.min(Instant::now() + shared.settings.timeout);
    let carried_out = async {
        let name = own_name(shared, tool)?;
        let connection = connection(shared, deadline).await?;
        carry_out(shared, &connection, name, args, &call).await
    };
    let ended = tokio::select! {
        ended = timeout_at(deadline, carried_out) => ended,
        () = call.cancel.cancelled() => Ok(Err(failure("CANCELLED", "the call was cancelled"))),
    };
    match ended {
        Ok(Ok(output)) => output,
        Ok(Err(failure)) => ToolOutput::failure(failure),
        Err(_) => ToolOutput::failure(failure("TIMEOUT", "the tool did not answer in time")),
    }
}

/// Only what is listed can be called: what was refused or is not allowed does not exist.
fn own_name(shared: &Shared, tool: &str) -> Result<String, ToolFailure> {
    let is_listed = shared.state.borrow().tools.iter().any(|listed| listed.name == tool);
    let own = tool.strip_prefix(&shared.settings.name).and_then(|rest| rest.strip_prefix('.'));
    match own.filter(|_| is_listed) {
        Some(own) => Ok(own.to_owned()),
        None => Err(failure("NOT_FOUND", format!("there is no tool `{tool}`"))),
    }
}

async fn connection(shared: &Shared, deadline: Instant) -> Result<Arc<Connection>, ToolFailure> {
    let mut state = shared.state.subscribe();
    let wait = deadline.min(Instant::now() + shared.settings.limits.reconnect_wait);
    let connected = timeout_at(wait, state.wait_for(|state| state.connection.is_some())).await;
    let connection = connected.ok().and_then(|state| state.ok()?.connection.clone());
    connection.ok_or_else(|| unavailable("is not connected"))
}

async fn carry_out(
    shared: &Shared,
    connection: &Arc<Connection>,
    name: String,
    args: Object,
    call: &McpCall,
) -> Result<ToolOutput, ToolFailure> {
    let params = CallToolRequestParams::new(name).with_arguments(args);
    let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
    let send = async {
        let options = PeerRequestOptions::no_options();
        let handle = connection.peer.send_request_with_option(request, options).await?;
        Ok((handle.progress_token.clone(), handle))
    };
    let sent = connection.handler.sinks.register(call.progress.clone(), send).await;
    let (token, handle) = sent.map_err(|error| told(&error))?;
    let tasks = shared.tasks.clone();
    let mut pending =
        Pending { handle: Some(handle), token, sinks: connection.handler.sinks.clone(), tasks };
    let answered = pending.answer().await;
    drop(pending);
    if let Err(ServiceError::TransportSend(_)) = &answered {
        // Whether the server is still there, and the same, shows when it lists its tools.
        connection.handler.changed.notify_one();
    }
    let result = match answered.map_err(|error| told(&error))? {
        ServerResult::CallToolResult(result) => result,
        ServerResult::InputRequiredResult(_) => {
            return Err(failure("TOOL_ERROR", "the tool asks for input, which is not offered"));
        }
        ServerResult::CreateTaskResult(_) => {
            return Err(failure(
                "TOOL_ERROR",
                "the tool answers with a task, which is not offered",
            ));
        }
        _ => return Err(failure("PROTOCOL_ERROR", "the answer is not the result of a tool")),
    };
    let linked = read_links(connection, &result, shared.settings.limits.links_read_max).await;
    Ok(output::output(result, linked, &shared.settings.limits))
}

/// Resources of the server that the result only names. One that cannot be read stays a name.
async fn read_links(
    connection: &Connection,
    result: &CallToolResult,
    links_max: usize,
) -> Vec<ResourceContents> {
    let links = result.content.iter().filter_map(|block| match block {
        ContentBlock::ResourceLink(link) => Some(link.uri.clone()),
        _ => None,
    });
    let mut read = Vec::new();
    for uri in links.take(links_max) {
        let params = ReadResourceRequestParams::new(uri);
        if let Ok(resource) = connection.peer.read_resource(params).await {
            read.extend(resource.contents);
        }
    }
    read
}

/// A call under way. Dropped before its answer, it is called off.
struct Pending {
    handle: Option<RequestHandle<RoleClient>>,
    token: ProgressToken,
    sinks: Arc<Sinks>,
    tasks: TaskTracker,
}

impl Pending {
    async fn answer(&mut self) -> Result<ServerResult, ServiceError> {
        let Some(handle) = &mut self.handle else { return Err(ServiceError::TransportClosed) };
        let answered = (&mut handle.rx).await;
        self.handle = None;
        answered.unwrap_or(Err(ServiceError::TransportClosed))
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        let (handle, token, sinks) = (self.handle.take(), self.token.clone(), self.sinks.clone());
        self.tasks.spawn(async move {
            sinks.forget(&token).await;
            if let Some(handle) = handle {
                // A server that is gone needs no word.
                let _ = handle.cancel(Some("the call was given up".to_owned())).await;
            }
        });
    }
}

fn told(error: &ServiceError) -> ToolFailure {
    match error {
        ServiceError::McpError(ErrorData { code, message, .. }) => {
            let code = match *code {
                ErrorCode::INVALID_PARAMS => "INVALID_ARGUMENT",
                _ => "TOOL_ERROR",
            };
            failure(code, message.to_string())
        }
        ServiceError::TransportClosed => unavailable("ended the connection during the call"),
        ServiceError::TransportSend(_) => unavailable("could not be reached"),
        error => failure("PROTOCOL_ERROR", error.to_string()),
    }
}

fn unavailable(what: &str) -> ToolFailure {
    failure("UNAVAILABLE", format!("the server {what}"))
}

fn failure(code: &str, message: impl Into<String>) -> ToolFailure {
    ToolFailure::new(code, message)
}
