//! The MCP gateway: the tools of a run's grant over streamable HTTP (decision 029).
//!
//! Invariant: nothing is kept between requests but calls in progress; every call passes the proxy like one from
//! the runner. The run token says which run, so a session needs no state and outlives a run.

mod calls;
mod message;
mod own_tools;
mod respond;
mod skills;
mod tool_list;

use crate::events::read_body_within;
use crate::response::Problem;
use crate::router::App;
use crate::run_access;
use axum::Json;
use axum::extract::{Path, Request, State};
use axum::http::header::{ACCEPT, ALLOW};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
pub(crate) use calls::McpCalls;
use greenroom_host::RunProgram;
use greenroom_protocol::ErrorCode;
use message::{Incoming, RpcError, failed, succeeded};
use serde_json::{Value, json};

pub(crate) const PATH: &str = "/mcp/runs/{id}";
const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
/// The versions of MCP that are spoken, the newest last.
const VERSIONS: [&str; 3] = ["2025-03-26", "2025-06-18", "2025-11-25"];
/// Longest session id that is accepted.
const SESSION_BYTES_MAX: usize = 128;

/// One request of a client.
struct McpRequest {
    app: App,
    program: RunProgram,
    session: String,
    takes_stream: bool,
}

pub(crate) async fn post(
    State(app): State<App>,
    Path(run_id): Path<String>,
    request: Request,
) -> Response {
    let (parts, body) = request.into_parts();
    let (program, session) = match admit(&app, &parts, &run_id) {
        Ok(admitted) => admitted,
        Err(problem) => return problem.into_response(),
    };
    let bytes_max = app.host.settings().limits.call_bytes;
    let body = match read_body_within(&app, body, bytes_max).await {
        Ok(body) => body,
        Err(problem) => return problem.into_response(),
    };
    let takes_stream = takes_stream(&parts.headers);
    let request = McpRequest { app, program, session, takes_stream };
    match message::read(&body) {
        Ok(Incoming::Request { id, method, params }) => request.serve(id, &method, params).await,
        Ok(Incoming::Notification { method, params }) => {
            request.notified(&method, &params);
            StatusCode::ACCEPTED.into_response()
        }
        Ok(Incoming::Response) => StatusCode::ACCEPTED.into_response(),
        Err(error) => (StatusCode::BAD_REQUEST, Json(failed(&Value::Null, &error))).into_response(),
    }
}

/// There is no stream besides those of calls.
pub(crate) async fn get(
    State(app): State<App>,
    Path(run_id): Path<String>,
    request: Request,
) -> Response {
    let (parts, _) = request.into_parts();
    if let Err(problem) = admit(&app, &parts, &run_id) {
        return problem.into_response();
    }
    let message = "there is no stream here: answers and progress come with each POST";
    let status = StatusCode::METHOD_NOT_ALLOWED;
    let mut response = Problem::new(status, ErrorCode::InvalidArgument, message).into_response();
    response.headers_mut().insert(ALLOW, HeaderValue::from_static("POST, DELETE"));
    response
}

/// Ends a session and cancels its calls.
pub(crate) async fn delete(
    State(app): State<App>,
    Path(run_id): Path<String>,
    request: Request,
) -> Response {
    let (parts, _) = request.into_parts();
    match admit(&app, &parts, &run_id) {
        Ok((_, session)) if session.is_empty() => {
            Problem::invalid("`Mcp-Session-Id` is missing").into_response()
        }
        Ok((program, session)) => {
            app.mcp_calls.end_session(program.run_id(), &session);
            StatusCode::NO_CONTENT.into_response()
        }
        Err(problem) => problem.into_response(),
    }
}

