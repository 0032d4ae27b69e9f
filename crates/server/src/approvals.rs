//! Approvals: listing and answering them.
//!
//! Invariant: answering requires permission and the nonce of the approval; an approval that a token may not see
//! is reported as missing.

use crate::access::Caller;
use crate::events::{check_type, read_body};
use crate::id::Id;
use crate::query::Params;
use crate::response::{ApiResult, Problem};
use crate::router::App;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use greenroom_host::{ApprovalAnswer, ApprovalQuery, GivenAnswer};
use greenroom_protocol::api::platform::{ApprovalStatus, ApprovalView};
use greenroom_protocol::{ErrorCode, Object};
use greenroom_store::commands::Decision;
use serde::Deserialize;

pub(crate) async fn list(State(app): State<App>, caller: Caller, params: Params) -> ApiResult {
    caller.require_approval_reader()?;
    let params = params.only(&["workspace_id", "status", "run_id", "cursor", "limit"])?;
    let status = params.text("status").map(|text| {
        let status = ApprovalStatus::parse(text);
        status.ok_or_else(|| Problem::invalid("`status` is not a status of approvals"))
    });
    let query = ApprovalQuery {
        status: status.transpose()?,
        run_id: params.text("run_id").map(str::to_owned),
    };
    let page = app.host.approvals(params.workspace(), query, params.cursor(), params.limit()?);
    let mut page = page.await?.ok_or_else(Problem::foreign_cursor)?;
    let mut visible = Vec::new();
    for approval in page.items {
        if can_see(&app, &caller, params.workspace(), &approval).await? {
            visible.push(approval);
        }
    }
    page.items = visible;
    caller.ok(page)
}

pub(crate) async fn show(
    State(app): State<App>,
    caller: Caller,
    params: Params,
    Id(approval_id): Id,
) -> ApiResult {
    caller.require_approval_reader()?;
    let params = params.only(&["workspace_id"])?;
    caller.ok(load(&app, &caller, params.workspace(), &approval_id).await?)
}

#[derive(Deserialize)]
struct AnswerBody {
    decision: DecisionBody,
    nonce: String,
    /// What was entered, for a question with a form.
    #[serde(default)]
    values: Option<Object>,
    /// Other arguments for a tool call than it asked for, in full.
    #[serde(default)]
    args: Option<Object>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum DecisionBody {
    Allow,
    Deny,
}

pub(crate) async fn answer(
    State(app): State<App>,
    caller: Caller,
    params: Params,
    Id(approval_id): Id,
    request: Request,
) -> ApiResult {
    let approver = caller.require_approver()?.to_owned();
    let params = params.only(&["workspace_id"])?;
    check_type(request.headers())?;
    let body = read_body(&app, request.into_body()).await?;
    let AnswerBody { decision, nonce, values, args } =
        serde_json::from_slice(&body).map_err(|error| {
            Problem::invalid(format!("the body must be `{{\"decision\", \"nonce\"}}`: {error}"))
        })?;
    let decision = match decision {
        DecisionBody::Allow => Decision::Allow,
        DecisionBody::Deny => Decision::Deny,
    };
    if decision == Decision::Deny && args.is_some() {
        return Err(Problem::invalid("`args` belong to the decision `allow`"));
    }
    let workspace = params.workspace();
    load(&app, &caller, workspace, &approval_id).await?;
    let given = GivenAnswer { decision, by: approver, values, edited: args };
    let answered = app.host.answer_approval(workspace, &approval_id, nonce, given).await?;
    match answered {
        ApprovalAnswer::Decided(approval) => caller.ok(approval),
        ApprovalAnswer::Settled(approval) => Err(conflict(match approval.status {
            ApprovalStatus::Allowed => "this action was already allowed",
            ApprovalStatus::Denied => "this action was already denied",
            ApprovalStatus::Expired => "this approval has expired",
            ApprovalStatus::Cancelled => "the run that requested this action is over",
            ApprovalStatus::Pending => "this approval could not be settled, try again",
        })),
        ApprovalAnswer::Invalid(reason) => Err(Problem::invalid(reason)),
        ApprovalAnswer::InvalidArgs(reason) => Err(Problem::invalid(format!("`args`: {reason}"))),
        ApprovalAnswer::WrongNonce => {
            Err(conflict("`nonce` does not match this approval: load it again"))
        }
        ApprovalAnswer::NotFound => Err(Problem::not_found("approval")),
    }
}

/// An approval that the caller may see.
async fn load(
    app: &App,
    caller: &Caller,
    workspace: &str,
    approval_id: &str,
) -> Result<ApprovalView, Problem> {
    let approval = app.host.approval(workspace, approval_id).await?;
    let approval = approval.ok_or_else(|| Problem::not_found("approval"))?;
    match can_see(app, caller, workspace, &approval).await? {
        true => Ok(approval),
        false => Err(Problem::not_found("approval")),
    }
}

async fn can_see(
    app: &App,
    caller: &Caller,
    workspace: &str,
    approval: &ApprovalView,
) -> Result<bool, Problem> {
    if caller.require_agent(&approval.agent).is_err() {
        return Ok(false);
    }
    match caller.limited() {
        Some(own) => Ok(app.host.reaches_run(workspace, own, &approval.run_id).await?),
        None => Ok(true),
    }
}

fn conflict(message: &str) -> Problem {
    Problem::new(StatusCode::CONFLICT, ErrorCode::InvalidArgument, message)
}
