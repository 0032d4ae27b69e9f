//! Agents, and which agent an event would be routed to.

use crate::access::Caller;
use crate::events::{check_type, read_body};
use crate::id::Id;
use crate::query::Params;
use crate::response::{ApiResult, Problem, ok};
use crate::router::App;
use axum::extract::{Request, State};
use greenroom_protocol::NewEvent;
use serde_json::json;

pub(crate) async fn list(State(app): State<App>, caller: Caller, params: Params) -> ApiResult {
    caller.require_reader()?;
    params.only(&[])?;
    ok(json!({"items": app.host.agents(), "next_cursor": null, "has_more": false}))
}

pub(crate) async fn show(
    State(app): State<App>,
    caller: Caller,
    params: Params,
    Id(name): Id,
) -> ApiResult {
    caller.require_reader()?;
    params.only(&[])?;
    ok(app.host.agent(&name).ok_or_else(|| Problem::not_found("agent"))?)
}

/// Which agent an event would be routed to, and with which grant. Changes nothing.
pub(crate) async fn try_event(
    State(app): State<App>,
    caller: Caller,
    params: Params,
    request: Request,
) -> ApiResult {
    caller.require_reader()?;
    params.only(&[])?;
    check_type(request.headers())?;
    let body = read_body(&app, request.into_body()).await?;
    let event = NewEvent::parse(&body).map_err(|error| Problem::invalid(error.to_string()))?;
    ok(app.host.try_event(&event)?)
}
