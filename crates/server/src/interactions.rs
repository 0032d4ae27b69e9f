//! Questions of a run with fields and buttons: listing and answering them.
//!
//! Invariant: whoever may send to the agent of a run that it reaches may answer for it.

use crate::access::Caller;
use crate::events::{check_type, read_body};
use crate::id::Id;
use crate::query::Params;
use crate::response::{ApiResult, Problem};
use crate::router::App;
use crate::runs::load;
use axum::Json;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::IntoResponse;
use greenroom_protocol::InteractionSubmission;
use serde_json::json;

pub(crate) async fn list(
    State(app): State<App>,
    caller: Caller,
    params: Params,
    Id(run_id): Id,
) -> ApiResult {
    let params = params.only(&["workspace_id"])?;
    let workspace = params.workspace();
    load(&app, &caller, workspace, &run_id).await?;
    let items = app.host.interactions(workspace, &run_id).await?;
    caller.ok(json!({"items": items, "next_cursor": null, "has_more": false}))
}

pub(crate) async fn answer(
    State(app): State<App>,
    caller: Caller,
    params: Params,
    Id(run_id): Id,
    request: Request,
) -> ApiResult {
    let sender = caller.require_sender()?;
    let params = params.only(&["workspace_id"])?;
    check_type(request.headers())?;
    let body = read_body(&app, request.into_body()).await?;
    let answer: InteractionSubmission = serde_json::from_slice(&body).map_err(|error| {
        let shape = "{\"interaction_id\", \"action_id\", \"values\"}";
        Problem::invalid(format!("the body must be `{shape}`: {error}"))
    })?;
    let workspace = params.workspace();
    load(&app, &caller, workspace, &run_id).await?;
    let answered = app.host.answer_interaction(&sender, (workspace, &run_id), answer).await?;
    let answered = answered.ok_or_else(|| Problem::not_found("interaction"))?;
    Ok((StatusCode::ACCEPTED, Json(answered)).into_response())
}