/// Checks token, protocol version and session.
fn admit(
    app: &App,
    parts: &axum::http::request::Parts,
    run_id: &str,
) -> Result<(RunProgram, String), Problem> {
    let program = run_access::program(app, parts, run_id)
        .map_err(|denied| Problem::unauthorized(denied.0))?;
    if let Some(version) = parts.headers.get(VERSION)
        && !VERSIONS.iter().any(|known| version == known)
    {
        let known = VERSIONS.join("`, `");
        return Err(Problem::invalid(format!("`MCP-Protocol-Version` must be one of `{known}`")));
    }
    let session = parts.headers.get(SESSION).map(HeaderValue::to_str);
    let session = session.transpose().ok().flatten().unwrap_or_default().to_owned();
    if session.len() > SESSION_BYTES_MAX {
        return Err(Problem::invalid("`Mcp-Session-Id` is too long"));
    }
    match app.mcp_calls.has_ended(run_id, &session) {
        true => Err(Problem::not_found("session")),
        false => Ok((program, session)),
    }
}

fn takes_stream(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    accepted.flat_map(|value| value.split(',')).any(|kind| {
        let kind = kind.split(';').next().unwrap_or_default().trim();
        kind.eq_ignore_ascii_case("text/event-stream") || kind == "*/*"
    })
}

impl McpRequest {
    async fn serve(self, id: Value, method: &str, params: Value) -> Response {
        let result = match method {
            "initialize" => return initialized(&self.program, &id, &params),
            "ping" => Ok(json!({})),
            "tools/list" => unpaged(&params).map(|()| tool_list::all(&self.program)),
            "tools/call" => return self.call_tool(id, params).await,
            "resources/list" => unpaged(&params).map(|()| skills::list(&self.program)),
            "resources/templates/list" => {
                unpaged(&params).map(|()| skills::templates(&self.program))
            }
            "resources/read" => skills::read(&self.program, &params).await,
            _ => Err(RpcError::unknown_method(method)),
        };
        match result {
            Ok(result) => Json(succeeded(&id, result)).into_response(),
            Err(error) => Json(failed(&id, &error)).into_response(),
        }
    }

    async fn call_tool(self, id: Value, params: Value) -> Response {
        let call = match tool_list::find(&self.program, &params) {
            Ok(call) => call,
            Err(error) => return Json(failed(&id, &error)).into_response(),
        };
        let progress_token = params.pointer("/_meta/progressToken").cloned();
        let Self { app, program, session, takes_stream } = self;
        let Some(cancelled) = app.mcp_calls.enter(program.run_id(), &session, &id) else {
            let error = RpcError::invalid("a request with this id is in progress");
            return Json(failed(&id, &error)).into_response();
        };
        let answer = respond::Answer { id, progress_token, cancelled };
        match takes_stream {
            true => respond::streamed(&app, program, call, answer),
            false => respond::whole(program, call, answer).await,
        }
    }

    fn notified(&self, method: &str, params: &Value) {
        if method == "notifications/cancelled"
            && let Some(id) = params.get("requestId")
        {
            self.app.mcp_calls.cancel(self.program.run_id(), &self.session, id);
        }
    }
}

fn initialized(program: &RunProgram, id: &Value, params: &Value) -> Response {
    let asked = params.get("protocolVersion").and_then(Value::as_str);
    let Some(asked) = asked else {
        let error = RpcError::invalid("`protocolVersion` is missing");
        return Json(failed(id, &error)).into_response();
    };
    // A version that is not spoken is answered with the newest: the client decides whether it goes on.
    let newest = VERSIONS[VERSIONS.len() - 1];
    let version = VERSIONS.iter().find(|known| **known == asked).copied().unwrap_or(newest);
    let mut capabilities = json!({"tools": {}});
    if skills::are_granted(program) {
        capabilities["resources"] = json!({});
    }
    let server = json!({"name": "greenroom", "title": "Greenroom",
        "version": env!("CARGO_PKG_VERSION")});
    let result = json!({"protocolVersion": version, "capabilities": capabilities,
        "serverInfo": server});
    let mut response = Json(succeeded(id, result)).into_response();
    let session = uuid::Uuid::new_v4().simple().to_string();
    if let Ok(session) = HeaderValue::from_str(&session) {
        response.headers_mut().insert(SESSION, session);
    }
    response
}

/// Lists are complete: no cursor was ever given out.
fn unpaged(params: &Value) -> Result<(), RpcError> {
    match params.get("cursor") {
        None | Some(Value::Null) => Ok(()),
        Some(_) => Err(RpcError::invalid("`cursor` does not belong to this list")),
    }
}
