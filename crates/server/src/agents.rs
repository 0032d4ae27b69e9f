//! Agents: what is bound to what, and what an event would lead to.

use crate::access::Caller;
use crate::answer::{Answer, Problem, ok};
use crate::events::{check_type, read_body};
use crate::id::Id;
use crate::query::Params;
use crate::router::App;
use axum::extract::{Request, State};
use greenroom_protocol::NewEvent;
use serde_json::json;

pub(crate) async fn list(State(app): State<App>, caller: Caller, params: Params) -> Answer {
    caller.reader()?;
    params.only(&[])?;
    ok(json!({"items": app.host.agents(), "next_cursor": null, "has_more": false}))
}

pub(crate) async fn show(
    State(app): State<App>,
    caller: Caller,
    params: Params,
    Id(name): Id,
) -> Answer {
    caller.reader()?;
    params.only(&[])?;
    ok(app.host.agent(&name).ok_or_else(|| Problem::not_found("agent"))?)
}

/// Which agent would take an event, and with which grant. Changes nothing.
pub(crate) async fn try_event(
    State(app): State<App>,
    caller: Caller,
    params: Params,
    request: Request,
) -> Answer {
    caller.reader()?;
    params.only(&[])?;
    check_type(request.headers())?;
    let body = read_body(&app, request.into_body()).await?;
    let event = NewEvent::parse(&body).map_err(|error| Problem::invalid(error.to_string()))?;
    ok(app.host.try_event(&event)?)
}
