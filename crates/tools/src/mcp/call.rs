//! One call of a tool, from its name to its output.
//!
//! Invariant: a call ends by its deadline, or earlier when its server is silent for too long; progress ends the
//! silence and never moves the deadline, open questions to the user move both. A call that is abandoned is cancelled
//! at the server.

use super::client::{OnProgress, Progress, Sinks};
use super::questions::{Asker, Clock};
use super::trouble::{in_call, sign_in_required, unavailable};
use super::{Connection, McpCall, McpStatus, Shared, output};
use crate::{ToolFailure, ToolOutput};
use greenroom_protocol::Object;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResult, ClientRequest, ContentBlock,
    InputRequest, InputRequests, InputResponses, ProgressToken, ReadResourceRequestParams,
    ResourceContents, ServerResult,
};
use rmcp::service::{PeerRequestOptions, RequestHandle};
use rmcp::{RoleClient, ServiceError};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};
use tokio_util::task::TaskTracker;

/// The longest call, even with progress; its run ends long before.
pub(crate) const CALL_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// Rounds of questions in one call, of servers that answer with questions.
const ROUNDS_MAX: usize = 10;

pub(super) async fn call(shared: &Shared, tool: &str, args: Object, call: McpCall) -> ToolOutput {
    let last_progress = Arc::new(watch::Sender::new(None));
    let clock = Clock::start();
    let carried_out = async {
        let name = own_name(shared, tool)?;
        let connection = connection(shared, call.deadline).await?;
        let notify = on_progress(clock.clone(), Arc::clone(&last_progress), call.progress.clone());
        let entered = call
            .ask
            .clone()
            .map(|ask| connection.handler.askers.enter(&shared.settings.name, ask, clock.clone()));
        let asker = entered.as_ref().map(|entered| Arc::clone(&entered.asker));
        let params = CallToolRequestParams::new(name).with_arguments(args);
        rounds(&Carrier { shared, connection: &connection, notify, asker }, params).await
    };
    let ended = tokio::select! {
        ended = carried_out => ended,
        () = clock.end(call.deadline) => Err(late(shared, &last_progress, "by the end of its time")),
        () = clock.silence(shared.settings.timeout) => {
            let seconds = shared.settings.timeout.as_secs_f64();
            Err(late(shared, &last_progress, &format!("within {seconds} s")))
        }
        () = call.cancel.cancelled() => Err(failure("CANCELLED", "the call was cancelled")),
    };
    ended.unwrap_or_else(ToolOutput::failure)
}

/// The last sign of progress of a call.
type LastProgress = watch::Sender<Option<Progress>>;

fn on_progress(
    clock: Clock,
    last_progress: Arc<LastProgress>,
    receiver: Option<OnProgress>,
) -> OnProgress {
    Arc::new(move |progress: Progress| {
        clock.progress();
        last_progress.send_replace(Some(progress.clone()));
        if let Some(notify) = &receiver {
            notify(progress);
        }
    })
}

fn late(shared: &Shared, last_progress: &LastProgress, when: &str) -> ToolFailure {
    let server = &shared.settings.name;
    let so_far = match &*last_progress.borrow() {
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
    let connected = timeout_at(
        wait,
        state.wait_for(|state| {
            state.connection.is_some() || state.status == McpStatus::SignInRequired
        }),
    )
    .await;
    let connection = connected.ok().and_then(|state| state.ok()?.connection.clone());
    connection.ok_or_else(|| match shared.state.borrow().status {
        McpStatus::SignInRequired => sign_in_required(&shared.settings.name, "wants a sign-in"),
        _ => unavailable(&shared.settings.name, "is not connected; `greenroom doctor` says why"),
    })
}

/// What one call is carried out with.
struct Carrier<'a> {
    shared: &'a Shared,
    connection: &'a Arc<Connection>,
    notify: OnProgress,
    asker: Option<Arc<Asker>>,
}

/// Calls, and calls again with the answers as long as the server answers with questions.
async fn rounds(
    carrier: &Carrier<'_>,
    params: CallToolRequestParams,
) -> Result<ToolOutput, ToolFailure> {
    let server = &carrier.shared.settings.name;
    let odd = |code: &str, what: &str| failure(code, format!("the MCP server `{server}` {what}"));
    let mut next = params.clone();
    for _ in 0..ROUNDS_MAX {
        match exchange(carrier, next).await? {
            ServerResult::CallToolResult(result) => {
                let limits = &carrier.shared.settings.limits;
                let linked = read_links(carrier.connection, &result, limits.links_read_max).await;
                return Ok(output::output(result, linked, limits));
            }
            ServerResult::InputRequiredResult(asks) => {
                next = params.clone();
                next.input_responses = answers(carrier, asks.input_requests).await?;
                next.request_state = asks.request_state;
            }
            ServerResult::CreateTaskResult(_) => {
                return Err(odd("TOOL_ERROR", "answers with a task, which is not offered"));
            }
            _ => return Err(odd("PROTOCOL_ERROR", "answered with something else than a result")),
        }
    }
    Err(odd("TOOL_ERROR", &format!("asks for input after {ROUNDS_MAX} rounds of answers")))
}

/// The answers of the user to the questions of one round.
async fn answers(
    carrier: &Carrier<'_>,
    asks: Option<InputRequests>,
) -> Result<Option<InputResponses>, ToolFailure> {
    let Some(asks) = asks else { return Ok(None) };
    let server = &carrier.shared.settings.name;
    let refuse = |why: &str| failure("TOOL_ERROR", format!("the MCP server `{server}` {why}"));
    let asker = carrier.asker.as_ref();
    let asker = asker.ok_or_else(|| refuse("asks the user, and this call has none"))?;
    let mut answers = InputResponses::new();
    for (key, ask) in asks {
        let InputRequest::Elicitation(question) = ask else {
            return Err(refuse(
                "asks for something else than input of the user, which is not offered",
            ));
        };
        let answer = asker.ask(question.params).await;
        let answer =
            answer.map_err(|error| refuse(&format!("asks the user: {}", error.message)))?;
        answers.insert(key, serde_json::to_value(answer).unwrap_or_default());
    }
    Ok(Some(answers))
}

/// One request and its answer.
async fn exchange(
    carrier: &Carrier<'_>,
    params: CallToolRequestParams,
) -> Result<ServerResult, ToolFailure> {
    let Carrier { shared, connection, notify, .. } = carrier;
    let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
    let send = async {
        let options = PeerRequestOptions::no_options();
        let handle = connection.peer.send_request_with_option(request, options).await?;
        Ok((handle.progress_token.clone(), handle))
    };
    let sent = connection.handler.sinks.register(Arc::clone(notify), send).await;
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
    answered.map_err(|error| in_call(&error, server))
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
