//! One call of a tool, from its name to its output.
//!
//! Invariant: a call ends by its deadline, or earlier when its server is silent for too long; progress ends the
//! silence and never moves the deadline. A call that is abandoned is cancelled at the server.

use super::client::{OnProgress, Progress, Sinks};
use super::trouble::{in_call, unavailable};
use super::{Connection, McpCall, Shared, output};
use crate::{ToolFailure, ToolOutput};
use greenroom_protocol::Object;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResult, ClientRequest, ContentBlock,
    ProgressToken, ReadResourceRequestParams, ResourceContents, ServerResult,
};
use rmcp::service::{PeerRequestOptions, RequestHandle};
use rmcp::{RoleClient, ServiceError};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout_at};
use tokio_util::task::TaskTracker;

/// The longest call, even with progress; its run ends long before.
pub(crate) const CALL_MAX: Duration = Duration::from_secs(24 * 60 * 60);

pub(super) async fn call(shared: &Shared, tool: &str, args: Object, call: McpCall) -> ToolOutput {
    let last_progress =
        Arc::new(watch::Sender::new(LastProgress { at: Instant::now(), progress: None }));
    let carried_out = async {
        let name = own_name(shared, tool)?;
        let connection = connection(shared, call.deadline).await?;
        let notify = on_progress(Arc::clone(&last_progress), call.progress.clone());
        carry_out(shared, &connection, name, args, notify).await
    };
    let ended = tokio::select! {
        ended = timeout_at(call.deadline, carried_out) => {
            ended.unwrap_or_else(|_| Err(late(shared, &last_progress, "by the end of its time")))
        }
        () = silence(last_progress.subscribe(), shared.settings.timeout) => {
            let seconds = shared.settings.timeout.as_secs_f64();
            Err(late(shared, &last_progress, &format!("within {seconds} s")))
        }
        () = call.cancel.cancelled() => Err(failure("CANCELLED", "the call was cancelled")),
    };
    ended.unwrap_or_else(ToolOutput::failure)
}

/// The last sign of progress of this call.
struct LastProgress {
    at: Instant,
    progress: Option<Progress>,
}

/// Returns after that long without progress.
async fn silence(mut last_progress: watch::Receiver<LastProgress>, timeout: Duration) {
    loop {
        let until = last_progress.borrow_and_update().at + timeout;
        tokio::select! {
            () = sleep_until(until) => return,
            changed = last_progress.changed() => if changed.is_err() { return },
        }
    }
}

fn on_progress(
    last_progress: Arc<watch::Sender<LastProgress>>,
    receiver: Option<OnProgress>,
) -> OnProgress {
    Arc::new(move |progress: Progress| {
        last_progress
            .send_replace(LastProgress { at: Instant::now(), progress: Some(progress.clone()) });
        if let Some(notify) = &receiver {
            notify(progress);
        }
    })
}

fn late(shared: &Shared, last_progress: &watch::Sender<LastProgress>, when: &str) -> ToolFailure {
    let server = &shared.settings.name;
    let so_far = match &last_progress.borrow().progress {
        Some(Progress { progress, total: Some(total), .. }) => {
            format!("; it had got to {progress} of {total}")
        }
        Some(Progress { progress, .. }) => format!("; it had got to {progress}"),
        None => String::new(),
    };
    let message = format!("the MCP server `{server}` did not answer {when}{so_far}");
    failure("TIMEOUT", message)
}

/// Only listed tools can be called: refused or excluded ones do not exist.
fn own_name(shared: &Shared, tool: &str) -> Result<String, ToolFailure> {
    let is_listed = shared.state.borrow().tools.iter().any(|listed| listed.name == tool);
    let own = tool.strip_prefix(&shared.settings.name).and_then(|rest| rest.strip_prefix('.'));
    match own.filter(|_| is_listed) {
        Some(own) => Ok(own.to_owned()),
        None => {
            let server = &shared.settings.name;
            let message = format!("the MCP server `{server}` has no tool `{tool}` that is offered");
            Err(failure("NOT_FOUND", message))
        }
    }
}

async fn connection(shared: &Shared, deadline: Instant) -> Result<Arc<Connection>, ToolFailure> {
    let mut state = shared.state.subscribe();
    let wait = deadline.min(Instant::now() + shared.settings.limits.reconnect_wait);
    let connected = timeout_at(wait, state.wait_for(|state| state.connection.is_some())).await;
    let connection = connected.ok().and_then(|state| state.ok()?.connection.clone());
    connection.ok_or_else(|| {
        unavailable(&shared.settings.name, "is not connected; `greenroom doctor` says why")
    })
}

async fn carry_out(
    shared: &Shared,
    connection: &Arc<Connection>,
    name: String,
    args: Object,
    notify: OnProgress,
) -> Result<ToolOutput, ToolFailure> {
    let params = CallToolRequestParams::new(name).with_arguments(args);
    let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
    let send = async {
        let options = PeerRequestOptions::no_options();
        let handle = connection.peer.send_request_with_option(request, options).await?;
        Ok((handle.progress_token.clone(), handle))
    };
    let sent = connection.handler.sinks.register(notify, send).await;
    let server = &shared.settings.name;
    let (token, handle) = sent.map_err(|error| in_call(&error, server))?;
    let tasks = shared.tasks.clone();
    let mut pending =
        Pending { handle: Some(handle), token, sinks: connection.handler.sinks.clone(), tasks };
    let answered = pending.answer().await;
    drop(pending);
    if let Err(ServiceError::TransportSend(_)) = &answered {
        // A list of its tools shows whether the server is still the same.
        connection.handler.changed.notify_one();
    }
    let odd = |code: &str, what: &str| failure(code, format!("the MCP server `{server}` {what}"));
    let result = match answered.map_err(|error| in_call(&error, server))? {
        ServerResult::CallToolResult(result) => result,
        ServerResult::InputRequiredResult(_) => {
            return Err(odd("TOOL_ERROR", "asks for input during the call, which is not offered"));
        }
        ServerResult::CreateTaskResult(_) => {
            return Err(odd("TOOL_ERROR", "answers with a task, which is not offered"));
        }
        _ => return Err(odd("PROTOCOL_ERROR", "answered with something else than a result")),
    };
    let linked = read_links(connection, &result, shared.settings.limits.links_read_max).await;
    Ok(output::output(result, linked, &shared.settings.limits))
}

/// Reads resources that the result only links to. One that cannot be read stays a link.
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

/// A call in progress. Dropped before its answer, it is cancelled at the server.
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
                // A server that is gone needs no cancellation.
                let _ = handle.cancel(Some("the call was given up".to_owned())).await;
            }
        });
    }
}

fn failure(code: &str, message: impl Into<String>) -> ToolFailure {
    ToolFailure::new(code, message)
}
