//! Deliveries: list, retry, discard.
//!
//! Invariant: changing a delivery requires an admin, and is decided once.

use crate::access::Caller;
use crate::id::Id;
use crate::query::Params;
use crate::response::{ApiResult, Problem, ok};
use crate::router::App;
use axum::extract::State;
use axum::http::StatusCode;
use greenroom_protocol::ErrorCode;
use greenroom_store::commands::{Resolution, Resolved};
use greenroom_store::reads::deliveries::DeliveryFilter;
use greenroom_store::types::DeliveryStatus;

pub(crate) async fn list(State(app): State<App>, caller: Caller, params: Params) -> ApiResult {
    caller.require_reader()?;
    let known = ["workspace_id", "status", "surface", "run_id", "cursor", "limit"];
    let params = params.only(&known)?;
    let status = params.text("status").map(|text| {
        let status = DeliveryStatus::parse(text);
        status.ok_or_else(|| Problem::invalid("`status` is not a status of deliveries"))
    });
    let filter = DeliveryFilter {
        status: status.transpose()?,
        surface: params.text("surface").map(str::to_owned),
        run_id: params.text("run_id").map(str::to_owned),
    };
    let page = app.host.deliveries(params.workspace(), filter, params.cursor(), params.limit()?);
    ok(page.await?.ok_or_else(Problem::foreign_cursor)?)
}

pub(crate) async fn show(
    State(app): State<App>,
    caller: Caller,
    params: Params,
    Id(delivery_id): Id,
) -> ApiResult {
    caller.require_reader()?;
    let params = params.only(&["workspace_id"])?;
    load(&app, params.workspace(), &delivery_id).await
}

pub(crate) async fn retry(
    State(app): State<App>,
    caller: Caller,
    params: Params,
    Id(delivery_id): Id,
) -> ApiResult {
    resolve(&app, &caller, params, &delivery_id, Resolution::Retry).await
}

pub(crate) async fn discard(
    State(app): State<App>,
    caller: Caller,
    params: Params,
    Id(delivery_id): Id,
) -> ApiResult {
    resolve(&app, &caller, params, &delivery_id, Resolution::Discard).await
}

async fn resolve(
    app: &App,
    caller: &Caller,
    params: Params,
    delivery_id: &str,
    resolution: Resolution,
) -> ApiResult {
    caller.require_admin()?;
    let params = params.only(&["workspace_id"])?;
    let workspace = params.workspace();
    let resolved = app.host.resolve_delivery(workspace, delivery_id, resolution, caller.name());
    match resolved.await? {
        Resolved::Done => load(app, workspace, delivery_id).await,
        Resolved::NotFound => Err(Problem::not_found("delivery")),
        Resolved::Conflict(status) => {
            let message = conflict(resolution, status);
            Err(Problem::new(StatusCode::CONFLICT, ErrorCode::InvalidArgument, message))
        }
    }
}

fn conflict(resolution: Resolution, status: DeliveryStatus) -> &'static str {
    match (resolution, status) {
        (_, DeliveryStatus::Claimed) => "this delivery is being sent now, try again",
        (_, DeliveryStatus::Done) => "this delivery was already sent",
        (_, DeliveryStatus::Discarded) => "this delivery was discarded",
        (Resolution::Retry, _) => "this delivery is already pending",
        (Resolution::Discard, _) => "this delivery has just changed, try again",
    }
}

async fn load(app: &App, workspace: &str, delivery_id: &str) -> ApiResult {
    let delivery = app.host.delivery(workspace, delivery_id).await?;
    ok(delivery.ok_or_else(|| Problem::not_found("delivery"))?)
}
